"""The order of the nodes of a tree."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jointforest.learners.history.learn import depth_first


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(0, 99))
def test_depth_first_order_keeps_children_side_by_side_and_after_their_parent(splits: list[int], seed: int) -> None:
    child = [-1]
    for one in splits:  # split any leaf, in any order
        leaves = [node for node, left in enumerate(child) if left < 0]
        child[leaves[one % len(leaves)]] = len(child)
        child += [-1, -1]
    order = depth_first(np.array(child)).tolist()
    assert sorted(order) == list(range(len(child)))
    place = {node: k for k, node in enumerate(order)}

    def below(node: int) -> set[int]:
        """The nodes below a node."""
        left = child[node]
        return set() if left < 0 else {left, left + 1} | below(left) | below(left + 1)

    for node, left in enumerate(child):
        if left >= 0:
            assert place[node] < place[left] == place[left + 1] - 1
        # what is below a node stands together
        places = sorted(place[one] for one in below(node))
        assert places == list(range(places[0], places[0] + len(places))) if places else True
