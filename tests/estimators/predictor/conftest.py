"""Predictors of these tests learn in a moment."""

from ...quick_predictors import quick

__all__ = ["quick"]
