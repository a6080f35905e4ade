"""Selection of a learner and its settings by validation log-likelihood."""
