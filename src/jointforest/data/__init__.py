"""Tables: reading them, schema and column kinds, evidence and conditions, data sets."""
