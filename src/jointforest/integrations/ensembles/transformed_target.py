"""TransformedTargetRegressor of scikit-learn: a model of the target's logarithm, or of its standardised values."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from .read import read_ensemble
from .table import Ensemble, library_of


def read(model: Any) -> Ensemble:
    """What a fitted TransformedTargetRegressor computes.

    Parameters
    ----------
    model : fitted TransformedTargetRegressor
        With ``inverse_func=np.exp``, with a StandardScaler, or with none.

    Returns
    -------
    Ensemble

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ValueError
        Another transformation of the target, or a logarithm of a target that the model predicts through a link.

    Examples
    --------
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> model = TransformedTargetRegressor(DecisionTreeRegressor(), func=np.log, inverse_func=np.exp)
    >>> read(model.fit([[0.0], [1.0]], [1.0, 2.0])).link
    'exp'
    """
    check_is_fitted(model)
    inner, how = read_ensemble(model.regressor_), model.transformer_
    inner = inner._replace(library=f"{library_of(model)} of {inner.library}")
    inverse = how.inverse_func if type(how) is FunctionTransformer else None
    if inner.link != "identity":
        raise ValueError(f"{inner.library}: the regressor has a link of its own ({inner.link}); train it on the target")
    if type(how) is FunctionTransformer and how.func is None and inverse is None:
        return inner
    if inverse is np.exp and not how.inv_kw_args:
        return inner._replace(link="exp")
    if type(how) is StandardScaler:
        scale = how.scale_ if how.with_std else 1.0
        return inner._replace(
            value=inner.value * scale, base=inner.base * scale + (how.mean_ if how.with_mean else 0.0)
        )
    raise ValueError(
        f"{inner.library}: this transformation of the target is not supported; expected func=np.log with "
        "inverse_func=np.exp, a StandardScaler, or none"
    )
