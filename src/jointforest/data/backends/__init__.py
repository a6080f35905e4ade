"""Data frames of each library, taken apart and built again."""
