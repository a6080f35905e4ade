"""Checks a release on this machine: ``make release-check``. Prints a table; ends with an error if anything is wrong.

Builds the source distribution and the wheel twice and compares their bytes. Installs each into a fresh environment, the
wheel without a network. Runs the first example of README.md and the tests marked ``smoke`` with compilation forbidden.
Runs the example where a wheel must compile, such as with the oldest supported numba, and where it must not. Processes
find no other program, so no C compiler either. Needs the extra ``release``, and a network once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from build_wheel import ROOT, build

from jointforest.runtime.compile import TESTED_RELEASES

EXTRAS = "[cli,explore,pandas,report]"
TESTING = ("pytest>=8", "hypothesis>=6.100", "httpx>=0.27", "mpmath>=1.3", "polars>=1.0")
EPOCH = "1700000000"
"""Time of the files in both builds."""

COUNT = """
import sys
from numba.core import event

class Count(event.Listener):
    n = 0
    def on_start(self, what):
        dispatcher = what.data["dispatcher"]
        Count.n += dispatcher.py_func.__module__.startswith("jointforest.")
    def on_end(self, what):
        pass

event.register("numba:compile", Count())
"""
ANSWERS = """
import hashlib, json
import numpy as np
rows = joint.sample(50, random_state=1).to_csv() + joint.impute(penguins).to_csv()
bits = hashlib.sha256(joint.log_density(penguins).tobytes() + rows.encode()).hexdigest()
print(json.dumps({"compiled": Count.n, "answers": bits}))
"""


class Ran(NamedTuple):
    """What the example did: kernels compiled, seconds of a process that does not count them, a hash of answers."""

    compiled: int
    seconds: float
    answers: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "release", help="folder for environments")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environments")
    options = parser.parse_args()
    work: Path = options.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    source, wheel = built(work)
    run([sys.executable, "-m", "twine", "check", "--strict", source, wheel])
    house = downloaded(wheel, work / "wheels")
    of_wheel, of_source = environment(options.python, work / "wheel"), environment(options.python, work / "source")
    offline = ["--no-index", "--find-links", house]
    run([of_wheel, "-m", "pip", "install", "--quiet", *offline, f"jointforest{EXTRAS}", *TESTING])
    run([of_source, "-m", "pip", "install", "--quiet", f"{source}{EXTRAS}", *TESTING])
    of_old = environment(options.python, work / "old numba")
    run([of_old, "-m", "pip", "install", "--quiet", f"{wheel}{EXTRAS}", f"numba=={TESTED_RELEASES[0]}.*"])
    faults = compare(of_wheel, of_source, of_old, work)
    smoke(of_wheel, work / "home of the wheel")
    smoke(of_source, work / "home of the source")
    if faults:
        raise SystemExit("\n".join(faults))


def run(command: list, **keywords) -> str:
    """Run a command; its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **keywords)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def built(work: Path) -> tuple[Path, Path]:
    """The source distribution and the wheel, if building them again gives the same bytes."""
    os.environ["SOURCE_DATE_EPOCH"] = EPOCH
    first, second = ([Path(path) for path in build(work / name)] for name in ("dist", "again"))
    for one, other in zip(first, second, strict=True):
        if one.read_bytes() != other.read_bytes():
            raise SystemExit(f"two builds of {one.name} differ; compare {one} and {other}")
        print(f"{one.name}: {one.stat().st_size / 1e6:.1f} MB, the same bytes in two builds", flush=True)
    return first[0], first[1]


def downloaded(wheel: Path, house: Path) -> Path:
    """A folder of wheels: this one and all that it needs."""
    run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", house, f"{wheel}{EXTRAS}", *TESTING])
    return house


def environment(python: str, folder: Path) -> Path:
    """The interpreter of a fresh environment."""
    run([python, "-m", "venv", folder])
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


# ---- The example of the README.


