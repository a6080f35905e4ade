"""The report: a joint as one HTML file."""
