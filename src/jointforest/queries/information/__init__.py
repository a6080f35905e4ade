"""Entropies, divergences, distances between joints."""
