"""
Outliers, and the cells that make them so
=========================================

A row is unusual if the joint gives it a low density; a cell is, if it does not go with the others of its row.
"""

# %%
# Learn what is usual from two thirds of the penguins. Among the others three are written down wrongly.

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

penguins = jf.datasets.load_penguins()
is_new = np.arange(len(penguins)) % 3 == 0
table, new = penguins[~is_new], penguins[is_new].reset_index(drop=True)
new.loc[5, "flipper_length_mm"] = 281.0  # for 185
new.loc[60, "species"] = "Gentoo"  # a Chinstrap
new.loc[100, "body_mass_g"] = 477.0  # for 4625

detector = jf.ForestOutlierDetector(random_state=0).fit(table)
print("outliers:", np.flatnonzero(detector.predict(new) == -1).tolist())

# %%
# Which cells: the log-density of each given all other cells of its row, less what is usual in its column, for numbers
# come in units of their own.

unlikely = detector.attribution(new)
unlikely -= np.nanmedian(unlikely, axis=0)
for row in (5, 60, 100):
    j = int(np.nanargmin(unlikely[row]))
    print(f"row {row}: {new.columns[j]} = {new.iloc[row, j]}, {-unlikely[row, j]:.1f} nats less likely than usual")

# %%
# The strangest rows, the strangest first; darker cells are less likely.

strangest = np.argsort(detector.score_samples(new))[:8]
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.imshow(unlikely[strangest], cmap="Oranges_r", vmin=-6, vmax=0, aspect="auto")
ax.set_xticks(range(new.shape[1]), new.columns, rotation=20, ha="right")
ax.set_yticks(range(len(strangest)), [f"row {row}" for row in strangest])
for y, row in enumerate(strangest):
    for x, value in enumerate(new.iloc[row]):
        ax.text(x, y, value, ha="center", va="center", fontsize=8, color="white" if unlikely[row, x] < -4 else "black")
