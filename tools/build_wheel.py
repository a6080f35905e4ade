"""Builds dist/*.tar.gz, and dist/*.whl with compiled kernels for this Python and this platform: ``make wheel``.

Two builds give the same bytes. Needs the extra ``release``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 25e6
"""Bytes that a wheel may have."""


def build(out: Path) -> tuple[Path, Path]:
    """Write a source distribution and a wheel; their paths."""
    with tempfile.TemporaryDirectory() as folder:
        # One process in a fixed order with fixed hashes, for numba numbers what it compiles and walks through sets.
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "0", "NUMBA_CACHE_DIR": folder}
        subprocess.run([sys.executable, "-m", "jointforest.precompile", "--jobs", "1"], env=environment, check=True)
        environment["JOINTFOREST_MACHINE_CODE"] = str(Path(folder) / "jointforest")
        command = [
            sys.executable,
            "-m",
            "build",
            "--no-isolation",
            "--sdist",
            "--wheel",
            "--outdir",
            str(out),
            str(ROOT),
        ]
        subprocess.run(command, env=environment, check=True)
    (source,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    if wheel.stat().st_size > LIMIT:
        raise SystemExit(f"{wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB; at most {LIMIT / 1e6:.0f} are allowed")
    return source, wheel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder")
    out = parser.parse_args().out
    for old in (*out.glob("*.tar.gz"), *out.glob("*.whl")):
        old.unlink()
    for path in build(out):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
