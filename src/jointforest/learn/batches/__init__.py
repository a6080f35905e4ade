"""Learning from tables larger than memory: a sample of rows makes the structure, all rows fill it."""
