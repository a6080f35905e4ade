"""A report: one file of HTML that shows a joint, and answers questions without a network."""
