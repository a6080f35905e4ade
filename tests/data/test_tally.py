"""Tallies against counting every key, whatever the order of the parts."""

from __future__ import annotations

from collections import Counter
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointforest.data.observe_table import Size, merge_tallies, mix_all_bits, number_keys, numbers_of, tally_of, unmixed
from jointforest.data.sample_rows import label_key

SIZE = Size(most=8, n_common=6)


def tally(keys):
    return tally_of(np.array(keys, np.uint64), np.ones(len(keys), np.int64), SIZE)


parts = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=30), min_size=1, max_size=6)


@given(parts, st.randoms(use_true_random=False))
def test_smallest_keys_have_exact_counts_in_any_order(given_parts, random):
    truth = Counter(key for part in given_parts for key in part)
    shuffled = given_parts.copy()
    random.shuffle(shuffled)
    found = reduce(lambda a, b: merge_tallies(a, b, SIZE), map(tally, shuffled))
    smallest = sorted(truth)[: SIZE.most]
    assert found.keys.tolist() == smallest
    assert found.counts.tolist() == [truth[key] for key in smallest]
    assert found.n == sum(truth.values()) and found.is_whole == (len(truth) <= SIZE.most)


@given(parts, st.randoms(use_true_random=False))
def test_every_frequent_key_is_a_candidate(given_parts, random):
    truth = Counter(key for part in given_parts for key in part)
    random.shuffle(given_parts)
    found = reduce(lambda a, b: merge_tallies(a, b, SIZE), map(tally, given_parts))
    if found.is_whole:
        assert len(found.frequent(0.0)) == 0
        return
    share = 1.0 / SIZE.n_common
    wanted = {key for key, count in truth.items() if count > share * found.n}
    assert wanted <= set(found.frequent(share).tolist())
    for key, least in zip(found.common.keys.tolist(), found.common.counts.tolist(), strict=True):
        assert least <= truth[key] <= least + found.common.missed


def test_number_of_different_keys_is_estimated():
    keys = mix_all_bits(np.arange(100_000, dtype=np.uint64))
    found = tally_of(keys, np.ones(len(keys), np.int64), Size(4096, 64))
    assert found.n_distinct == pytest.approx(100_000, rel=0.05)


def test_keys_are_one_to_one():
    bits = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64)
    assert (unmixed(mix_all_bits(bits)) == bits).all()
    numbers = np.array([0.0, -0.0, 1.5, -1e300, 5e-324, np.pi])
    assert (numbers_of(number_keys(numbers)) == numbers).all()
    assert number_keys(numbers)[0] == number_keys(numbers)[1]
    assert label_key("1") != label_key(1) and label_key(1) == label_key(True) == label_key(1.0)
