"""Growing a decision tree on ranks, shared by the learners of forests."""
