"""The classifier whose predictions are to change: the same in our environment and in DiCE's."""

from __future__ import annotations

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder


def trained(learn: pd.DataFrame, target: str) -> Pipeline:
    """Gradient boosting on codes of levels and numbers as they are; classes are 0 and 1."""
    X = learn.drop(columns=target)
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    return make_pipeline(make_column_transformer((codes, text), remainder="passthrough"), model).fit(X, learn[target])
