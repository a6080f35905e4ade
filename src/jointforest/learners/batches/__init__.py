"""Learning from tables larger than memory, in batches of rows."""
