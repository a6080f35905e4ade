"""
What-if queries
===============

Evidence is what is known, or supposed: values, intervals, sets. Everything else follows.
"""

import jointforest as jf
from jointforest import plot

penguins = jf.datasets.load_penguins()
joint = jf.HiddenTreeForest(random_state=0).fit(penguins).joint_

# %%
# In words:

for question in (
    "P(species | bill_length_mm > 45, island = 'Biscoe')",
    "P(sex = 'MALE' | species = 'Gentoo', body_mass_g >= 5500)",
    "E(flipper_length_mm | species in {Adelie, Chinstrap})",
    "Q(body_mass_g, 0.05, 0.5, 0.95 | sex = 'FEMALE')",
):
    print(question, "\n   ", joint.query(question))

# %%
# In Python. How probable is the evidence itself, and is there data behind it?

heavy = joint.given(body_mass_g=jf.between(5000, None))
print(f"one penguin in {1 / joint.probability('body_mass_g >= 5000'):.1f}; supported: {heavy.supported}")
print("species:", {level: round(p, 3) for level, p in heavy.proba("species").items()})
low, high = heavy.interval("flipper_length_mm", 0.9)
print(f"flippers: {heavy.mean('flipper_length_mm'):.0f} mm, 90 % in {low:.0f} to {high:.0f}")

# %%
# All columns at once: grey before, blue after.

figure = plot.posterior(heavy)

# %%
# And if one were not sure of it? Evidence may be soft: here a scale that is off by 200 g.

blurred = joint.given(body_mass_g=jf.about(5000, 200))
print({level: round(p, 3) for level, p in blurred.proba("species").items()})
