"""New leaf values of a trained ensemble, by expected loss."""
