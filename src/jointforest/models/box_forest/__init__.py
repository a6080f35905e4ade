"""Forests of boxes: tree structure, leaf distributions, inference, files."""
