"""Shapley values of games whose coalitions are known columns."""
