"""Trees taken over from scikit-learn."""
