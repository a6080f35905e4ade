"""Measures memory, size of files and seconds on made tables with columns of thousands of levels.

Each case is a fresh process. Peak memory covers the process until the end of fitting, with interpreter and table.
"""

from __future__ import annotations

import json
import subprocess
import sys

from _common import HERE, arguments, finish, progress, verdict

CASES = (
    ("outlier detector", 4_000, 16, (1_973,), "peak (GB)", 0.5),
    ("outlier detector", 20_000, 17, (1_973,), "peak (GB)", 1.0),
    ("adversarial forest of 5 trees", 60_000, 12, (3_000, 3_000), "file (MB)", 40.0),
    ("adversarial forest of 5 trees", 180_000, 21, (3_500, 140, 120), "peak (GB)", 2.0),
    ("generative forest of 10 trees", 10_000, 9, (2_000,), "peak (GB)", 1.0),
)
"""Learner, rows, columns, levels of those of many (a generative forest's classes); what shall be at most how much."""


def main() -> None:
    options = arguments(__doc__)
    table = []
    for name, rows, columns, levels, what, limit in CASES:
        rows = rows // 10 if options.quick else rows
        data = [str(x) for x in (rows, columns, options.seed, *levels)]
        command = [sys.executable, str(HERE / "_many_levels_worker.py"), name.split(" of ")[0], *data]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name}, {rows} rows, failed:\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        row = {
            "learner": name,
            "rows": rows,
            "columns": columns,
            "many levels": ", ".join(map(str, levels)),
            "leaves": found["leaves"],
            "fit (s)": found["seconds"],
            "before (GB)": found["before"] / 1e9,
            "peak (GB)": found["peak"] / 1e9,
            "peak with saving (GB)": found["peak with the file"] / 1e9,
            "file (MB)": found["file"] / 1e6,
            "log-densities of 10,000 rows (s)": found["density"],
            "of": what,
        }
        table.append(row | verdict(row[what], limit))
        progress(f"{name}, {rows} rows: peak {row['peak (GB)']:.2f} GB, file {row['file (MB)']:.0f} MB")
    finish("many_levels", {"Columns of many levels": table}, {"seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
