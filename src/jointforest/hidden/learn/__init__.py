"""Hidden trees learned from codes: structure, start from decision trees, stepwise EM."""
