"""Forests with Chow-Liu trees in their leaves."""
