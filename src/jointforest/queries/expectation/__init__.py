"""Expected predictions of a trained ensemble under a joint."""
