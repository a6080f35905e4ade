"""Estimators that end in a joint."""
