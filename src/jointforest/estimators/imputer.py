"""Missing cells filled by a joint, as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ..api.joint import Joint
from ..data.evidence import build
from ..data.frames import decode, encode_ranges, fill, read, row_weights, take_rows
from ..inference.sampling import sample
from ..learners.base import Learner, check_learner, draw_bootstrap, joint_of
from ..learners.generative.targets import as_table
from ..learners.hidden_tree.hidden_tree_forest import HiddenTreeForest, as_chosen
from ..runtime.parameters import FLAG, Number, check_number, parameter, seed_of
from ..runtime.threads import threaded
from .chained import Chain, RegressorCoding, average_means, cell_means, coding_of, follow_chain, learn_chain

# ---- The chains of an imputer's draws, and tables drawn by them.

_ROWS = 5_000
"""Most rows that chains learn from, which bounds time; the imputer keeps them."""
_CHAIN = 1
"""Number of the stream of random numbers with which chains learn."""


class Chains:
    """One chain for each table, learned from another bootstrap of the n rows of X when a table first needs it. Without
    ``is_proper`` all chains use one joint. With it, chain k uses joint k, and posterior means of a row average the
    joints whose bootstraps left the row out. The rows' own weights are ``times`` (n,). Columns of rules that ``joint``
    enforces keep what was drawn by a joint that enforces these rules, so that the rules hold."""

    def __init__(
        self, joint: Joint, joints: list[Joint], is_proper: bool, X: Any, times: np.ndarray, seed: int
    ) -> None:
        self.schema, self.joints, self.is_proper = joint.schema, joints, is_proper
        rules = _enforced(joint)
        self._starts = [each if rules.keys() <= _enforced(each).keys() else joint for each in joints]
        self._times, self._seed, self._n = times, seed, len(times)
        self._rows = np.arange(len(times))
        if len(times) > _ROWS:
            rng = np.random.default_rng([seed, self._n, _CHAIN])
            self._rows = np.sort(rng.permutation(len(times))[:_ROWS])
        self._X = take_rows(X, self._rows)
        ruled = {name for columns in rules.values() for name in columns}
        self._free = [j for j, column in enumerate(self.schema.columns) if column.name not in ruled]
        self._learned: dict[int, Chain] = {}

    def draw(self, X: Any, m: int, ranges: str, rng: np.random.Generator) -> list[Any]:
        """Tables like X with missing cells drawn: each begins with a draw of its joint, of ranges, too."""
        cells, unseen, is_range = self._cells(X)
        hidden = np.isnan(cells) & ~unseen & ~is_range
        asked = {j: np.flatnonzero(hidden[:, j]) for j in self._free if hidden[:, j].any()}
        posterior_means = average_means(self._coding, cell_means(self.joints, self.schema, X, asked))
        tables, exact = [], is_range & (ranges == "fill")
        for k in range(m):
            start = self._cells(self._joint(k).impute(X, "sample", None, rng, ranges="fill"))[0]
            known = np.where(is_range, start, cells)
            now = follow_chain(self._coding, self._chain(k), known, unseen, start, posterior_means, rng)
            tables.append(fill(self.schema, X, cells, unseen | (is_range & ~exact), now, exact))
        return tables

    def _chain(self, k: int) -> Chain:
        """The regressions of table k."""
        if k not in self._learned:
            rng = np.random.default_rng([self._seed, k, _CHAIN])
            start = self._cells(_filled_by_draw(self._joint(k), self._X, int(rng.integers(2**62))))[0]
            weight = self._counts(k) * self._times[self._rows]
            cells, _, is_range = self._cells(self._X)
            cells = np.where(is_range, start, cells)
            self._learned[k] = learn_chain(self._coding, cells, start, self._posterior_means, weight, rng)
        return self._learned[k]

    @cached_property
    def _coding(self) -> RegressorCoding:
        return coding_of(self.schema, self._cells(self._X)[0])

    @cached_property
    def _posterior_means(self) -> dict[int, np.ndarray]:
        """Of the rows to learn from."""
        asked = dict.fromkeys(self._free, np.arange(len(self._rows)))
        counted = np.stack([self._counts(k) == 0 for k in range(len(self.joints))]) if self.is_proper else None
        return average_means(self._coding, cell_means(self.joints, self.schema, self._X, asked, counted))

    def _counts(self, k: int) -> np.ndarray:
        """How often bootstrap k has each of the rows to learn from."""
        return bootstrap(self._n, self._seed, k)[self._rows]

    def _joint(self, k: int) -> Joint:
        """Of which the draw is that table k starts with."""
        return self._starts[k if self.is_proper else 0]

    def _cells(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers and codes (n, d), and which cells are levels never seen, and which are ranges."""
        cells, unseen, ranges = encode_ranges(self.schema, X, self.schema.all_columns.names)
        return cells, unseen, np.zeros(cells.shape, bool) if ranges is None else ranges.number >= 0


