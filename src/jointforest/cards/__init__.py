"""Static cards of HTML and SVG, of which the views in notebooks are made; no script, no style sheet."""
