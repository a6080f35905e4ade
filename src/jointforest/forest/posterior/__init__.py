"""How well evidence fits each leaf of a forest; log-density."""
