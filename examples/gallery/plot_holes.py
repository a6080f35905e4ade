"""
Predict with holes
==================

A generative forest predicts a class from the columns that are there. Nothing is imputed: missing inputs are summed out.
"""

# %%
# Learn on two thirds of the penguins, and hide cells of the others.

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

penguins = jf.datasets.load_penguins()
is_new = np.arange(len(penguins)) % 3 == 0
table, new = penguins[~is_new], penguins[is_new]
forest = jf.GenerativeForestClassifier(n_estimators=30, random_state=0)
forest.fit(table.drop(columns="species"), table["species"])

X, y = new.drop(columns="species"), new["species"].astype(str).to_numpy()
shares = [0, 0.2, 0.4, 0.6, 0.8]
accuracy = []
for share in shares:
    hidden = np.random.default_rng(0).random(X.shape) < share
    accuracy.append(float((forest.predict(X.mask(hidden)) == y).mean()))
    print(f"{share:.0%} of the cells hidden: {accuracy[-1]:.1%} right")

# %%
# The most common species alone would be right for 44 %.

figure, ax = plt.subplots()
ax.plot(shares, accuracy, marker="o")
ax.set(xlabel="share of the cells hidden", ylabel="accuracy on new penguins", ylim=(0, 1.02))

# %%
# A column that is not there at all is one more thing not known.

print(forest.predict_proba(X[["island", "body_mass_g"]])[:3].round(3))
