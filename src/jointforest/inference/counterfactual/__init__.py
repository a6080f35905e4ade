"""Counterfactuals: plausible rows with another outcome."""
