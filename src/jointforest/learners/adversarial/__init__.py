"""Adversarial random forests (Watson et al. 2023)."""
