"""The public objects: Joint, Posterior, Marginal, fit, mix, load."""
