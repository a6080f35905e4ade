"""Two columns given evidence: covariance, and which is greater."""
