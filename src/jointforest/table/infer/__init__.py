"""What the columns of a table are: looked at batch by batch, merged in any order, then decided once."""
