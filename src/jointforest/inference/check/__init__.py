"""Which cells of a table are wrong, and what they should be."""
