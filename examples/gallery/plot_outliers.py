"""
Outliers and their unusual cells
================================

A row is unusual if the joint gives it a low density. A cell is unusual if it is unlikely given the other
cells of its row.
"""

# %%
# Learn from two thirds of the penguins. Three rows of the other third get a wrong value.

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

penguins = jf.datasets.load_penguins()
is_new = np.arange(len(penguins)) % 3 == 0
table, new = penguins[~is_new], penguins[is_new].reset_index(drop=True)
new.loc[5, "flipper_length_mm"] = 281.0  # instead of 185
new.loc[60, "species"] = "Gentoo"  # instead of Chinstrap
new.loc[100, "body_mass_g"] = 477.0  # instead of 4625

detector = jf.ForestOutlierDetector(random_state=0).fit(table)
print("outliers:", np.flatnonzero(detector.predict(new) == -1).tolist())

# %%
# The log-density of each cell given the other cells of its row. The median of the column is subtracted, because
# log-densities of columns in different units are not comparable.

unlikely = detector.attribution(new)
unlikely -= np.nanmedian(unlikely, axis=0)
for row in (5, 60, 100):
    j = int(np.nanargmin(unlikely[row]))
    print(f"row {row}: {new.columns[j]} = {new.iloc[row, j]}, {-unlikely[row, j]:.1f} nats less likely than usual")

# %%
# The most unusual rows, beginning with the least likely one. Darker cells are less likely.

unusual = np.argsort(detector.score_samples(new))[:8]
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.imshow(unlikely[unusual], cmap="Oranges_r", vmin=-6, vmax=0, aspect="auto")
ax.set_xticks(range(new.shape[1]), new.columns, rotation=20, ha="right")
ax.set_yticks(range(len(unusual)), [f"row {row}" for row in unusual])
for y, row in enumerate(unusual):
    for x, value in enumerate(new.iloc[row]):
        ax.text(x, y, value, ha="center", va="center", fontsize=8, color="white" if unlikely[row, x] < -4 else "black")
