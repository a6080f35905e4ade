"""
How far can it be trusted?
==========================

Half of the table is held out. These pictures compare the joint with the rows that it has not seen.
"""

import jointforest as jf
from jointforest import plot

penguins = jf.datasets.load_penguins().sample(frac=1, random_state=0)
train, held_out = penguins.iloc[::2], penguins.iloc[1::2]
joint = jf.HiddenTreeForest(random_state=0).fit(train).joint_

# %%
# The columns and pairs that differ most from the table. A mark is the distance that chance alone gives.

found = jf.fidelity(joint, train, held_out, random_state=0)
ax = plot.fidelity(found, most=7)

# %%
# Do predicted probabilities come true? Bars are two standard errors.

ax = plot.calibration(joint, held_out, "sex", bins=5)

# %%
# Do intervals hold as many rows as they should?

ax = plot.calibration(joint, held_out, "body_mass_g")
