"""Forests made of forests: conditioned, of fewer columns, merged."""
