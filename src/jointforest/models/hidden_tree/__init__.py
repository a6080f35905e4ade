"""Hidden trees (hidden Chow-Liu trees): tables, message passing, files."""
