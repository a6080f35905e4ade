"""Joint probability trees (Nyga et al. 2023)."""
