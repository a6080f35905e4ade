"""
Limits of detection and running contracts
=========================================

A laboratory writes ``<1.50``, and a contract that still runs has lasted at least so long. The joint learns from these
ranges as they are. Rules of thumb put a number in their place, or drop the rows.
"""

# %%
# Blood samples: the concentration rises with age, and is not measured below 1.5.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import jointforest as jf

rng = np.random.default_rng(0)
age = rng.uniform(20, 70, 1000).round()
pfos = rng.lognormal(0.025 * age - 0.6, 0.35).round(2)
samples = pd.DataFrame({"pfos": [f"{x:.2f}" if x >= 1.5 else "<1.50" for x in pfos], "age": age})
joint = jf.HiddenTreeForest(random_state=0).fit(samples).joint_
print(joint.reading)

# %%
# The mean of each decade, beside the true one and those of two rules of thumb.

decades = [jf.between(lo, lo + 10, closed="left") for lo in range(20, 70, 10)]
number = pd.to_numeric(samples["pfos"], errors="coerce")
means = pd.DataFrame(
    {
        "true": [pfos[(age >= d.lo) & (age < d.hi)].mean() for d in decades],
        "joint": [joint.given(age=d).mean("pfos") for d in decades],
        "half the limit": [number.fillna(0.75)[(age >= d.lo) & (age < d.hi)].mean() for d in decades],
        "rows dropped": [number[(age >= d.lo) & (age < d.hi)].mean() for d in decades],
    },
    index=[f"{d.lo}-{d.hi - 1}" for d in decades],
)
print(means.round(2))

# %%
# Contracts: some have ended, and the others still run. ``jf.censored`` names the column that says which.

n = 2000
plan = rng.choice(["basic", "pro"], n)
months = rng.weibull(1.3, n) * np.where(plan == "pro", 40, 15)
so_far = rng.uniform(1, 48, n)  # since the contract began
contracts = pd.DataFrame({"plan": plan, "ended": months <= so_far, "months": np.minimum(months, so_far).round(1)})
kinds = {"months": jf.censored(event="ended")}
running = jf.HiddenTreeForest(kinds=kinds, random_state=0).fit(contracts).joint_

at = np.arange(1, 45)
pro = contracts[contracts["plan"] == "pro"]
shares = {
    "true": np.exp(-((at / 40) ** 1.3)),
    "joint": running.given(plan="pro").survival("months", at=at),
    "running taken as ended": [(pro["months"] > t).mean() for t in at],
    "running dropped": [(pro["months"][pro["ended"]] > t).mean() for t in at],
}

# %%
# Old ways on the left and on the right, beside the joint and what is true.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
styles = [{"color": "black", "linewidth": 3, "alpha": 0.4}, {"color": "tab:blue"}]
styles += [{"color": color, "linestyle": "--"} for color in ("tab:orange", "tab:red")]
for (name, line), style in zip(means.items(), styles, strict=True):
    left.plot(means.index, line, label=name, **style)
left.set(xlabel="age", ylabel="mean of pfos")
left.legend()
for (name, curve), style in zip(shares.items(), styles, strict=True):
    right.plot(at, curve, label=name, **style)
right.set(xlabel="months", ylabel="share of pro contracts still running", ylim=(0, 1))
right.legend()
figure.tight_layout()
