"""How far parameters may be wrong before a prediction changes."""
