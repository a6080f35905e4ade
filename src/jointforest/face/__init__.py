"""What users hold: joints, posteriors, marginals, expected predictions. Docstrings, and forwards to the rooms below."""
