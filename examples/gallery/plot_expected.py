"""
Expected predictions of a trained model
=======================================

A scikit-learn forest was trained on complete rows, so it needs every input. The *expected* prediction of a row with
missing cells is the mean over all possible values of these cells, weighted by their probability under a joint.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

import jointforest as jf

numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
penguins = jf.datasets.load_penguins().dropna()
is_new = np.arange(len(penguins)) % 3 == 0
table, new = penguins[~is_new], penguins[is_new]

model = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(table[numbers], table["body_mass_g"])
joint = jf.AdversarialForest(n_estimators=30, random_state=0).fit(table[numbers]).joint_
expected = jf.ExpectedPredictor(model, joint)

# %%
# Complete rows get the model's own predictions. With more missing cells, the treatment of these cells matters more.

fractions, errors = [0, 0.2, 0.4, 0.6, 0.8], []
for fraction in fractions:
    X = new[numbers].mask(np.random.default_rng(1).random((len(new), 3)) < fraction)
    predictions = expected.predict(X), model.predict(X.fillna(table[numbers].mean()))
    errors.append([np.sqrt(np.mean((prediction - new["body_mass_g"]) ** 2)) for prediction in predictions])
    by_joint, by_means = errors[-1]
    print(f"{fraction:.0%} missing: error {by_joint:.0f} g by expected predictions, {by_means:.0f} g by imputed means")

# %%
# The root mean squared error of both methods:

figure, ax = plt.subplots()
lines = ax.plot(fractions, errors, marker="o")
ax.legend(lines, ["expected prediction", "missing cells replaced by column means"])
ax.set(xlabel="fraction of missing cells", ylabel="error of body mass, g", ylim=(0, None))
