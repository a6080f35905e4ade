"""Trained tree ensembles of other libraries."""
