"""One column given evidence, by a forest: levels, moments, CDF, quantiles."""
