"""One column given evidence, mixed over the parts of a model."""
