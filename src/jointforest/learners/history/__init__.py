"""Learning the joint distribution of histories."""
