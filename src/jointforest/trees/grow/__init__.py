"""Trees grown for one target, on ranks."""
