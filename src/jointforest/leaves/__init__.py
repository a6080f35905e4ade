"""Leaves: the distributions of columns within a box."""
