"""Rules between the columns of a table: their meaning, and the search for them."""
