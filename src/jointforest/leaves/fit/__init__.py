"""Parameters of leaves, learned from rows."""
