"""Leaf values of a trained ensemble refitted by expected loss."""
