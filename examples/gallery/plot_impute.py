"""
Single and multiple imputation
==============================

Single imputation fills a missing cell with its mean, or its most probable level, given the known cells of the row.
Multiple imputation draws the missing cells from their posterior several times and gives several complete tables.
"""

# %%
# Remove 30 % of the cells, and learn from the others.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import jointforest as jf

penguins = jf.datasets.load_penguins()
hidden = np.random.default_rng(0).random(penguins.shape) < 0.3
incomplete = penguins.mask(hidden)
joint = jf.HiddenTreeForest(random_state=0).fit(incomplete).joint_

# %%
# Single imputation. Errors on the removed cells, compared with the column's mean and its most common level:

filled = joint.impute(incomplete)
for j, column in enumerate(penguins):
    here = hidden[:, j] & penguins[column].notna().to_numpy()
    true, imputed, known = penguins[column][here], filled[column][here], incomplete[column]
    if isinstance(penguins[column].dtype, pd.CategoricalDtype):
        wrong = [(true.astype(str) != other).mean() for other in (imputed.astype(str), str(known.mode()[0]))]
        print(f"{column:<18} wrong {wrong[0]:6.0%}, by the most common level {wrong[1]:6.0%}")
    else:
        error = [np.sqrt(((true - other) ** 2).mean()) for other in (imputed, known.mean())]
        print(f"{column:<18} error {error[0]:6.1f}, by the column's mean {error[1]:11.1f}")

# %%
# Multiple imputation. Imputed cells are uncertain, and so is every result that uses them. Rubin's rules add the
# variance between the tables to the variance within a table.

m = 20
tables = joint.impute(incomplete, method="sample", m=m, random_state=0)
means = np.array([table["body_mass_g"].mean() for table in tables])
within = np.mean([table["body_mass_g"].var() / len(table) for table in tables])
between = means.var(ddof=1)
print(f"mean body mass {means.mean():.0f} g, standard error {np.sqrt(within + (1 + 1 / m) * between):.0f} g")
print(f"standard error of one table, which ignores the imputation: {np.sqrt(within):.0f} g")

# %%
# The posterior of one missing cell, from which the draws come. The dashed line is the removed value.

cell = int(
    np.flatnonzero(incomplete["body_mass_g"].isna() & incomplete["sex"].isna() & penguins["body_mass_g"].notna())[0]
)
known = incomplete.iloc[cell].dropna()
histogram = joint.given(known).marginal("body_mass_g").histogram(20)
figure, ax = plt.subplots()
ax.stairs(histogram.mass, histogram.edges, fill=True, alpha=0.4)
ax.axvline(penguins["body_mass_g"][cell], color="black", linestyle="--")
ax.set(xlabel="body_mass_g", ylabel="probability", title=", ".join(f"{name} {value}" for name, value in known.items()))
