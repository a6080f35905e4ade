"""What commands do with tables: learn from them, and answer them, at once or in batches."""