def _enforced(joint: Joint) -> dict[str, tuple[str, ...]]:
    """Rules that a joint enforces, as texts, and their columns."""
    return {str(rule): rule.columns for rule in joint.rules if rule.is_enforced}


def bootstrap(n: int, seed: int, k: int) -> np.ndarray:
    """How often bootstrap k has each of n rows."""
    return draw_bootstrap(n, n, True, seed, k)


def _filled_by_draw(joint: Joint, X: Any, seed: int) -> Any:
    """X as a joint fills it by a draw; who asks for tables is warned of rows without support, not who learns."""
    cells, unseen, ranges = encode_ranges(joint.schema, X, joint.schema.all_columns.names)
    evidence = build(joint.schema, cells, unseen, ranges=ranges)
    return decode(joint.schema, sample(joint.distribution, evidence, 1, seed, False))


INDICATOR = "missingindicator_"
"""What the names of indicator columns begin with, as in scikit-learn."""


@dataclass(eq=False, repr=False)
class JointImputer(OneToOneFeatureMixin, TransformerMixin, Learner):
    """Fill missing cells by a joint and regressions given the known cells of the row; known cells stay.

    ``transform`` gives one table, as pipelines want it, ``impute`` several, for multiple imputation (Rubin 1987).

    Parameters
    ----------
    estimator : estimator, optional
        An unfitted learner whose ``fit(X)`` ends in ``joint_``. Default: a `HiddenTreeForest`.
    method : {"mean", "sample"}
        What ``transform`` fills in: means of numbers (on a grid the nearest cell) and the most probable levels, or
        draws.
    m : int
        Tables that ``impute`` draws.
    proper : bool
        Whether each table has a joint of its own, learned from a bootstrap of the rows, so that tables differ by what
        is not known of the joint, too. ``fit`` then learns ``m`` joints more.
    ranges : {"keep", "fill"}
        Whether cells of which only a range is known stay as they are, or get values in their ranges.
    add_indicator : bool
        Whether tables get a column of booleans (in arrays 0 and 1) for each column with missing cells at learning.
    n_jobs : int or None
        Threads of imputing, and of the default estimator (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None
        Of draws, of bootstraps, and of the default estimator; a given estimator has its own.

    Attributes
    ----------
    joint_ : Joint
        Learned from all rows.
    joints_ : list of Joint
        Those that draws come from: ``m`` of them if ``proper``, else ``joint_`` alone.
    estimator_ : estimator
        The fitted learner of ``joint_``.
    indicated_ : tuple of int
        Columns that have an indicator.
    n_features_in_ : int
    feature_names_in_ : array of str, only if fitted on a frame

    Notes
    -----
    A drawn table starts with a draw of a joint. Then each column is drawn by a regression on its posterior mean under
    the joint and on all other cells: ``docs/concepts/multiple-imputation.md``. Draws of the joint alone are those of
    `Joint.impute`.

    A transformer has no target to look at. If what you estimate afterwards relates a column to others, that column must
    be in the table that is imputed: see ``docs/how-to/impute-and-augment.md``.

    References
    ----------
    D. B. Rubin, *Multiple Imputation for Nonresponse in Surveys*, Wiley 1987, chapters 3 and 4.

    Examples
    --------
    >>> imputer = jf.JointImputer(jf.HiddenTreeForest(n_states=8, random_state=0), random_state=0).fit(penguins)
    >>> int(penguins.isna().sum().sum()), int(imputer.transform(penguins).isna().sum().sum())
    (19, 0)
    >>> [len(table) for table in imputer.impute(penguins, m=2)]
    [344, 344]
    """

    estimator: Any = None
    _: KW_ONLY
    method: str = parameter("mean", "mean", "sample")
    m: int = parameter(5, Number(1, whole=True))
    proper: bool = parameter(False, *FLAG)
    ranges: str = parameter("keep", "keep", "fill")
    add_indicator: bool = parameter(False, *FLAG)
    n_jobs: int | None = -1
    random_state: Any = None

    @threaded
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> JointImputer:
        """Learn the joint, or with ``proper`` one more for each draw.

        Parameters
        ----------
        X : frame, array or lists of n rows
        y : ignored
        sample_weight : array-like (n,), optional
            Weights of the rows in learning, not negative. A row of weight 0 is left out.

        Raises
        ------
        ValueError
            If a parameter is out of its range, the estimator needs a target, the table cannot be used, or it has a
            column of the name of an indicator.
        TypeError
            If the estimator is no learner of whole tables.
        """
        self._check()
        learner = self._learner()
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        reader = read(X)
        weight = None if sample_weight is None else row_weights(sample_weight, reader.n)
        self.indicated_ = tuple(np.flatnonzero(_missing(X).any(axis=0)).tolist())
        _check_indicators(reader.names, self.indicated_ if self.add_indicator else ())
        self._seed = self._draw_seed()
        self.estimator_ = _learned_clone(learner, X, weight)
        self.joint_: Joint = joint_of(self.estimator_)
        self.joints_ = [self.joint_]
        times = np.ones(reader.n) if weight is None else weight
        if self.proper:
            counts = [bootstrap(reader.n, self._seed, k) for k in range(self.m)]
            # trials in every bootstrap would take most of the time
            learner = as_chosen(self.estimator_) if isinstance(self.estimator_, HiddenTreeForest) else learner
            self.joints_ = [_learned_clone(learner, X, count * times, warns=False).joint_ for count in counts]
        self._chains = Chains(self.joint_, self.joints_, self.proper, X, times, self._seed)
        return self

    @threaded
    def transform(self, X: Any) -> Any:
        """The table without missing cells, a frame of the library and types at learning; the same at each call.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Columns of frames are matched by name; those that are not there are filled, too.

        Returns
        -------
        frame or array of n rows
            As ``impute``'s first with ``method="sample"``.

        Raises
        ------
        ValueError, TypeError
            If there are columns that were not there at learning, or cells of another kind.
        """
        if self.method == "sample":
            return self._contained(self.impute(X, m=1)[0])
        X = self._same_columns(as_table(X))
        return self._contained(self._indicate(X, self.joint_.impute(X, ranges=self.ranges)))

    @threaded
    def impute(self, X: Any, m: int | None = None, random_state: Any = None) -> list[Any]:
        """Several tables, each with other draws of the missing cells: multiple imputation.

        Parameters
        ----------
        X : frame, array or lists of n rows
        m : int, optional
            Number of tables; default: the estimator's. With ``proper`` not more than that.
        random_state : None, int, Generator or RandomState
            None: the imputer's own, so that the same table is filled in the same way again.

        Returns
        -------
        list of m frames or arrays, as ``transform`` gives them

        Raises
        ------
        ValueError
            If m is not positive, or larger than the number of joints of proper draws.

        Examples
        --------
        >>> one = jf.HiddenTreeForest(n_states=8, random_state=0)
        >>> imputer = jf.JointImputer(one, m=2, proper=True, random_state=0).fit(penguins)
        >>> first, second = imputer.impute(penguins)
        >>> first.equals(second), first.dtypes.equals(penguins.dtypes)
        (False, True)
        """
        X = self._same_columns(as_table(X))
        m = self.m if m is None else m
        check_number("m", m, 1, whole=True)
        if self.proper and m > len(self.joints_):
            raise ValueError(
                f"m={m}: proper draws come from a joint each, and fit learned {len(self.joints_)}; set m before fit"
            )
        rng = np.random.default_rng(self._seed if random_state is None else seed_of(random_state))
        return [self._indicate(X, table) for table in self._chains.draw(X, m, self.ranges, rng)]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of ``transform``: those of the table, then those of indicators.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names to be used where the imputer was fitted on an array.

        Returns
        -------
        array of str objects
        """
        check_is_fitted(self, "joint_")
        names = super().get_feature_names_out(input_features)
        more = [f"{INDICATOR}{names[j]}" for j in (self.indicated_ if self.add_indicator else ())]
        return np.concatenate([names, np.array(more, dtype=object)])

    def _learner(self) -> Any:
        """The learner, unfitted."""
        if self.estimator is None:
            return HiddenTreeForest(random_state=self._draw_seed())
        check_learner(self.estimator)
        if is_classifier(self.estimator) or is_regressor(self.estimator):
            raise ValueError(
                f"estimator: {type(self.estimator).__name__} needs a target; give a learner of whole tables, such as "
                "HiddenTreeForest, and the target as one of the columns if it is to be used"
            )
        return clone(self.estimator)

    def _contained(self, filled: Any) -> Any:
        """The table, in pandas if ``set_output`` wants that: scikit-learn would lose the types of other frames."""
        asked = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        is_frame = not isinstance(filled, np.ndarray)
        return nw.from_native(filled, eager_only=True).to_pandas() if asked == "pandas" and is_frame else filled

    def _indicate(self, X: Any, filled: Any) -> Any:
        """The filled table with indicators of what was missing in X, if they are wanted."""
        if not (self.add_indicator and self.indicated_):
            return filled
        names = [column.name for column in self.joint_.schema.all_columns.columns]
        wanted = [names[j] for j in self.indicated_]
        given = read(X)
        flags = {
            name: given.cells(name).is_absent if name in given.names else np.ones(given.n, dtype=bool)
            for name in wanted
        }
        if isinstance(filled, np.ndarray):
            return np.column_stack([filled, np.column_stack(list(flags.values())).astype(filled.dtype)])
        if nw.dependencies.is_pandas_dataframe(filled):
            return filled.assign(**{INDICATOR + name: flag for name, flag in flags.items()})
        wide = nw.from_native(filled, eager_only=True)
        new = (nw.new_series(INDICATOR + name, flag.tolist(), nw.Boolean(), backend=wide.implementation)
               for name, flag in flags.items())  # fmt: skip
        return wide.with_columns(*new).to_native()


def _missing(X: Any) -> np.ndarray:
    """Which cells are missing, bool (n, d)."""
    reader = read(X)
    return np.column_stack(
        [np.zeros((reader.n, 0), dtype=bool), *(reader.cells(name).is_absent for name in reader.names)]
    )


def _check_indicators(names: list[str], indicated: tuple[int, ...]) -> None:
    """Refuse a table that has a column of the name of an indicator."""
    for j in indicated:
        if (name := INDICATOR + names[j]) in names:
            raise ValueError(
                f"add_indicator: the indicator of column {names[j]!r} would be {name!r}, which the table has already; "
                "rename that column, or leave it out"
            )


def _learned_clone(learner: Any, X: Any, weight: np.ndarray | None, warns: bool = True) -> Any:
    """A clone of the learner, fitted with weights (n,) if it takes any, else on rows that are drawn by weight."""
    # Weights keep a row and its copies together where a learner holds rows out.
    one = clone(learner)
    one._warns = warns
    if weight is None:
        return one.fit(X)
    if has_fit_parameter(one, "sample_weight"):
        return one.fit(X, sample_weight=weight)
    if (weight != np.rint(weight)).any():
        raise ValueError(f"{type(one).__name__}.fit takes no sample_weight")
    return one.fit(take_rows(X, np.repeat(np.arange(len(weight)), weight.astype(int))))
