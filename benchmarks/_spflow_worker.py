"""Runs inside the SPFlow environment: a joint from its file as a circuit of SPFlow, log-densities of rows.

Prints one JSON object on the last line of standard output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
import jointforest as jf


def places(joint: jf.Joint, frame: pd.DataFrame) -> np.ndarray:
    """The rows as SPFlow reads them: numbers, places of levels, NaN where missing."""
    out = np.full((len(frame), len(joint.columns)), np.nan)
    for j, name in enumerate(joint.columns):
        cells = frame[name].astype(object)
        known = frame[name].notna().to_numpy()
        if joint.schema.columns[j].is_categorical:
            place = {level: float(k) for k, level in enumerate(joint.levels(name))}
            out[known, j] = [place.get(level, np.nan) for level in cells[known]]
        else:
            out[known, j] = cells[known].astype(float)
    return out


def main() -> None:
    folder = Path(sys.argv[1])
    joint = jf.load(folder / "one.joint")
    X = places(joint, pd.read_parquet(folder / "rows.parquet"))
    circuit = joint.to_spflow()
    with torch.no_grad():
        found = torch.cat([circuit.log_likelihood(part) for part in torch.as_tensor(X).split(100)])
    print(json.dumps({"log_density": found.ravel().tolist()}))


if __name__ == "__main__":
    main()
