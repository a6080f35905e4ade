"""Distributions of rows that obey rules: another distribution, in coordinates that cannot break them."""
