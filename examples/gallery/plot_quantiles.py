"""
Quantile regression
===================

A generative forest models the distribution of its target, so it predicts any quantile, with any inputs missing.
"""

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

penguins = jf.datasets.load_penguins().dropna(subset="body_mass_g")
is_new = np.arange(len(penguins)) % 3 == 0
table, new = penguins[~is_new], penguins[is_new]
forest = jf.GenerativeForestRegressor(n_estimators=50, random_state=0)
forest.fit(table.drop(columns="body_mass_g"), table["body_mass_g"])

# %%
# Intervals that should contain 90 % of the new penguins, from six inputs, from two, and from one:

mass = new["body_mass_g"].to_numpy()
for inputs in (list(new.columns.drop("body_mass_g")), ["sex", "flipper_length_mm"], ["island"]):
    low, high = forest.predict_interval(new[inputs], 0.9)
    coverage = np.mean((low <= mass) & (mass <= high))
    print(f"inputs: {len(inputs)}, coverage: {coverage:.0%}, mean width: {np.mean(high - low):.0f} g")

# %%
# Quantiles by flipper length, with all other inputs missing:

flipper = np.arange(172, 232, 2.0)
rows = new.iloc[[0] * len(flipper)][["flipper_length_mm"]].assign(flipper_length_mm=flipper)
quantiles = forest.predict_quantiles(rows, [0.05, 0.25, 0.5, 0.75, 0.95])

figure, ax = plt.subplots()
ax.scatter(new["flipper_length_mm"], mass, s=10, color="black", label="new penguins")
ax.fill_between(flipper, quantiles[:, 0], quantiles[:, 4], alpha=0.2, color="tab:blue", label="90 %")
ax.fill_between(flipper, quantiles[:, 1], quantiles[:, 3], alpha=0.3, color="tab:blue", label="50 %")
ax.plot(flipper, quantiles[:, 2], color="tab:blue", label="median")
ax.set(xlabel="flipper_length_mm", ylabel="body_mass_g")
ax.legend()