def example() -> str:
    """The first block of Python in README.md."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise SystemExit("README.md has no example")
    return found[1]


def ran(python: Path, home: Path | None, before: str = "", user: int | None = None, **variables: str) -> Ran:
    """What the example does. Each process has this home, or an empty one of its own; first it runs ``before``."""
    start = time.perf_counter()
    process(python, before + example(), home, user, variables)
    seconds = time.perf_counter() - start
    counted = json.loads(process(python, before + COUNT + example() + ANSWERS, home, user, variables).splitlines()[-1])
    return Ran(counted["compiled"], seconds, counted["answers"])


def process(python: Path, code: str, home: Path | None, user: int | None, variables: dict[str, str]) -> str:
    """Run code in an empty folder, with few variables of the environment, and no programs; its output."""
    kept = ("SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP", "LANG")
    env = {name: os.environ[name] for name in kept if name in os.environ} | variables
    rights = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # the example saves a file, whoever runs it
        place = Path(folder) / "home" if home is None else home
        env |= {"HOME": str(place), "USERPROFILE": str(place), "LOCALAPPDATA": str(place), "PATH": folder}
        return run([python, "-I", "-W", "ignore", "-c", code], env=env, cwd=folder, **rights)


def compare(of_wheel: Path, of_source: Path, of_old: Path, work: Path) -> list[str]:
    """Print what the example does in each situation; return what is wrong. Another numba may round otherwise."""
    kept = work / "home of the source"
    other = "import numba; numba.__version__ = {!r}\n"
    faults: list[str] = []
    answers: set[str] = set()

    def row(what: str, is_compiling: bool, *arguments, **keywords) -> None:
        done = ran(*arguments, **keywords)
        if arguments[0] != of_old:
            answers.add(done.answers)
        print(f"{what:55} {done.compiled:8} {done.seconds:8.1f} s   {done.answers[:12]}", flush=True)
        if (done.compiled > 0) != is_compiling:
            faults.append(f"{what}: {done.compiled} kernels were compiled")

    print(f"\n{'the first example of README.md':55} compiled  seconds     answers")
    row("wheel", False, of_wheel, None)
    row("source", True, of_source, None)
    precompile(of_source, kept)
    row("source, after python -m jointforest.precompile", False, of_source, kept)
    row("wheel, NUMBA_CPU_NAME=nehalem", False, of_wheel, None, NUMBA_CPU_NAME="nehalem", NUMBA_CPU_FEATURES="")
    row("source, NUMBA_CPU_NAME=nehalem", True, of_source, None, NUMBA_CPU_NAME="nehalem", NUMBA_CPU_FEATURES="")
    row("wheel, another release of numba in a tested series", True, of_wheel, None, other.format("0.68.99"))
    # then numba keeps what it compiled beside the package, unless it is told another place: a folder of each process
    row("wheel, an unknown release of numba", True, of_wheel, None, other.format("9999.0"), NUMBA_CACHE_DIR="kernels")
    row(f"wheel, numba {TESTED_RELEASES[0]}, the oldest supported", True, of_old, None)
    if os.name == "posix" and os.geteuid() == 0 and is_readable_by_all(of_wheel):
        row("wheel, another user, no home, nothing is writable", False, of_wheel, Path("/nonexistent"), user=65534)
    else:
        print("another user: not checked; this needs root, and an interpreter that all can run (--python)")
    flipped = flip_byte(of_wheel)
    row("wheel, a byte of one file is another", True, of_wheel, None)
    flip_byte(of_wheel, flipped)
    row("wheel, the byte is back", False, of_wheel, None)
    if len(answers) > 1:
        faults.append("answers differ")
    return faults


def precompile(python: Path, home: Path) -> None:
    """Compile everything into this home."""
    env = {**os.environ, "HOME": str(home), "USERPROFILE": str(home), "LOCALAPPDATA": str(home)}
    print(run([python, "-I", "-m", "jointforest.precompile"], env=env).strip(), flush=True)


def is_readable_by_all(python: Path) -> bool:
    """Whether other users can run an interpreter: they can enter all folders on the way to it."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in python.resolve().parents)


def flip_byte(python: Path, at: tuple[Path, int] | None = None) -> tuple[Path, int]:
    """Flip a bit in a file of machine code that the example loads, in an environment; the place."""
    if at is None:
        (file,) = sorted((python.parents[1]).rglob("posterior.posterior_rows-*.code"))
        at = file, file.stat().st_size // 2
    file, place = at
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    return at


def smoke(python: Path, home: Path) -> None:
    """Run the tests marked ``smoke`` on what is installed, with compilation forbidden."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "tests", Path(folder) / "tests")
        shutil.copy(ROOT / "pyproject.toml", folder)
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HOME": str(home)}
        files = [
            path.relative_to(ROOT)
            for path in sorted((ROOT / "tests").rglob("test_*.py"))
            if "pytest.mark.smoke" in path.read_text(encoding="utf-8")
        ]  # others import what is not installed
        options = ["-q", "-m", "smoke", "--forbid-compilation", "-p", "no:cacheprovider"]
        print(run([python, "-m", "pytest", *options, *files], env=env, cwd=folder).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
