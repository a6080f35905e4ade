"""Truncated distributions of one number, one a file, and their special functions."""
