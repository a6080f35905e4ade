"""Shapley values of predictions."""
