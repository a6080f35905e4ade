"""
Why this prediction?
====================

Conditional Shapley values say what each known cell adds to a prediction. The joint answers every coalition of
cells exactly, so that the values of the joint's own predictions have no sampling error up to 12 columns.
"""

import jointforest as jf
from jointforest import plot

penguins = jf.datasets.load_penguins()
joint = jf.HiddenTreeForest(random_state=0).fit(penguins).joint_

# %%
# A penguin whose sex is missing. A missing cell has no part in the prediction.

row = penguins[penguins["sex"].isna() & penguins["body_mass_g"].notna()].head(1)
ax = plot.why(jf.shapley("species", joint, row))

# %%
# Many penguins: a dot for each of them and each column. Here the prediction is a number, in grams.

values = jf.shapley("body_mass_g", joint, penguins.sample(80, random_state=0))
ax = plot.shapley_summary(values)

# %%
# What is known changes what is predicted, piece by piece.

ax = plot.evidence_sequence(joint, "species", ["island = Biscoe", "sex = FEMALE", "body_mass_g < 4500"])

# %%
# The same of a number.

ax = plot.evidence_sequence(joint, "body_mass_g", ["island = Biscoe", "bill_depth_mm < 15", "sex = MALE"])

# %%
# An Adelie penguin under another name: which cell does not fit the others?

odd = penguins.copy()
odd.loc[7, "species"] = "Gentoo"
ax = plot.attribution(joint, odd, row=7)
