"""
Modes: the most probable completion
===================================

The mode given evidence is the most probable complete row. It differs from the row of the columns' means. The search
returns an upper bound: no row has a higher log-density than this bound.
"""

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

penguins = jf.datasets.load_penguins()
columns = ["species", "flipper_length_mm", "body_mass_g"]
joint = jf.AdversarialForest(n_estimators=20, random_state=0).fit(penguins[columns]).joint_

modes_of = {species: joint.given(species=species).mode() for species in joint.levels("species")}
for modes in modes_of.values():
    print(f"log-density {modes.log_density[0]:.4f}, upper bound of all rows {modes.log_bound:.4f}:")
    print(modes.rows.to_string(index=False))

# %%
# The modes over the density of both numbers. The mean of all penguins lies between the
# clusters, where few penguins are.

pair = joint.given().pair("flipper_length_mm", "body_mass_g", bins=30)  # the first and the last bin are open
figure, ax = plt.subplots(layout="constrained")
ax.pcolormesh(pair.a, pair.b, np.sqrt(pair.probability[1:-1, 1:-1]).T, cmap="Blues")
for species, modes in modes_of.items():
    x, y = (float(modes.rows[name].iloc[0]) for name in columns[1:])
    ax.plot(x, y, "o", color="black")
    ax.annotate(species, (x, y), xytext=(6, 6), textcoords="offset points")
mean = [joint.given().mean(name) for name in columns[1:]]
ax.plot(*mean, "x", color="tab:red")
ax.annotate("mean", mean, xytext=(-8, 6), textcoords="offset points", ha="right", color="tab:red")
ax.set(xlabel="flipper_length_mm", ylabel="body_mass_g")
