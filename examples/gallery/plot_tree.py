"""
One tree to read
================

A joint tree splits on all columns at once; each leaf says something of every column.
"""

import jointforest as jf
from jointforest import plot

penguins = jf.datasets.load_penguins()
joint = jf.JointTree(min_samples_leaf=0.1, random_state=0).fit(penguins).joint_
print(joint.rules())

# %%
# Drawn: tests on the branches, a line a leaf, the same bins from top to bottom.

figure = plot.tree(joint)

# %%
# Which leaves answer, and what they say:

print(joint.given("body_mass_g > 5000").explain(3))

# %%
# Its columns are the table's, to a hundredth or two:

ax = plot.cdf(joint, "flipper_length_mm", penguins)
