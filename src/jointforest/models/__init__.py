"""Joint distributions: boxes, hidden trees, mixtures."""
