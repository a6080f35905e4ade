"""Texts as values of cells: typing errors between two texts, and the probability of a new text by its letters."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

WAYS = ("replaced", "inserted", "left out", "exchanged")
"""Kinds of edits. A pair of texts has one kind, which all of its edits are taken to have."""


class Slips:
    """Pairs of a column's texts, a seen one and its possible truth, that differ by typing errors.

    The first ``n_seen`` texts are those that some cell has.

    seen, truth : int arrays (P,). Indices of the two texts.
    edits : int array (P,). Least number of letters to insert, delete, replace, or exchange with the next one. It is 1
        if one letter is replaced by another everywhere, as by a wrong encoding, or if only capitals, accents and spaces
        differ.
    letters : list of P Counter. Letters of the seen text that the true one does not have, with their numbers.
    way : int array (P,). Kind of the edits, an index into `WAYS`.
    length : int array (P,). Number of letters of the true text; of its distinct letters if a letter is replaced
        everywhere.
    """

    def __init__(self, texts: Sequence[str], n_seen: int) -> None:
        most = np.array([1 if len(text) < 5 else 2 + len(text) // 25 for text in texts], np.int64)
        self.seen, self.truth = _candidates(texts, most)
        own = self.seen < n_seen
        self.seen, self.truth = self.seen[own], self.truth[own]
        self.edits = edits_between(texts, self.seen, self.truth)
        found = zip(self.seen.tolist(), self.truth.tolist(), self.edits.tolist(), strict=True)
        forms = list(map(plain_form, texts))
        everywhere = np.array(
            [n > 1 and (_is_one_letter(texts[s], texts[t]) or forms[s] == forms[t]) for s, t, n in found], bool
        )
        self.edits[everywhere] = 1
        near = self.edits <= most[self.truth]
        self.seen, self.truth, self.edits = self.seen[near], self.truth[near], self.edits[near]
        counts = [Counter(text) for text in texts]
        pairs = list(zip(self.seen.tolist(), self.truth.tolist(), strict=True))
        self.letters = [counts[s] - counts[t] for s, t in pairs]
        self.length = np.array([len(texts[t]) for _, t in pairs], np.int64)
        longer = np.array([len(texts[s]) for s, _ in pairs], np.int64) - self.length
        for p in np.flatnonzero(everywhere[near]).tolist():
            self.letters[p] = Counter(set(self.letters[p]))
            self.length[p] = len(counts[pairs[p][1]])  # any distinct letter may be the replaced one
        self._spots = np.where([_is_one_place(texts[s], texts[t]) for s, t in pairs], 1, self.edits)
        crossed = np.array([not extra for extra in self.letters], bool)
        self.way = np.where(longer > 0, 1, np.where(longer < 0, 2, np.where(crossed, 3, 0)))

    def log_probability(self, letter: Mapping[str, float], way: np.ndarray, further: float) -> np.ndarray:
        """log p(seen text | true text, a typing error), (P,). ``letter`` contains the log-probabilities of wrong
        letters, and ``way`` the probabilities of `WAYS`. After each edit there is another one with probability
        ``further``, half of them at the same place."""
        least = min(letter.values(), default=-4.0)
        typed = [sum(n * letter.get(c, least) for c, n in extra.items()) for extra in self.letters]
        places = np.maximum(self.length + np.array([0, 1, 0, -1])[self.way], 1)
        each = np.log(way)[self.way] - np.log(places)
        more = np.log1p(-further) + (self.edits - 1) * np.log(0.5 * further)  # at the same place, or elsewhere
        return np.asarray(more + self._spots * each + np.array(typed))


def _is_one_place(a: str, b: str) -> bool:
    """Whether two texts are equal but for at most one letter of the shorter one, and letters in its place."""
    least = min(len(a), len(b))
    first = next((k for k in range(least) if a[k] != b[k]), least)
    last = next((k for k in range(least - first) if a[-1 - k] != b[-1 - k]), least - first)
    return first + last >= least - 1


def plain_form(text: str) -> str:
    """The text in lower case, without accents, with single spaces and none at its ends."""
    letters = unicodedata.normalize("NFKD", text).casefold()
    return " ".join("".join(c for c in letters if not unicodedata.combining(c)).split())


def _is_one_letter(seen: str, truth: str) -> bool:
    """Whether one letter is replaced by another at all of its positions."""
    changed = {(t, s) for s, t in zip(seen, truth, strict=False) if s != t}
    if len(seen) != len(truth) or len(changed) != 1:
        return False
    old, new = changed.pop()
    return truth.replace(old, new) == seen


def _candidates(texts: Sequence[str], most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different texts that may be near each other. Their letters, in any order, differ by at most the allowed
    edits ``most``; or one letter is replaced everywhere, or the plain forms are equal. This is cheaper than
    `edits_between`, which then selects among the pairs."""
    alphabet = {c: k for k, c in enumerate(sorted({c for text in texts for c in text}))}
    bag = np.zeros((len(texts), len(alphabet)), np.int16)
    for i, text in enumerate(texts):
        for c in text:
            bag[i, alphabet[c]] += 1
    length = np.array([len(text) for text in texts], np.int64)
    form = np.unique([plain_form(text) for text in texts], return_inverse=True)[1] if texts else length
    order = np.argsort(length, kind="stable")
    bag, ordered = bag[order], length[order]
    seen, truth = [], []
    for i, first in enumerate(order.tolist()):
        near = slice(*np.searchsorted(ordered, [length[first] - most.max(), length[first] + most.max() + 1]))
        gap = bag[near] - bag[i]
        extra, total = np.maximum(gap, 0).sum(axis=1), gap.sum(axis=1)
        apart = np.maximum(extra, extra - total)
        is_one = (total == 0) & ((gap > 0).sum(axis=1) == 1) & ((gap < 0).sum(axis=1) == 1)
        other = order[near][(apart <= most[order[near]]) | is_one | (form[order[near]] == form[first])]
        other = other[other != first]
        seen.append(np.full(len(other), first))
        truth.append(other)
    return np.concatenate([np.empty(0, np.int64), *seen]), np.concatenate([np.empty(0, np.int64), *truth])


