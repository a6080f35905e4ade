"""Most probable rows, with a certified bound."""
