"""How well evidence fits the parts of a model, and how their answers are mixed."""
