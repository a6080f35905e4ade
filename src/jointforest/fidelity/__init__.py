"""How true a joint, or synthetic rows, are to a table."""
