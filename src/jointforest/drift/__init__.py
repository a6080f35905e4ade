"""What changed between two tables, and whether the batches of a stream still come from the source of a table."""
