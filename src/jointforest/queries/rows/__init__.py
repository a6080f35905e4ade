"""Whole rows given evidence, mixed over the parts of a model: draws, imputation, attribution."""
