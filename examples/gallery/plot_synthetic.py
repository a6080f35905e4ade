"""
Synthetic rows and their fidelity
=================================

Rows drawn from a joint have the columns, types and levels of the training table, and can be compared with it.
"""

import matplotlib.pyplot as plt

import jointforest as jf

penguins = jf.datasets.load_penguins()
joint = jf.HiddenTreeForest(random_state=0).fit(penguins).joint_
drawn = joint.sample(len(penguins), random_state=0, missing=True)
print(drawn.head().to_string())

# %%
# Can a classifier distinguish them from the table? Which columns and pairs differ most? Are rows copied?

print(jf.fidelity(drawn, penguins, random_state=0))

# %%
# Real and synthetic rows side by side:

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True, sharey=True, layout="constrained")
for ax, rows, title in zip(axes, (penguins, drawn), ("table", "synthetic rows"), strict=True):
    for species, group in rows.groupby("species", observed=True):
        ax.scatter(group["flipper_length_mm"], group["bill_length_mm"], s=12, alpha=0.7, label=species)
    ax.set(title=title, xlabel="flipper_length_mm")
axes[0].set_ylabel("bill_length_mm")
axes[1].legend()

# %%
# Rows given evidence satisfy this evidence exactly.

print(joint.given(species="Chinstrap", body_mass_g=jf.between(4000, None)).sample(3, random_state=0).to_string())
