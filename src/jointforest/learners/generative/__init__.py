"""Generative forests (Correia et al. 2020)."""
