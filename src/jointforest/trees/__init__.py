"""Trees: the node table, boxes, ranks, pruning."""
