"""
A readable joint tree
=====================

A joint tree splits on all columns together. Each leaf has a distribution of every column.
"""

import jointforest as jf
from jointforest import plot

penguins = jf.datasets.load_penguins()
joint = jf.JointTree(min_samples_leaf=0.1, random_state=0).fit(penguins).joint_
print(joint.tree_text())

# %%
# The tree as a picture, with a test on each branch and one line for each leaf. A column has the same
# bins in all leaves.

figure = plot.tree(joint)

# %%
# The leaves with the largest posterior weight given evidence:

print(joint.given("body_mass_g > 5000").explain(3))

# %%
# The distribution function of a column, for the joint and for the table:

ax = plot.cdf(joint, "flipper_length_mm", penguins)
