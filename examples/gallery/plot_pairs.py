"""
Two columns at a time
=====================

A joint has the distribution of any two columns, and says how strongly each two depend on each other. The table
stands beside it.
"""

import jointforest as jf
from jointforest import plot

penguins = jf.datasets.load_penguins()
joint = jf.HiddenTreeForest(random_state=0).fit(penguins).joint_

# %%
# Which columns depend on each other? Columns that hang together stand side by side.

ax = plot.dependence(joint)

# %%
# Two columns of numbers. Both panels have the same cells and the same shades.

ax = plot.pair(joint, "flipper_length_mm", "body_mass_g", penguins)

# %%
# A number given each level. The outline is the table. The dot is the mean, and the line holds 90 %.

ax = plot.pair(joint, "species", "body_mass_g", penguins)

# %%
# Two columns of levels. Each line sums to 100 %.

ax = plot.pair(joint, "species", "island", penguins)

# %%
# The same with evidence. Give the rows of the table that satisfy it.

males = penguins[penguins["sex"] == "MALE"]
ax = plot.pair(joint.given(sex="MALE"), "species", "body_mass_g", males)
