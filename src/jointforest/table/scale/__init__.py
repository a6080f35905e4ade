"""A column's own scale: codes (bins of numbers, levels), and the distribution inside each code that all parts share."""
