"""Whole rows given evidence, by a forest: draws, imputation."""
