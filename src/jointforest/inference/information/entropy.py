"""Entropies and mutual information of columns of one model."""

# The mathematics is in docs/concepts/information.md.

from __future__ import annotations

import numpy as np

from ...data.discretization.base_density import code_entropy
from ...data.discretization.discretizer import codes_of
from ...data.evidence import Evidence
from ...models.box_forest.posterior import LeafPosterior, by_chunks
from ...models.box_forest.structure import Forest
from ...models.hidden_tree.condition import joint_codes
from ...models.hidden_tree.hidden_trees import HiddenTrees
from .entropy_kernels import column_entropies, leaf_divergence
from .integral import Columns, Estimate, ModelView, averaged, exact, integral

# ---- Trees whose leaves are apart in some columns: then there are closed forms.


def is_partition(model: Forest, columns: list[int]) -> bool:
    """Whether the leaves are apart in these columns for sure: one tree, no background, all splits on these columns."""
    feature = model.trees.feature
    return len(model.trees.root) == 1 and set(feature[feature != -1].tolist()) <= set(columns)


# ---- Entropies under hidden trees: of the codes, and of what lies inside each code.


def hidden_entropy(v: ModelView, hidden: HiddenTrees, of: Columns) -> float | None:
    """Entropy of a few columns, exact: H(codes) + sum_j sum_c p(code_j = c) H(x_j | c); None if they are too many."""
    p = joint_codes(hidden, [v.number[k] for k in of])
    if p is None:
        return None
    positive = p[p > 0.0]
    total = -float(positive @ np.log(positive))
    for axis, k in enumerate(of):
        marginal = p.sum(axis=tuple(a for a in range(p.ndim) if a != axis))
        total += float(marginal @ code_entropy(hidden.scales[v.number[k]]))
    return total


def inside_codes(v: ModelView, hidden: HiddenTrees, of: Columns, X: np.ndarray) -> tuple[float, np.ndarray]:
    """Entropy that lies inside the columns' codes, exact, and its log density for rows X (n, k) of the view, (n,)."""
    total, log_inside = 0.0, np.zeros(len(X))
    for k in of:
        scale = hidden.scales[v.number[k]]
        marginal = joint_codes(hidden, [v.number[k]])
        assert marginal is not None
        total += float(marginal @ code_entropy(scale))
        log_inside += codes_of(scale, X[:, k])[1]
    return total, log_inside


def entropy(v: ModelView, of: Columns, n: int, seed: int) -> Estimate:
    """Entropy of some columns against the measure of `Joint.log_density`: -E log p; from n draws if it is not exact."""
    value = exact_entropy(v, of)
    if value is not None:
        return exact(value)
    X = v.draw(n, seed)
    hidden = v.model.hidden_trees()
    if hidden is not None:
        inside, log_inside = inside_codes(v, hidden, of, X)
        codes = averaged(log_inside - v.log_density(X, of))
        return codes._replace(value=codes.value + inside)
    if not v.model.is_forest:
        return averaged(-v.log_density(X, of))
    of_leaves = leaf_entropies(v.forest, [v.number[k] for k in of])
    divergence = averaged(_leaf_divergence(v.forest, v.evidence(X, of)))
    return divergence._replace(value=divergence.value + float(np.exp(v.forest.leaves.log_weight) @ of_leaves))


def _leaf_divergence(model: Forest, evidence: Evidence) -> np.ndarray:
    """Divergence (n,) of the posterior of the leaves from their weights: the information of rows about their leaf."""

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return leaf_divergence(model.leaves, post)

    return by_chunks(model, evidence, read)


def conditional_entropy(v: ModelView, of: Columns, given: Columns, n: int, seed: int) -> Estimate:
    """Entropy of some columns given others, H(of, given) - H(given); ``n`` rows are drawn if it is not exact."""
    return _signed(v, [(1.0, of + given), (-1.0, given)], n, seed)


def mutual_information(v: ModelView, a: Columns, b: Columns, given: Columns, n: int, seed: int) -> Estimate:
    """Mutual information of columns a and b given others: H(a, c) + H(b, c) - H(a, b, c) - H(c)."""
    # a, b and ``given`` have no column in common; ``n`` rows are drawn if it is not exact.
    terms = [(1.0, a + given), (1.0, b + given), (-1.0, a + b + given), (-1.0, given)]
    estimate = _signed(v, terms, n, seed)
    return exact(max(estimate.value, 0.0)) if estimate.method == "exact" else estimate


def _signed(v: ModelView, terms: list[tuple[float, Columns]], n: int, seed: int) -> Estimate:
    """A sum of entropies with signs: exact if all are, else all from the same draws, so that much noise cancels."""
    terms = [(sign, of) for sign, of in terms if of]
    total = 0.0
    for sign, of in sorted(terms, key=lambda term: -len(term[1])):  # the largest is the least likely to be exact
        value = exact_entropy(v, of)
        if value is None:
            break
        total += sign * value
    else:
        return exact(total)
    X = v.draw(n, seed)
    return averaged(np.sum([-sign * v.log_density(X, of) for sign, of in terms], axis=0))


def exact_entropy(v: ModelView, of: Columns) -> float | None:
    """Entropy of some columns in closed form (one tree, hidden trees), or else by quadrature; None if neither can."""
    hidden = v.model.hidden_trees()
    if hidden is not None:
        value = hidden_entropy(v, hidden, of)
    else:
        value = tree_entropy(v.forest, [v.number[k] for k in of]) if v.model.is_forest else None
    return value if value is not None else integral((v,), of, minus_p_log_p)


def tree_entropy(model: Forest, columns: list[int]) -> float | None:
    """Entropy of some columns of one tree, sum_l w_l (H_l - log w_l); None if leaves may overlap in these columns."""
    if not is_partition(model, columns):
        return None
    log_weight = model.leaves.log_weight
    used = log_weight[log_weight > -np.inf]
    return float(np.exp(log_weight) @ leaf_entropies(model, columns) - np.exp(used) @ used)


def leaf_entropies(model: Forest, columns: list[int]) -> np.ndarray:
    """Entropy (L,) of some columns in each leaf, the sum of the columns' own."""
    return np.asarray(sum(column_entropies(model.columns, model.leaves, j) for j in columns))


def minus_p_log_p(log_p: np.ndarray) -> np.ndarray:
    """-p log p, 0 where p is 0."""
    return -np.exp(log_p) * np.where(log_p > -np.inf, log_p, 0.0)
