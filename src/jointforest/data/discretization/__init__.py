"""Discretizers: the map from the values of a column to codes, and the base density inside a bin."""
