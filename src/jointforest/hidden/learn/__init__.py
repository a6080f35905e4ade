"""Hidden trees learned from codes: structure, start from clusters, stepwise EM."""
