"""Fitting the distributions in the leaves of trees."""
