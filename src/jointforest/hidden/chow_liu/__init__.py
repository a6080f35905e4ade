"""Chow-Liu trees on codes in the leaves of a forest, as hidden trees whose states are codes."""
