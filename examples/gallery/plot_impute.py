"""
Impute, once and many times
===========================

A missing cell is filled with its mean (or most probable level) given the known cells of its row, or with draws from
what is possible: each draw a complete table.
"""

# %%
# Hide 30 % of the cells, and learn from what is left.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import jointforest as jf

penguins = jf.datasets.load_penguins()
hidden = np.random.default_rng(0).random(penguins.shape) < 0.3
holes = penguins.mask(hidden)
joint = jf.HiddenTreeForest(random_state=0).fit(holes).joint_

# %%
# Once. Held against what was hidden, beside a column's mean and its most common level:

filled = joint.impute(holes)
for j, column in enumerate(penguins):
    here = hidden[:, j] & penguins[column].notna().to_numpy()
    true, guess, known = penguins[column][here], filled[column][here], holes[column]
    if isinstance(penguins[column].dtype, pd.CategoricalDtype):
        wrong = [(true.astype(str) != other).mean() for other in (guess.astype(str), str(known.mode()[0]))]
        print(f"{column:<18} wrong {wrong[0]:6.0%}, by the most common level {wrong[1]:6.0%}")
    else:
        error = [np.sqrt(((true - other) ** 2).mean()) for other in (guess, known.mean())]
        print(f"{column:<18} error {error[0]:6.1f}, by the column's mean {error[1]:11.1f}")

# %%
# Many times: what is computed from a filled table is as uncertain as the cells that were filled. Rubin's rules say how
# much: the variance between the tables is added to the variance within.

m = 20
tables = joint.impute(holes, method="sample", m=m, random_state=0)
means = np.array([table["body_mass_g"].mean() for table in tables])
within = np.mean([table["body_mass_g"].var() / len(table) for table in tables])
between = means.var(ddof=1)
print(f"mean body mass {means.mean():.0f} g, standard error {np.sqrt(within + (1 + 1 / m) * between):.0f} g")
print(f"of one table, as if nothing had been missing: {np.sqrt(within):.0f} g")

# %%
# What may stand in one cell: the draws are of this density.

cell = int(np.flatnonzero(holes["body_mass_g"].isna() & holes["sex"].isna() & penguins["body_mass_g"].notna())[0])
known = holes.iloc[cell].dropna()
found = joint.given(known).marginal("body_mass_g").histogram(20)
figure, ax = plt.subplots()
ax.stairs(found.mass, found.edges, fill=True, alpha=0.4)
ax.axvline(penguins["body_mass_g"][cell], color="black", linestyle="--")
ax.set(xlabel="body_mass_g", ylabel="probability", title=", ".join(f"{name} {value}" for name, value in known.items()))
