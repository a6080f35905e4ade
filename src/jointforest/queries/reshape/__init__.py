"""Models made of models: conditioned, of fewer columns, mixed."""
