"""The explorer: a page that shows a joint."""
