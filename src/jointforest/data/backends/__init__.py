"""Data frames of each library, read into arrays and rebuilt."""
