"""Shapley values of rows, as numbers, as a frame, as what shap's plots take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, repr=False)
class ShapleyValues:
    """Shapley values of n rows with p players (columns, or groups of columns); made by `ExpectedPredictor.shap`.

    Attributes
    ----------
    values : float64 array (n, p), or (n, p, K) of K outputs
        NaN in rows of probability 0. Those of a row sum to its answer less ``base_values``.
    base_values : float, or float64 array (K,)
        The answer if nothing is known.
    standard_error : float64 array like ``values``
        Of each value, from coalitions and rows that were drawn; 0 where nothing was.
    base_standard_error : float, or float64 array (K,)
    feature_names : tuple of p str
    output_names : tuple of K str
        Empty of one output that has no name.
    data : object array (n, p)
        The cells as the joint knows them, None where missing; of groups text such as ``"age = 40, sex = Male"``.
    numbers : float64 array (n, p)
        The same as numbers and codes of levels; NaN where missing, and of groups.
    library : {"pandas", "polars", "pyarrow", "numpy"}
        What `to_frame` answers in.

    Examples
    --------
    >>> import jointforest as jf
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> penguins = jf.datasets.load_penguins().dropna()
    >>> X, y = penguins[["bill_length_mm", "flipper_length_mm"]], penguins["body_mass_g"]
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> found = jf.ExpectedPredictor(model, joint).shap(X.head(3))
    >>> found
    ShapleyValues(3 rows, 2 players: bill_length_mm, flipper_length_mm)
    >>> found.to_frame().columns.tolist()
    ['row', 'feature', 'data', 'value', 'standard_error']
    """

    values: np.ndarray
    base_values: Any
    standard_error: np.ndarray
    base_standard_error: Any
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    data: np.ndarray
    numbers: np.ndarray
    library: str

    def __repr__(self) -> str:
        n, p = self.values.shape[:2]
        shown = ", ".join(self.feature_names[:6]) + (", ..." if p > 6 else "")
        outputs = f", {self.values.shape[2]} outputs" if self.values.ndim == 3 else ""
        return f"ShapleyValues({n} rows, {p} players{outputs}: {shown})"

    def __len__(self) -> int:
        return len(self.values)

    def to_frame(self) -> Any:
        """One line a row and player, and output if there are several.

        Returns
        -------
        frame with the columns row (number), feature, output (if there are several), data (text, None where missing),
            value and standard_error; of tables that came as numpy a numpy array of objects
        """
        n, p = self.values.shape[:2]
        outputs = self.output_names if self.values.ndim == 3 else ("",)
        K = len(outputs)
        text = [None if cell is None else str(cell) for cell in np.repeat(self.data.ravel(), K).tolist()]
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), p * K),
            "feature": np.tile(np.repeat(np.array(self.feature_names, dtype=object), K), n).tolist(),
            "output": list(outputs) * (n * p),
            "data": text,
            "value": self.values.ravel(),
            "standard_error": self.standard_error.ravel(),
        }
        if self.values.ndim == 2:
            del columns["output"]
        if self.library == "numpy":
            return np.array(list(zip(*columns.values(), strict=True)), dtype=object).reshape(-1, len(columns))
        import narwhals as nw

        kinds = {name: nw.Int64 if name == "row" else nw.Float64 if name in ("value", "standard_error") else nw.String
                 for name in columns}  # fmt: skip
        backend: Any = self.library
        return nw.from_dict(columns, schema=nw.Schema(kinds), backend=backend).to_native()

    def to_shap(self) -> Any:
        """The values as ``shap.Explanation``, for the plots of the library shap (extra ``shap``).

        Returns
        -------
        shap.Explanation
            ``data`` are ``numbers``, which colour the plots, ``display_data`` is ``data``, ``error_std`` the standard
            errors. Of several outputs pick one before plotting: ``found.to_shap()[:, :, 0]``.

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        try:
            import shap
        except ImportError:
            raise ImportError("to_shap needs the library shap: pip install 'jointforest[shap]'") from None
        return shap.Explanation(
            values=self.values,
            base_values=np.broadcast_to(self.base_values, (len(self), *self.values.shape[2:])).copy(),
            data=self.numbers,
            display_data=self.data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if self.values.ndim == 3 else None,
            error_std=self.standard_error,
        )
