"""Entropy, mutual information, divergences and distances."""