def edits_between(texts: Sequence[str], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Edits between pairs of texts, (P,): Levenshtein's distance, with neighbours exchanged as one edit."""
    width = max(map(len, texts), default=0)
    letters = np.zeros((len(texts), width + 1), np.uint32)
    for i, text in enumerate(texts):
        letters[i, : len(text)] = [ord(c) for c in text]
    length = np.array([len(text) for text in texts], np.int64)
    out = np.empty(len(a), np.int64)
    block = max(1, 20_000_000 // ((width + 2) * 8))
    for start in range(0, len(a), block):
        s, t = a[start : start + block], b[start : start + block]
        every, wide = np.arange(len(s)), int(length[t].max())
        x, y = letters[s], letters[t]
        two, one = None, np.tile(np.arange(wide + 1, dtype=np.int32), (len(s), 1))
        result = np.where(length[s] == 0, length[t], 0)
        for i in range(1, int(length[s].max()) + 1):
            now = np.empty_like(one)
            now[:, 0] = i
            differs = x[:, i - 1, None] != y[:, :wide]
            for k in range(1, wide + 1):
                now[:, k] = np.minimum(np.minimum(one[:, k], now[:, k - 1]) + 1, one[:, k - 1] + differs[:, k - 1])
                if two is not None and k > 1:
                    crossed = (x[:, i - 1] == y[:, k - 2]) & (x[:, i - 2] == y[:, k - 1])
                    now[:, k] = np.where(crossed, np.minimum(now[:, k], two[:, k - 2] + 1), now[:, k])
            two, one = one, now
            done = length[s] == i
            result[done] = one[every[done], length[t[done]]]
        out[start : start + block] = result
    return out


def log_new(texts: Sequence[str], weight: np.ndarray) -> np.ndarray:
    """log p(text) of each text, (U,), by a model of the letters of the other texts: each given the two before it.
    ``weight`` (U,) is the weight of each text in the counts."""
    # Letters without counts get a small probability (Witten and Bell 1991).
    alphabet = len({c for text in texts for c in text}) + 2
    tables: list[dict[str, dict[str, float]]] = [{}, {}, {}]
    padded = [f"\0\0{text}\1" for text in texts]
    for text, w in zip(padded, weight.tolist(), strict=True):
        for k in range(2, len(text)):
            for order in range(3):
                row = tables[order].setdefault(text[k - order : k], {})
                row[text[k]] = row.get(text[k], 0.0) + w
    totals = [{before: sum(row.values()) for before, row in table.items()} for table in tables]
    out = np.zeros(len(texts))
    for i, (text, w) in enumerate(zip(padded, weight.tolist(), strict=True)):
        own: list[Counter[tuple[str, str]]] = [Counter() for _ in range(3)]
        context: list[Counter[str]] = [Counter() for _ in range(3)]
        for k in range(2, len(text)):
            for order in range(3):
                own[order][text[k - order : k], text[k]] += 1
                context[order][text[k - order : k]] += 1
        for k in range(2, len(text)):
            p = 1.0 / alphabet
            for order in range(3):
                before = text[k - order : k]
                row = tables[order][before]
                n = max(row[text[k]] - w * own[order][before, text[k]], 0.0)
                total = max(totals[order][before] - w * context[order][before], 0.0)
                kinds = 1.0 + 0.5 * len(row)
                p = (n + kinds * p) / (total + kinds)
            out[i] += np.log(p)
    return out
