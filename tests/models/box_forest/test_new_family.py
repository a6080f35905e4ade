"""A new family of leaf distributions is one file and one line: it is learned, asked everything, saved and loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import jointforest
from jointforest.runtime import machine_code

HERE = Path(__file__).parent
LEAVES = Path("models/box_forest/leaves")


def test_a_new_family_is_one_file_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "src" / "jointforest"
    shutil.copytree(Path(jointforest.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "logistic_kernels.py", package / LEAVES)
    module = package / LEAVES / "family_kernels.py"
    text = module.read_text()
    known, imported = '"student": student_kernels}', "from . import normal_kernels"
    assert text.count(known) == text.count(imported) == 1
    text = text.replace(known, '"student": student_kernels, "logistic": logistic_kernels}')
    module.write_text(text.replace(imported, "from . import logistic_kernels, normal_kernels"))
    cache = tmp_path / "cache" / "jointforest"
    cache.mkdir(parents=True)
    for file in (machine_code.writable_folder() or cache).glob("*.*"):  # kept code that no leaf is part of serves
        with suppress(FileNotFoundError):  # other processes replace files
            shutil.copy(file, cache)
    path = os.pathsep.join([str(tmp_path / "src"), str(HERE.parents[2])])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache.parent)}
    script = ".".join([*HERE.relative_to(HERE.parents[2]).parts, "ask_new_family"])
    done = subprocess.run(
        [sys.executable, "-m", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
