"""Hidden tree forests."""
