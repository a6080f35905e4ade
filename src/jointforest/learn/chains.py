"""The chains of an imputer's proper draws: one for each joint of a bootstrap, and tables drawn by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..face.joint import Joint
from ..queries.rows.sampling import sample
from ..table.build_evidence import build
from ..table.fill import fill
from ..table.frames import decode, encode
from ..table.rows import take_rows
from ..table.schema import Schema
from .cell_means import cell_means
from .chained import coding_of, follow, learn_chain, said

_ROWS = 5_000  # that chains learn from, at most
_CHAIN = 1  # the stream of random numbers of learning them


class Chains:
    """Learned when made: from n rows, and how often the bootstrap of each of m joints drew them, float64 (m, n).

    ``times`` (n,) are the rows' own weights. What a joint says of a row counts where its bootstrap left the row out.
    """

    def __init__(
        self,
        schema: Schema,
        joints: list[Joint],
        X: Any,
        counts: np.ndarray,
        times: np.ndarray,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.schema, self.joints = schema, joints
        if len(times) > _ROWS:
            rows = np.sort(np.random.default_rng([seed, len(counts), _CHAIN]).permutation(len(times))[:_ROWS])
            X, counts, times = take_rows(X, rows), counts[:, rows], times[rows]
        cells = self._cells(X)[0]
        self.coding = coding_of(schema, cells)
        means = cell_means(joints, schema, X, np.arange(cells.shape[1]), n_jobs)
        honest = said(self.coding, means, counts == 0.0)
        self.chains = []
        for k, joint in enumerate(joints):
            rng = np.random.default_rng([seed, k, _CHAIN])
            start = self._cells(_drawn(joint, X, int(rng.integers(2**62)), n_jobs))[0]
            self.chains.append(learn_chain(self.coding, cells, start, honest, counts[k] * times, rng))

    def draw(self, X: Any, starts: list[Any], rng: np.random.Generator, n_jobs: int | None) -> list[Any]:
        """Tables like X with missing cells drawn: the k-th begins with the k-th of ``starts``, a draw of joint k."""
        cells, unseen = self._cells(X)
        asked = np.flatnonzero((np.isnan(cells) & ~unseen).any(axis=0))
        means = cell_means(self.joints, self.schema, X, asked, n_jobs)
        says = said(self.coding, means, np.ones((len(self.joints), len(cells)), dtype=bool))
        tables = []
        for start, chain in zip(starts, self.chains, strict=False):
            now = follow(self.coding, chain, cells, unseen, self._cells(start)[0], says, rng)
            tables.append(fill(self.schema, X, cells, unseen, now))
        return tables

    def _cells(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and codes (n, d), and which cells are levels never seen."""
        return encode(self.schema, X, self.schema.whole.names)


def _drawn(joint: Joint, X: Any, seed: int, n_jobs: int | None) -> Any:
    """X as a joint fills it by a draw; who asks for tables is warned of rows without support, not who learns."""
    evidence = build(joint.schema, *encode(joint.schema, X, joint.schema.whole.names))
    return decode(joint.schema, sample(joint.model, evidence, 1, seed, False, n_jobs))
