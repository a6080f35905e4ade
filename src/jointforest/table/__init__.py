"""A table and what can be said of it: frames to arrays and back, schemas, conditions, evidence."""
