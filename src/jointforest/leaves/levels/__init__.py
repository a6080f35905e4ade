"""Masses of levels: dense rows of columns of few levels, shares and counts of those of many."""
