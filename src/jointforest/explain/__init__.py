"""Answers explained: leaves and regions as rules, with what they say of the columns."""
