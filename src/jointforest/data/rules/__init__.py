"""Rules between the columns of a table: what they say, and how they are found."""
