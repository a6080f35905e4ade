"""
Modes: the most probable completion
===================================

The mode given evidence is the one complete row that is most probable, which is not the row of the columns' means. The
search is certified: no row is more probable than its bound says.
"""

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

penguins = jf.datasets.load_penguins()
columns = ["species", "flipper_length_mm", "body_mass_g"]
joint = jf.AdversarialForest(n_estimators=20, random_state=0).fit(penguins[columns]).joint_

found = {species: joint.given(species=species).mode() for species in joint.levels("species")}
for modes in found.values():
    print(f"log-density {modes.log_density[0]:.4f}, and no row above {modes.log_bound:.4f}:")
    print(modes.rows.to_string(index=False))

# %%
# Over the density of the two numbers: between the humps the mean of all penguins, which is hardly any penguin.

pair = joint.given().pair("flipper_length_mm", "body_mass_g", bins=30)  # the first and the last bins are open
figure, ax = plt.subplots(layout="constrained")
ax.pcolormesh(pair.a, pair.b, np.sqrt(pair.probability[1:-1, 1:-1]).T, cmap="Blues")
for species, modes in found.items():
    x, y = (float(modes.rows[name].iloc[0]) for name in columns[1:])
    ax.plot(x, y, "o", color="black")
    ax.annotate(species, (x, y), xytext=(6, 6), textcoords="offset points")
mean = [joint.given().mean(name) for name in columns[1:]]
ax.plot(*mean, "x", color="tab:red")
ax.annotate("mean", mean, xytext=(-8, 6), textcoords="offset points", ha="right", color="tab:red")
ax.set(xlabel="flipper_length_mm", ylabel="body_mass_g")
