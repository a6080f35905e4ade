"""
What a trained model expects where inputs are missing
=====================================================

A scikit-learn forest was trained on complete rows. Asked about a row with holes, it needs them filled; its *expected*
prediction is the mean over all that may stand there, each as probable as a joint says.
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
# Complete rows get the model's own predictions. The more is hidden, the more it matters how holes are filled.

shares, errors = [0, 0.2, 0.4, 0.6, 0.8], []
for share in shares:
    X = new[numbers].mask(np.random.default_rng(1).random((len(new), 3)) < share)
    guesses = expected.predict(X), model.predict(X.fillna(table[numbers].mean()))
    errors.append([np.sqrt(np.mean((guess - new["body_mass_g"]) ** 2)) for guess in guesses])
    print(f"{share:.0%} hidden: error {errors[-1][0]:.0f} g in expectation, {errors[-1][1]:.0f} g with columns' means")

# %%

figure, ax = plt.subplots()
lines = ax.plot(shares, errors, marker="o")
ax.legend(lines, ["expected prediction", "holes filled with the columns' means"])
ax.set(xlabel="share of the cells hidden", ylabel="error of body mass, g", ylim=(0, None))
