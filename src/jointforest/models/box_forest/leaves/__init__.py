"""Leaf distributions of a forest of boxes."""
