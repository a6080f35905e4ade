"""Circuits over the columns of a leaf: learned, and checked."""
