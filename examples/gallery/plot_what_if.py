"""
What-if questions
=================

Evidence is what is known or assumed of a row: values, intervals, sets. The joint gives the posterior of all
other columns.
"""

import jointforest as jf
from jointforest import plot

penguins = jf.datasets.load_penguins()
joint = jf.HiddenTreeForest(random_state=0).fit(penguins).joint_

# %%
# Questions in the query language:

for question in (
    "P(species | bill_length_mm > 45, island = 'Biscoe')",
    "P(sex = 'MALE' | species = 'Gentoo', body_mass_g >= 5500)",
    "E(flipper_length_mm | species in {Adelie, Chinstrap})",
    "Q(body_mass_g, 0.05, 0.5, 0.95 | sex = 'FEMALE')",
):
    print(question, "\n   ", joint.query(question))

# %%
# The same in Python. How probable is the evidence itself, and is it supported by training rows?

heavy = joint.given(body_mass_g=jf.between(5000, None))
print(f"one penguin in {1 / joint.probability('body_mass_g >= 5000'):.1f}; supported: {heavy.supported}")
print("species:", {level: round(p, 3) for level, p in heavy.proba("species").items()})
low, high = heavy.interval("flipper_length_mm", 0.9)
print(f"flippers: {heavy.mean('flipper_length_mm'):.0f} mm, 90 % interval {low:.0f} to {high:.0f}")

# %%
# All columns: the prior is beige, the posterior is teal.

figure = plot.posterior(heavy)

# %%
# Soft evidence: a weight of 5000 g, measured by a scale with a standard deviation of 200 g.

measured = joint.given(body_mass_g=jf.about(5000, 200))
print({level: round(p, 3) for level, p in measured.proba("species").items()})
