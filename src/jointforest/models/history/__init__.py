"""Histories: the joint distribution of several rows for each subject."""
