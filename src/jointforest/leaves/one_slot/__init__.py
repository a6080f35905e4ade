"""One numeric or categorical slot in one leaf: density, mass, quantile, moments, grids."""
