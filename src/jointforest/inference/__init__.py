"""Questions about a distribution."""
