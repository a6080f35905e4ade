"""The joint distribution of a table: the public object that takes and returns frames."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

import narwhals as nw
import numpy as np

from ..data.conditions import AllOf, PerRow, without_missing
from ..data.evidence import Evidence, build, intersect
from ..data.frames import encode, encode_ranges, fill, warn_unseen
from ..data.meaning import refuse_pair
from ..data.reading import Reading, reading_of
from ..data.rules.rule import Rule
from ..data.schema import Schema, as_levels, snap
from ..inference.check.result import Check, Repair, check
from ..inference.counterfactual import Counterfactuals, counterfactual
from ..inference.explanation import Explanation, reverse, tree_text
from ..inference.information.divergence import ColumnDistance
from ..inference.information.integral import Estimate
from ..inference.sampling import impute_by_draws
from ..inference.support import Uncertainty, uncertainty
from ..models.base import Distribution, PosteriorState
from ..models.box_forest.box_forest import BoxForest
from ..models.box_forest.rake import rake
from ..models.box_forest.robustness import check_target, robustness
from ..models.file import model_to_arrow, save_model
from ..models.forde import write_forde
from ..runtime.parameters import Number, check_number, seed_of
from ..runtime.threads import threaded
from .ask import ask
from .fit_report import FitReport
from .pairs import compare, divergence, entropy, mutual_information
from .posterior import Marginal, Posterior, check_support, conditions_of, observe_missing, posterior_of
from .views import joint_html, part_sizes, size_text


class Joint:
    """The joint distribution of a table's columns, made by a learner or by `load`; it never changes.

    ``n_jobs`` of its methods is a number of threads; no answer depends on it.

    Frames may be pandas, polars or pyarrow tables or 2-D numpy arrays. Columns match by name (arrays: position), in any
    order; absent ones count as missing, unknown ones are an error. Missing cells are marginalised. A level
    never seen at learning counts as missing, with a penalty in log-densities, and is warned of (`UnseenLevelWarning`).

    Parameters
    ----------
    distribution : Distribution
    fitted_by : FitReport, optional

    Attributes
    ----------
    distribution : Distribution
    fitted_by : FitReport or None
        What `jf.fit` compared and chose; files do not keep it.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> joint.log_density(penguins).shape
    (344,)
    >>> joint.sample(3, random_state=0).shape
    (3, 7)
    >>> 0.9 < joint.probability("species = Gentoo", given="body_mass_g > 5500") <= 1.0
    True
    """

    is_of_histories: ClassVar[bool] = False
    """Whether it is a joint of histories, not of single rows."""

    def __init__(self, distribution: Distribution, fitted_by: FitReport | None = None) -> None:
        self.distribution = distribution
        self.fitted_by = fitted_by

    def __repr__(self) -> str:
        names = ", ".join(self.schema.names[:4]) + (", ..." if len(self.columns) > 4 else "")
        size = " + ".join(size_text(part) for part in part_sizes(self.distribution))
        return f"Joint({len(self.columns)} columns: {names}; {size})"

    def _repr_html_(self) -> str:
        return joint_html(repr(self), self.distribution)

    # -- what it is

    @property
    def schema(self) -> Schema:
        """What is known of the columns: kinds, grids, point masses, levels."""
        return self.distribution.schema

    @property
    def columns(self) -> tuple[str | int, ...]:
        """Names of the columns, in order."""
        return tuple(column.label for column in self.schema.columns)

    @property
    def kinds(self) -> dict[str | int, str]:
        """Kind of each column: see `data.schema.KINDS`."""
        return {column.label: column.kind for column in self.schema.columns}

    @property
    def reading(self) -> Reading:
        """How the table was read: kinds, what was converted or set aside and why, and what looks wrong.

        Examples
        --------
        >>> frame = pd.DataFrame({"rate": ["15%", "3%", "20%", "7%"] * 25, "sold": ["yes"] * 50 + ["no"] * 50})
        >>> print(jf.JointTree(random_state=0).fit(frame).joint_.reading.notice)
        column 'rate': text read as numbers: unit %, such as '12%'
        """
        return reading_of(self.schema)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules between columns that the table obeys, such as ``education <-> education_num``: found, or declared.

        ``str`` gives a rule's text; ``rows`` are the rows that support it, and ``exceptions`` those that contradict it.
        Where ``is_enforced``, rows that contradict the rule have probability 0. See ``docs/how-to/rules.md``.

        Examples
        --------
        >>> rows = range(1000)
        >>> frame = pd.DataFrame({"net": [k % 17 for k in rows], "tax": [k % 7 for k in rows]})
        >>> joint = jf.JointTree(random_state=0).fit(frame.assign(total=frame["net"] + frame["tax"])).joint_
        >>> str(joint.rules[0]), joint.rules[0].rows
        ('total = net + tax', 1000)
        """
        return self.schema.rules

    @property
    def n_trees(self) -> int:
        """Number of trees, hidden ones included, the background not counted."""
        return sum(part.get("trees", 0) for part in part_sizes(self.distribution))

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees, the background not counted; hidden trees have none."""
        return sum(part.get("leaves", 0) for part in part_sizes(self.distribution))

    @property
    def n_states(self) -> int:
        """Most hidden states of a column; 0 without hidden trees."""
        return max(part.get("states", 0) for part in part_sizes(self.distribution))

    @property
    def epsilon(self) -> float:
        """Weight of the background; 0 if there is none."""
        shares = zip(self.distribution.components, np.exp(self.distribution.log_weight).tolist(), strict=True)
        trees = [(part.box_trees(), share) for part, share in shares]
        found = [share * np.exp(of.log_weight[of.is_background(np.arange(len(of.tree)))]) for of, share in trees if of]
        return float(np.sum(np.concatenate([np.zeros(1), *found])))

    def levels(self, column: str) -> tuple[Any, ...]:
        """Levels of a categorical, ordered or boolean column, in the order of `predict_proba`; () of a numeric one."""
        return self.schema[column].levels

    def info(self) -> dict[str, Any]:
        """Size, parts and columns of the model, as plain dicts and lists.

        Returns
        -------
        dict
            ``trees``, ``leaves``, ``states``, ``epsilon``; ``n_rows`` of the training table, 0 if unknown;
            ``components`` and ``columns`` as lists of dicts. The ``notes`` of a column say what was converted and what
            looks wrong. ``set_aside`` gives the reason for each column that takes no part in the model. ``rules`` are
            the rules between columns, as texts, with the numbers of rows and of exceptions. ``checked`` is how answers
            of the joint compared with counts of rows when `jf.fit` had learned it, in words.

        Examples
        --------
        >>> about = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_.info()
        >>> about["trees"], about["columns"][0]["levels"], about["set_aside"]
        (1, ['Adelie', 'Chinstrap', 'Gentoo'], {})
        """
        notes = {column.name: list(column.notes) for column in self.reading.columns}
        columns = [
            {"name": c.name, "kind": c.kind, "step": c.step, "n_observed": c.n_observed, "atoms": list(c.atoms)}
            | {"notes": notes[c.name]}
            | (
                {"levels": list(c.levels)}
                if c.is_categorical
                else {"minimum": c.scalar(c.minimum), "maximum": c.scalar(c.maximum)}
            )
            for c in self.schema.columns
        ]
        size = {"trees": self.n_trees, "leaves": self.n_leaves, "states": self.n_states, "epsilon": self.epsilon}
        size["n_rows"] = self.schema.n_rows
        aside = dict(self.schema.reasons_aside)
        rules = [
            {"rule": str(rule), "rows": rule.rows, "exceptions": rule.exceptions, "enforced": rule.is_enforced}
            for rule in self.schema.rules
        ]
        parts, checked = part_sizes(self.distribution), self.schema.checked
        return {**size, "components": parts, "columns": columns, "set_aside": aside, "rules": rules, "checked": checked}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to a `.joint` file: see `models.file.save_model`; `load` reads it."""
        save_model(self.distribution, path)

    def to_arrow(self) -> dict[str, Any]:
        """All parameters as Arrow tables, for tools that read tables; `from_arrow` makes the joint of them again.

        Returns
        -------
        dict of str to pyarrow.Table
            ``components``, with the schema as JSON in its metadata, and those of each part: ``docs/how-to/formats.md``.

        Examples
        --------
        >>> joint.to_arrow()["components"]["kind"].to_pylist()
        ['forest']
        """
        return model_to_arrow(self.distribution)

    def to_forde(self, folder: str | os.PathLike[str]) -> None:
        """Write the parameters for the R package arf: ``forest``, ``cnt``, ``cat`` and ``meta.parquet`` in a folder.

        They are the tables of numbers that its function ``forde`` gives; R itself was not run on them, see
        ``docs/how-to/formats.md``. Numbers on grids are continuous there, rounded when drawn.

        Parameters
        ----------
        folder : path
            Made if it is not there.

        Raises
        ------
        ValueError
            If the joint is more than a forest of normal or uniform leaves: background (``epsilon``), point masses,
            dates, quantile or other dependent leaves; the message names what.
        """
        write_forde(self.distribution, folder)

    def explore(
        self, data: Any = None, *, model: Any = None, title: str = "joint", port: int = 0, browser: bool | None = None
    ) -> Any:
        """A page in the browser that shows the joint: evidence by a click on a picture, and everything else follows.

        In a notebook it is shown there, live where anywidget is installed (``pip install 'jointforest[notebook]'``).
        Elsewhere it is served to this machine alone, by a thread, until it is closed or Python ends.
        What the page can do, and who may ask: ``docs/how-to/explorer.md``.

        Parameters
        ----------
        data : frame, optional
            Rows to look at beside the joint.
        model : fitted model of scikit-learn, XGBoost, LightGBM or CatBoost, optional
            What it predicts of a row is shown with the row (`ExpectedPredictor`).
        title : str
            What the page calls the joint, such as the name of its file.
        port : int
            0: any that is free.
        browser : bool, optional
            Whether to open the page in the browser, from a notebook too; False serves it and opens nothing.

        Returns
        -------
        Explorer or NotebookExplorer
            With ``close()`` and ``show(joint)``, which shows another joint on the same page; in the browser with
            ``url`` and ``wait()``, too.

        Raises
        ------
        ImportError
            Without ``pip install 'jointforest[explore]'``.
        OSError
            If the port is taken.
        TypeError, ValueError
            If the model is of no supported type, or takes columns that the joint does not have.

        Examples
        --------
        >>> with joint.explore(browser=False) as page:
        ...     page.url.startswith("http://127.0.0.1:")
        True
        """
        from ..explorer.open import explore  # a sixth of what loading a joint imports

        return explore(self, title, data, model, port, browser)

    def report(
        self,
        path: str | os.PathLike[str],
        data: Any = None,
        *,
        holdout: Any = None,
        target: str | None = None,
        examples: int = 0,
        title: str | None = None,
    ) -> None:
        """Write a report: one file of HTML that opens from disk, without a network, and in which clicks are evidence.

        See ``docs/how-to/report.md``.

        Parameters
        ----------
        path : path
            Of the file to write.
        data : frame of n rows, optional
            The table that was learned from: how true the joint is to it (`jf.fidelity`), and its columns beside the
            joint's. No row of it is in the file unless ``examples`` says so.
        holdout : frame, optional
            Rows of the same source that were not learned from, for `jf.fidelity`.
        target : str, optional
            A column, of which the report shows the best predictors.
        examples : int
            So many rows of ``data`` are shown: those of least log-density, with their unlikely cells; and at most as
            many cells that are probably wrong (`check`).
        title : str, optional
            What the report calls the joint, such as the name of its file; default: "joint".

        Raises
        ------
        ImportError
            Without ``pip install 'jointforest[report]'``.
        IsADirectoryError, FileNotFoundError
            If the path is a directory, or lies in none.
        ValueError
            If there is no such target, ``holdout`` or ``examples`` come without ``data``, or the table has other
            columns than the joint.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> joint = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> path = pathlib.Path(tempfile.mkdtemp(), "penguins.html")
        >>> joint.report(path, title="penguins")
        >>> path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        from ..report.write import WantedSections, write_report

        write_report(self, path, WantedSections(data, holdout, target, examples, title))

    # -- density

    @threaded
    def log_density(self, frame: Any, *, n_jobs: int | None = -1) -> np.ndarray:
        """Log-density (natural logarithm) of each row; missing cells are marginalised.

        Numbers with a density count with it, those on a grid with the mass of their cell over its width, levels and
        point masses with their probability.

        Parameters
        ----------
        frame : frame of n rows

        Returns
        -------
        float64 array (n,)
            -inf only in a model without background.
        """
        return self.distribution.log_density(self._evidence(frame))

    @threaded
    def tree_log_density(self, frame: Any, *, n_jobs: int | None = -1) -> np.ndarray:
        """Log of each tree's share of a row's density, weight included; the background, if there is one, is last.

        Returns
        -------
        float64 array (n, n_trees) or (n, n_trees + 1)
            The log-sum of a row is its `log_density`.
        """
        return self.distribution.box_trees_for("a table of trees").tree_log_density(self._evidence(frame))

    @threaded
    def attribution(self, frame: Any, *, n_jobs: int | None = -1) -> np.ndarray:
        """Which cells make a row unlikely: log p(x_j | the other known cells of the row), exact, for any row.

        Compare a cell with the same column's cells in other rows: densities depend on the unit of the numbers.

        Parameters
        ----------
        frame : frame of n rows

        Returns
        -------
        float64 array (n, d)
            In the order of ``columns``; NaN where the cell is missing. A level never seen at learning has its penalty.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> odd = penguins.iloc[[0]].assign(species="Gentoo")  # an Adelie with another name
        >>> change = joint.attribution(odd) - joint.attribution(penguins.iloc[[0]])
        >>> joint.columns[change[0].argmin()]
        'species'
        """
        X, unseen = self._encode(frame)
        cells = self.distribution.attribution(build(self.schema, X, unseen))
        return np.where(unseen, [column.log_unseen for column in self.schema.columns], cells)

    @threaded
    def check(self, frame: Any, key: str | None = None, *, n_jobs: int | None = -1) -> Check:
        """Which cells of a table are wrong: for every cell the probability of that, its best value, and a reason.

        How often which error occurs is learned from the frame, without a clean row. The error model, and its limits:
        ``docs/how-to/check-a-table.md``.

        Parameters
        ----------
        frame : frame of n rows
            The table that the joint has learned, or another one.
        key : str, optional
            The column that names an entity of which several rows speak, such as a flight that several sources report.
            The rows then vote on its values. By default such a column is looked for.

        Returns
        -------
        Check
            ``cells`` is a frame with the columns row (position, from 0), column, value, p_wrong, best, p_best and
            reason. Identifiers and free text are not checked: ``left_out`` gives the reason.

        Raises
        ------
        ValueError
            If there is no such key.

        Examples
        --------
        >>> penguins = jf.datasets.load_penguins()
        >>> joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(penguins).joint_
        >>> penguins.loc[4, "body_mass_g"] *= 10
        >>> worst = joint.check(penguins).cells.iloc[0]
        >>> int(worst["row"]), worst["best"], worst["reason"]
        (4, '3450.0', 'digits shifted: 10 times 3450.0')
        """
        return check(self.distribution, frame, key)

    @threaded
    def repair(
        self,
        frame: Any,
        at_least: float = 0.95,
        keep: Collection[Any] = (),
        key: str | None = None,
        *,
        n_jobs: int | None = -1,
    ) -> Repair:
        """A table without its wrong cells, as far as their true values are known, and a table of all changes.

        Parameters
        ----------
        frame : frame of n rows
        at_least : float in 0..1
            Cells that are probably wrong, and blank texts, change if their best value has this probability.
        keep : sequence of str or of (int, str)
            Columns, or cells (row from 0, and column), that stay what they are.
        key, n_jobs
            As of `check`.

        Returns
        -------
        Repair
            ``frame``, of the same types, and ``changes``, with the columns of `Check.cells`.

        Raises
        ------
        ValueError, TypeError
            If ``at_least`` is no probability, or ``keep`` is a text.

        Examples
        --------
        >>> penguins = jf.datasets.load_penguins()
        >>> joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(penguins).joint_
        >>> penguins.loc[4, "body_mass_g"] *= 10
        >>> float(joint.repair(penguins).frame.loc[4, "body_mass_g"])
        3450.0
        """
        return self.check(frame, key).repair(at_least, keep)

    # -- evidence

    def given(self, evidence: Any = None, /, **conditions: Any) -> Posterior:
        """What is known after evidence.

        Parameters
        ----------
        evidence : frame, list of dicts, str, dict, Series, or None
            A frame has one posterior a row, and so has a list of dicts of conditions by column. A text (``"age >= 40
            and sex = 'Female'"``), such a dict, or a pandas Series (one row of a frame) describes one row.
        **conditions
            Conditions by column, added to every row: a value, a list of values, `between`, `AnyOf`, `AllOf`, `Not`;
            soft evidence, `likely` and `about`; or `Missing`.

        Raises
        ------
        ValueError
            Unknown columns, values that a column cannot have; `QuerySyntaxError` for a text that cannot be read.
        """
        if evidence is None or isinstance(evidence, str | Mapping) or nw.dependencies.is_pandas_series(evidence):
            known = {} if evidence is None else conditions_of(self.schema, evidence)
            for name, condition in conditions.items():
                refuse_pair(self.schema[name], condition)
                known[name] = AllOf(known[name], condition) if name in known else condition
            return posterior_of(self.distribution, known)
        model, log_missing, conditions = observe_missing(self.distribution, conditions)
        if isinstance(evidence, list) and all(isinstance(row, Mapping) for row in evidence):
            said = {name: PerRow([row.get(name) for row in evidence]) for name in dict.fromkeys(chain(*evidence))}
            without_missing(said)  # of all rows or none
            rows = build(self.schema, conditions=said, n=len(evidence))
        else:
            rows = self._evidence(evidence)
        both = intersect(self.schema, rows, conditions)
        return Posterior(model.observe(both), one=False, log_missing=log_missing, before=self.distribution)

    def condition(self, evidence: Any = None, /, **conditions: Any) -> Joint:
        """The joint distribution given evidence, as a joint of its own that can be saved, sampled and asked.

        How, and what is exact: ``docs/how-to/reshape-a-joint.md``.

        Parameters
        ----------
        evidence, **conditions
            As of `given`, of one row.

        Returns
        -------
        Joint
            Of all columns. It answers as ``given`` with the evidence does. A column without grid that has a value
            becomes ``mixed``, with the value as its only atom.

        Raises
        ------
        ValueError
            If the evidence has several rows, or probability 0.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> dream = joint.condition(island="Dream")
        >>> bool(abs(dream.probability("sex = MALE") - joint.probability("sex = MALE", "island = Dream")) < 1e-10)
        True
        """
        known = self.given(evidence, **conditions)
        if len(known) != 1:
            raise ValueError(f"condition: expected evidence of one row, got {len(known)} rows")
        known.check()
        n_rows = known.n_rows if self.schema.n_rows else 0.0
        model = known.state.distribution.condition(known.state.evidence)
        return Joint(model.with_schema(replace(model.schema, n_rows=float(n_rows), checked="")))

    def rake(self, frame: Any) -> Joint:
        """The joint nearest to this one whose columns have the marginals of a table, such as that of learning.

        Its density is this one's times a factor of each column whose marginal is more than 0.015 from the table's
        (total variation of levels, Kolmogorov distance of numbers). Leaves that a factor cuts become mixtures: the
        joint is larger then, and may be slower to ask.

        Parameters
        ----------
        frame : frame of n rows
            Cells may be missing: the marginal of a column is that of its known cells. Columns without any stay.

        Returns
        -------
        Joint
            This one if all columns are close enough.

        Raises
        ------
        ValueError
            If this joint is no single forest of boxes, if the frame has no rows, or if the joint would take more than
            4 GB.

        Warns
        -----
        UnseenLevelWarning
            Of levels that learning did not see: their cells count as missing.
        UserWarning
            Of columns whose marginal stays more than 0.1 off, as the joint has no rows that have them all.

        Notes
        -----
        Raking, iterative proportional fitting (Csiszar 1975): ``docs/how-to/reshape-a-joint.md``.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> raked = joint.rake(penguins)
        >>> share = (penguins["bill_depth_mm"] <= 16).sum() / penguins["bill_depth_mm"].notna().sum()
        >>> bool(abs(raked.marginal("bill_depth_mm").cdf(16) - share) < 0.02)
        True
        """
        forest = self.distribution.forest_for("rake")
        X = snap(forest.columns, self._encode(frame)[0])
        if not len(X):
            raise ValueError("rake: the frame has no rows; give the table whose marginals the joint shall have")
        raked = rake(forest, X)
        return self if raked is forest else Joint(BoxForest(raked))

    def select(self, *columns: str) -> Joint:
        """The joint distribution of some of the columns, as a joint of its own.

        Parameters
        ----------
        *columns : str
            Names, in any order; the table's order stays.

        Returns
        -------
        Joint
            It answers as this one does where the other columns are missing.

        Raises
        ------
        ValueError
            If a column is unknown, or named twice, or none is named.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> joint.select("sex", "island").columns
        ('island', 'sex')
        """
        if len(columns) == 1 and not isinstance(columns[0], str):
            raise ValueError(
                f"select takes names, not {type(columns[0]).__name__}: write select('a', 'b') or select(*names)"
            )
        twice = [name for k, name in enumerate(columns) if name in columns[:k]]
        if twice:
            raise ValueError(f"column {twice[0]!r} is named twice; name each column once")
        return Joint(self.distribution.marginalize([self.schema.index(column) for column in columns]))

    def marginal(self, column: str) -> Marginal:
        """Distribution of one column, with ``pdf``, ``cdf``, ``ppf``, ``pmf``, ``mean``, ``var``, ``std``, ``sample``.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> bool(3000 < joint.marginal("body_mass_g").ppf(0.5) < 5000)
        True
        """
        return self.given().marginal(column)

    @threaded
    def probability(self, event: str | Mapping[str, Any], given: Any = None, *, n_jobs: int | None = -1) -> Any:
        """Probability of an event, given evidence: see `Posterior.probability`.

        Parameters
        ----------
        event : str or dict
        given : frame, str, dict, or None
            As in `given`.

        Returns
        -------
        float, or float64 array (n,) if evidence is a frame
        """
        return self.given(given).probability(event)

    def query(self, text: str) -> Any:
        """Answer a query such as ``P(income = '>50K' | age >= 40)``; the language is in
        ``docs/reference/query-language.md``.

        Returns
        -------
        float, date or level; a dict of level to probability for ``P(column)``, of level to quantile for ``Q``; an
        `Estimate` for comparisons of columns
        """
        return ask(self.distribution, text)

    # -- explanations

    def tree_text(self, tree: int = 0, max_leaves: int | None = 100) -> str:
        """A tree as indented text: every test, with its share of the tree's rows, and the distribution in each leaf.

        Numbers by their mean and the interval of equal tails that holds 90 %, levels by the three most probable.

        Parameters
        ----------
        tree : int
            Number of the tree, 0 to ``n_trees - 1``.
        max_leaves : int or None
            Of larger trees the nodes that most rows reach are shown, until there are so many ends; the others show how
            many leaves are below them; of long lists of levels the first are shown. None: all of the tree.

        Raises
        ------
        ValueError
            If there is no such tree, or ``max_leaves`` is no positive integer.

        Examples
        --------
        >>> joint = jf.JointTree(max_leaf_nodes=3, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> joint.tree_text().splitlines()[:2]
        ["tree 0 of 1: 3 leaves; shares are of the tree's rows", '(all rows)  100.0%']
        """
        return tree_text(self.distribution.box_trees_for("tree_text"), tree, max_leaves)

    @threaded
    def reverse(
        self, event: str | Mapping[str, Any], k: int = 10, min_share: float = 0.01, *, n_jobs: int | None = -1
    ) -> Explanation:
        """The regions in which an event is most probable, as rules: the leaves' boxes, without the event's own columns.

        Probabilities are the joint's, whatever tree a region comes from; equal regions are listed once.

        Parameters
        ----------
        event : str or dict
            As of `probability`.
        k : int
            Most regions to list.
        min_share : float
            Smallest share of its tree's rows that a region's leaves must hold.

        Returns
        -------
        Explanation
            Prints as a table. Each dict of its ``rules`` has ``rule``, ``event_probability`` (P(event | region)),
            ``lift`` (that over P(event)) and ``probability`` (of the region). Empty if no region holds enough, or no
            leaf has a condition on another column.

        Raises
        ------
        ValueError
            If the event cannot be read or has probability 0, or a parameter is out of its range.

        Notes
        -----
        After ``reverse`` of pyjpt, the reference code of Nyga, Picklum, Schierenbeck, Beetz, "Joint Probability Trees"
        (2023); there regions are judged by the leaf's own distribution.

        Examples
        --------
        >>> joint.reverse("species = Gentoo", k=1).rules[0]["lift"] > 2
        True
        """
        return reverse(self.distribution, conditions_of(self.schema, event), k, min_share)

    # -- information

    @threaded
    def entropy(
        self,
        *columns: str,
        given: str | Sequence[str] | None = None,
        n_samples: int = 10_000,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> Estimate:
        """Entropy of columns, in nats: the mean of -log_density; given others, the conditional entropy.

        Of levels Shannon's, of numbers the differential entropy, which depends on their units and may be negative.

        Parameters
        ----------
        *columns : str
            None: all that are not given.
        given : str or sequence of str, optional
            Columns (not evidence: condition the joint on that) whose values are known.
        n_samples : int
            Rows to draw where the answer is not exact.
        random_state : None, int, Generator or RandomState

        Returns
        -------
        Estimate
            ``value``, ``standard_error``, ``method``. Exact (to about 1e-6) of few columns with levels or grids and at
            most one other of numbers, of a single tree without background and with all columns it splits on, and of
            two columns of any kind, three or four with few codes, under hidden trees.

        Raises
        ------
        ValueError
            If a column is unknown, named twice, or on both sides.

        Notes
        -----
        T. Cover, J. Thomas, "Elements of Information Theory" (2006), chapters 2 and 8; of mixtures, A. Vergari and
        others, "A compositional atlas of tractable circuit operations" (2021). Details:
        ``docs/how-to/measure-information.md``.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> joint.entropy("species").method
        'exact'
        >>> joint.entropy("species", given="island").value < joint.entropy("species").value
        True
        """
        return entropy(self.distribution, columns, given, n_samples, random_state)

    @threaded
    def mutual_information(
        self,
        a: str | Sequence[str],
        b: str | Sequence[str],
        given: str | Sequence[str] | None = None,
        *,
        bins: int | None = None,
        n_samples: int = 10_000,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> Estimate:
        """Mutual information of columns, in nats: the information of one side about the other, given further columns.

        0 if and only if they are independent; it does not depend on units.

        Parameters
        ----------
        a, b : str or sequence of str
            The two sides.
        bins : int, optional
            Put the numbers of each side, a single column, into so many bins of equal probability. The answer is then
            exact, finite, and can be counted in a table. The explorer, reports and `plot.dependence` show it for 16
            bins, in bits.
        given, n_samples, random_state, n_jobs
            As of `entropy`.

        Returns
        -------
        Estimate
            Exact where all its entropies are; a mean over draws may be a little below 0.

        Raises
        ------
        ValueError
            As `entropy`; if a side is empty, or has a column of the other.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> island = joint.mutual_information("species", "island")
        >>> island.method, island.value > joint.mutual_information("species", "sex").value
        ('exact', True)
        """
        return mutual_information(self.distribution, a, b, given, bins, n_samples, random_state)

    @threaded
    def divergence(
        self,
        other: Joint,
        measure: str = "kl",
        columns: str | Sequence[str] | None = None,
        *,
        n_samples: int = 10_000,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> Estimate:
        """How far another joint of the same columns is from this one.

        Parameters
        ----------
        other : Joint
            With the same columns, in any order, of the same kinds, grids and levels.
        measure : {"kl", "jensen-shannon", "total-variation", "hellinger"}
            With p this joint and q the other: KL(p || q) in nats, infinite if q rules out what p does not; the
            Jensen-Shannon divergence in nats, at most log 2 (its root is a metric); the total variation; the Hellinger
            distance (both metrics, at most 1).
        columns : str or sequence of str, optional
            Of these columns alone; then models may differ in the others.
        n_samples, random_state, n_jobs
            As of `entropy`.

        Returns
        -------
        Estimate
            Exact of few columns with levels or grids and at most one other of numbers.

        Raises
        ------
        ValueError
            If a column is absent in one, or differs in kind, grid or levels.

        Notes
        -----
        When its standard error can be trusted: ``docs/how-to/measure-information.md``.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> dream = joint.condition(island="Dream")
        >>> round(joint.divergence(joint, "hellinger", n_samples=100).value, 6)
        0.0
        >>> joint.divergence(dream, "total-variation", "species").value > 0.1
        True
        """
        beside = need_joint(other, "expected a Joint to compare with").distribution
        return divergence(self.distribution, beside, measure, columns, n_samples, random_state)

    @threaded
    def compare(
        self, other: Joint, columns: str | Sequence[str] | None = None, *, n_jobs: int | None = -1
    ) -> dict[str, ColumnDistance]:
        """Where another joint differs: the distance of each column's distributions, largest first; nothing is sampled.

        Parameters
        ----------
        other, columns
            As of `divergence`.

        Returns
        -------
        dict of str to ColumnDistance
            ``distance`` in 0..1: of numbers the largest distance of the CDFs, of levels the total variation; and
            ``wasserstein``: of numbers the area between the CDFs, in their units.

        Raises
        ------
        ValueError
            As `divergence`.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> found = joint.compare(joint.condition(island="Dream"))
        >>> list(found)[0], found["sex"].distance < found["species"].distance
        ('island', True)
        """
        beside = need_joint(other, "expected a Joint to compare with").distribution
        return compare(self.distribution, beside, columns)

    @threaded
    def counterfactual(
        self,
        row: Any,
        model_or_target: Any,
        wanted: Any,
        fixed: Sequence[str] = (),
        n: int = 5,
        *,
        unlikely: float = 20.0,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> Counterfactuals:
        """What would have to be different: plausible rows, few changes from a row, with another outcome predicted.

        How, and what is certain: ``docs/how-to/find-counterfactuals.md``.

        Parameters
        ----------
        row : frame of one row, dict of cells by column, or pandas Series
            Missing cells stay missing: they are marginalised, and not counted.
        model_or_target : str, fitted model, or function
            The name of a column, whose outcome the joint predicts from the row's other cells; a model with ``predict``
            (and ``predict_proba``, if it has ``classes_``), or an `ExpectedPredictor`; or a function of a frame.
        wanted : level, class, list of these, or `between`
            The outcome: a level that no other exceeds, levels or an interval that are more probable than not; of a
            model its class, or an interval of its predictions.
        fixed : sequence of str
            Columns that must not change. Others that a model does not look at change where its columns need them to.
        n : int
            Rows wanted.
        unlikely : float
            Rows are at least as dense as all but so many percent of the rows that have the fixed cells and the wanted
            outcome, or else as the row itself; 0: any that are not impossible.
        random_state : None, int, Generator or RandomState

        Returns
        -------
        Counterfactuals
            Fewest changes first, then the nearest, then the most probable: ``rows`` with ``validity``, ``changed``,
            ``distance`` and ``log_density``; without rows if none were found.

        Raises
        ------
        ValueError
            If the outcome is impossible, or the row's already; if no cell may change; unknown columns, levels, classes.
        TypeError
            If this is neither a column nor a model.

        Examples
        --------
        >>> joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(penguins).joint_
        >>> found = joint.counterfactual(penguins.iloc[[0]], "species", "Gentoo", fixed=["sex"], n=3, random_state=0)
        >>> found.rows["species"].tolist(), len(found.changed[0]) <= 5
        (['Gentoo', 'Gentoo', 'Gentoo'], True)
        """
        return counterfactual(self.distribution, row, model_or_target, wanted, fixed, n, unlikely, random_state)

    # -- frames out

    @threaded
    def sample(
        self,
        n: int,
        random_state: Any = None,
        missing: bool = False,
        *,
        n_jobs: int | None = -1,
        where: str | None = None,
    ) -> Any:
        """Draw n rows: a frame as at learning, with its types and levels.

        More rows than memory holds: ``given().sample_batches(n)``.

        Parameters
        ----------
        n, random_state, missing, n_jobs, where
            As of `Posterior.sample`.

        Returns
        -------
        frame of n rows

        Raises
        ------
        ValueError
            As of `Posterior.sample`.

        Examples
        --------
        >>> rows = joint.sample(50, 0, where="island in {Dream, Biscoe}, bill_length_mm > 2.5 * bill_depth_mm")
        >>> bool((rows["bill_length_mm"] > 2.5 * rows["bill_depth_mm"]).all()), sorted(rows["island"].unique())
        (True, ['Biscoe', 'Dream'])
        """
        return self.given().sample(n, random_state, missing, where=where)

    @threaded
    def impute(
        self,
        frame: Any,
        method: str = "mean",
        m: int | None = None,
        random_state: Any = None,
        *,
        ranges: str = "keep",
        n_jobs: int | None = -1,
    ) -> Any:
        """Fill the missing cells; every known one stays what it is.

        Parameters
        ----------
        frame : frame of n rows
        method : {"mean", "sample"}
            Means of numbers (on a grid the nearest cell) and the most probable levels, or one joint draw a row. Medians
            of dates where some, such as 9999-12-31, are far from all others.
        m : int, optional
            Number of draws, with ``method="sample"``.
        random_state : None, int, Generator or RandomState
        ranges : {"keep", "fill"}
            Whether cells of which only a range is known stay as they are, or get values in their ranges. If so, a
            column that `censored` names is left empty, as all cells are exact.

        Returns
        -------
        frame as at learning, n rows; with m a list of m frames
        """
        if method not in ("mean", "sample"):
            raise ValueError(f"method must be 'mean' or 'sample', got {method!r}")
        if m is not None and (method == "mean" or m not in Number(1, whole=True)):
            raise ValueError(f"m must be a positive integer, and goes with method='sample'; got m={m!r}, {method!r}")
        if ranges not in ("keep", "fill"):
            raise ValueError(f"ranges must be 'keep' or 'fill', got {ranges!r}")
        X, unseen, found = encode_ranges(self.schema, frame)
        warn_unseen(self.schema, frame, unseen)
        evidence = build(self.schema, X, unseen, ranges=found)
        exact = np.zeros(X.shape, bool) if found is None else found.number >= 0
        if ranges == "keep":
            unseen, exact = unseen | exact, np.zeros_like(exact)  # ranges stay as they are, too
        if method == "mean":
            filled, share = self.distribution.impute(evidence)
            check_support(share)
            for j in [j for j, column in enumerate(self.schema.columns) if column.kind == "datetime" and column.atoms]:
                free = np.flatnonzero(np.isnan(evidence.value[:, j]))  # no mean of 9999-12-31 and other dates is a date
                if len(free):
                    state = self.distribution.observe(evidence.take(free))
                    filled[free, j] = state.quantile(j, np.array([0.5]))[:, 0]
            return fill(self.schema, frame, X, unseen, filled, exact)
        draws, background = impute_by_draws(self.distribution, evidence, m or 1, seed_of(random_state))
        if background is None:
            background = self.distribution.observe(evidence).background_weight()
        check_support(background)
        each = draws.reshape(len(X), m or 1, X.shape[1])
        frames = [fill(self.schema, frame, X, unseen, each[:, k], exact) for k in range(m or 1)]
        return frames if m is not None else frames[0]

    @threaded
    def predict(self, frame: Any, target: str, *, n_jobs: int | None = -1, beta: float = 1.0) -> np.ndarray:
        """Most probable level, or mean of a number or date, of a target column; the frame's own is not examined.

        So every joint is a classifier, and a regressor, for each of its columns.

        Parameters
        ----------
        frame : frame of n rows
        target : str
        beta : float in 0..1
            How trees are combined: tree t counts p_t(known cells)^beta. 1 is the mixture that the joint is, 0 the
            average of the trees' answers (GeF+ and GeF of Correia et al. 2020, "Joints in Random Forests").

        Returns
        -------
        array (n,): float64, datetime64, or objects that are levels, or datetimes with a time zone

        Raises
        ------
        ValueError
            If there is no such column, or beta is not in 0..1.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> joint.predict(penguins[["bill_length_mm", "body_mass_g"]].tail(2), "species").tolist()
        ['Gentoo', 'Gentoo']
        """
        column = self.schema[target]
        if column.is_categorical:
            share = self.predict_proba(frame, target, beta=beta)
            number = np.where(np.isnan(share[:, 0]), np.nan, share.argmax(axis=1))
        else:
            number, _ = self._without(frame, target, beta).moments(self.schema.index(target))
        return np.asarray(column.values(number))

    @threaded
    def predict_proba(self, frame: Any, target: str, *, n_jobs: int | None = -1, beta: float = 1.0) -> np.ndarray:
        """Probabilities of the levels of a target column, float64 (n, K) in the order of ``levels(target)``.

        Parameters, errors: as of `predict`.
        """
        column = self.schema[target]
        if not column.is_categorical:
            hint = "use predict, or given(frame).quantile" + as_levels(column)
            raise ValueError(f"column {target!r} is {column.kind}: it has no levels; {hint}")
        return self._without(frame, target, beta).level_probabilities(self.schema.index(target))

    @threaded
    def robustness(
        self,
        frame: Any,
        target: str,
        *,
        n_jobs: int | None = -1,
        beta: float = 1.0,
        c: float = 1.0,
        shift: str = "leaf",
    ) -> np.ndarray:
        """How far every parameter of the model may be wrong at once before the predicted level changes.

        Parameters
        ----------
        frame : frame of n rows
            Any cells may be missing; the target's own are not examined.
        target : str
            A categorical, ordered or boolean column.
        beta : float in 0..1
            How trees are combined, see `predict`.
        c, shift
            How far the means of normal leaves move, see `models.box_forest.robustness`.

        Returns
        -------
        float64 array (n,)
            The largest epsilon at which no contamination by epsilon changes the prediction: 0 where another level is as
            likely; NaN where the model gives the row probability 0.

        Raises
        ------
        ValueError
            If the target is no such column: of a number, ask for intervals.

        Notes
        -----
        A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests" (2020). The
        mathematics is in ``docs/how-to/check-robustness.md``.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> whole, part = joint.robustness(penguins, "species"), joint.robustness(penguins[["island"]], "species")
        >>> bool(whole.mean() > part.mean())
        True
        """
        j = self.schema.index(target)
        check_target(self.schema, j)
        forest = self.distribution.forest_for("robustness")
        evidence = self._without(frame, target, beta).evidence
        return robustness(forest, evidence, j, beta=beta, c=c, shift=shift)[0]

    @threaded
    def uncertainty(
        self,
        frame: Any,
        target: str,
        reference: Any,
        *,
        n_jobs: int | None = -1,
        beta: float = 1.0,
        fragile: float = 0.1,
        unlikely: float = 5.0,
    ) -> Uncertainty:
        """Predictions with both of their uncertainties: fragile ones, and those of rows unlike the reference.

        The mathematics is in ``docs/how-to/check-robustness.md``.

        Parameters
        ----------
        frame, target, beta
            As of `robustness`.
        reference : frame of m rows
            Rows to compare densities with: those of learning, or a few hundred of them.
        fragile, unlikely : float
            A prediction with an epsilon (see `robustness`) below ``fragile`` is fragile; a row with a density below
            that of all but ``unlikely`` percent of the reference is unlikely.

        Returns
        -------
        Uncertainty
            Arrays ``predicted`` (None where the model gives the row probability 0), ``probability``, ``epsilon``,
            ``log_density``, ``percentile`` and ``reading``.

        Raises
        ------
        ValueError
            If the target is no such column, or beta is not in 0..1.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> odd = joint.uncertainty(penguins.head(1).assign(body_mass_g=9000), "species", penguins)
        >>> odd.reading[0] in ("unfamiliar", "both")
        True
        """
        j, column = self.schema.index(target), self.schema[target]
        check_target(self.schema, j)
        rows, others = (self._without(table, target, beta).evidence for table in (frame, reference))
        result = uncertainty(self.distribution, rows, others, j, beta=beta, fragile=fragile, unlikely=unlikely)
        codes = np.where(result.predicted < 0, np.nan, result.predicted)
        return result._replace(predicted=column.values(codes))

    # -- helpers

    def _without(self, frame: Any, target: str, beta: float) -> PosteriorState:
        """The posterior given a frame without its target's cells; rows without support are warned of."""
        check_number("beta", beta, 0, 1, text="a number between 0 (average of trees) and 1 (mixture)")
        j = self.schema.index(target)
        X, unseen, ranges = encode_ranges(self.schema, frame)
        unseen[:, j] = False
        warn_unseen(self.schema, frame, unseen)
        evidence = build(self.schema, X, unseen, ranges=ranges).without(j)
        state = self.distribution.observe(evidence)
        check_support(state.background_weight())
        return state if beta == 1.0 else self.distribution.observe_by_trees(evidence, beta)

    def _evidence(self, frame: Any) -> Evidence:
        X, unseen, ranges = encode_ranges(self.schema, frame)
        warn_unseen(self.schema, frame, unseen)
        return build(self.schema, X, unseen, ranges=ranges)

    def _encode(self, frame: Any) -> tuple[np.ndarray, np.ndarray]:
        X, unseen = encode(self.schema, frame)
        warn_unseen(self.schema, frame, unseen)
        return X, unseen


def need_joint(given: Any, expected: str) -> Joint:
    """The joint that was given; raises TypeError, with a hint, for anything else such as a learner."""
    if not isinstance(given, Joint):
        hint = "; give its joint_" if hasattr(given, "joint_") else ""
        raise TypeError(f"{expected}, got {type(given).__name__}{hint}")
    return given
