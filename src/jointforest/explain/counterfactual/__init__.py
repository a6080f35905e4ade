"""Counterfactuals: few, near, plausible changes of a row after which another outcome is predicted."""
