"""
Histories: forecasts, imputation and new subjects
=================================================

The table has several rows for each patient. Their joint distribution forecasts the next visits, fills missing cells
given the visits before and after, and draws new patients.
"""

# %%
# Learn from 500 patients. Keep the last two visits of the others, to compare them with forecasts.

import matplotlib.pyplot as plt
import numpy as np

import jointforest as jf

visits = jf.datasets.make_visits(500, random_state=0)
joint = jf.fit(visits, group="patient", order="date", random_state=0)
others = jf.datasets.make_visits(200, random_state=1)
others = others[others.groupby("patient")["date"].transform("size") >= 6]
from_end = others.groupby("patient").cumcount(ascending=False)
known, future = others[from_end >= 2], others[from_end < 2]

# %%
# Forecast the weight at the next two visits. Bars are intervals with probability 0.9, and crosses are what happened.

forecast = joint.forecast(known, steps=2, random_state=0)
mean, interval = forecast.mean("weight"), forecast.interval("weight", 0.9)
figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for ax, i in zip(axes, (0, 3, 7), strict=True):
    patient = forecast.subjects[i]
    before, after = (part[part["patient"] == patient]["weight"].to_numpy() for part in (known, future))
    step = len(before) + np.arange(2)
    ax.plot(range(len(before)), before, "o-", color="C0", label="known")
    ax.errorbar(step, mean[i], abs(interval[i].T - mean[i]), fmt="s", color="C1", capsize=4, label="forecast")
    ax.plot(step, after, "x", color="black", markersize=9, label="truth")
    ax.set(title=f"patient {patient}", xlabel="visit", ylabel="weight (kg)")
axes[0].legend()
inside = (interval[..., 0].ravel() <= future["weight"]) & (future["weight"] <= interval[..., 1].ravel())
print(f"{inside.mean():.0%} of {len(inside)} weights lie in their intervals")

# %%
# Remove the status of a third of the visits, and fill it in. A status mostly stays, so the visits before and after say
# much about it.

hidden = np.random.default_rng(0).random(len(others)) < 1 / 3
filled = joint.impute(others.assign(status=others["status"].mask(hidden)), random_state=0)
forward = others["status"].mask(hidden).groupby(others["patient"]).ffill().fillna("well")
for name, answer in (("imputed", filled["status"]), ("last known value", forward)):
    print(f"{name:<17} {(answer == others['status'])[hidden].mean():.0%} right")

# %%
# Draw 500 new patients. Their numbers of visits and the spread of their weights over time are like those of the table.

drawn = joint.sample(500, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for table, label in ((visits, "table"), (drawn, "drawn")):
    groups = table.groupby("patient")
    axes[0].hist(groups.size(), np.arange(2, 21) - 0.5, alpha=0.5, label=label)
    axes[1].hist(groups["weight"].agg(np.ptp), np.linspace(0, 12, 25), alpha=0.5, label=label)
axes[0].set(xlabel="visits of a patient", ylabel="patients")
axes[1].set(xlabel="range of the weight (kg)")
axes[0].legend()

# %%
# How true are the drawn patients? Accuracy is 1 for equal distributions. The score of a two-sample test is 1 if
# gradient boosting cannot tell drawn patients from new ones.

print(joint.fidelity(visits, jf.datasets.make_visits(500, random_state=2), random_state=0))
