"""Hidden trees: columns joined in a tree, a hidden state for each, tables between states and to codes."""
