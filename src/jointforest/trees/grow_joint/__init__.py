"""Trees grown for all columns at once (Nyga et al. 2023)."""
