"""
One predictor for any missing inputs
====================================

`JointClassifier` combines a generative forest, boosted trees and a joint distribution. The weights depend on how much
of a row is missing.
"""

# %%
# Learn from two thirds of the penguins. The report compares the members on validation rows.

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

penguins = jf.datasets.load_penguins()
is_new = np.arange(len(penguins)) % 3 == 0
table, new = penguins[~is_new], penguins[is_new]
clf = jf.JointClassifier(random_state=0).fit(table.drop(columns="species"), table["species"])
print(clf.fitted_by)

# %%
# Remove cells of the other third. The dashed line is the share of the most common species.

X, y = new.drop(columns="species"), new["species"].astype(str).to_numpy()
fractions = [0, 0.2, 0.4, 0.6, 0.8]
accuracy = [clf.score(X.mask(np.random.default_rng(0).random(X.shape) < fraction), y) for fraction in fractions]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
left.plot(fractions, accuracy, marker="o")
left.axhline(np.mean(y == "Adelie"), color="grey", linestyle="--")
left.set(xlabel="fraction of missing cells", ylabel="accuracy on new penguins", ylim=(0, 1.02))

# %%
# The weights of the members, by the share of a row that is missing:

for member in clf.fitted_by.members:
    if member.is_kept:
        right.plot(clf.fitted_by.shares, member.weight, marker="o", label=member.name)
right.set(xlabel="share of the row that is missing", ylabel="weight", ylim=(0, None))
right.legend(fontsize="small")
figure.tight_layout()
