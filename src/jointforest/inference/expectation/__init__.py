"""Expected predictions of a trained tree ensemble."""
