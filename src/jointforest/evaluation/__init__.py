"""Fidelity: how well a joint, or synthetic rows, represent a table."""
