"""Learners of joint distributions, one folder for each algorithm."""
