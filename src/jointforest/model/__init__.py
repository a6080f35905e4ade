"""Models: what a part must answer, weighted parts, `.joint` files."""
