"""Predictors of one column that take any pattern of missing cells: members, their pool, and the two estimators."""
