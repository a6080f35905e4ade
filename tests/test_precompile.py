"""python -m jointforest.precompile: what is compiled is found afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jointforest import precompile

LIST = (
    "jointforest.runtime.random_kernels.stream_state(int64, int64)\n"
    "jointforest.runtime.numeric_kernels.mix_rows(float64[:, ::1], int32[::1], float64[::1], float64[::1])\n"
)
ASK = """import sys
from pathlib import Path
from jointforest.runtime import machine_code, signatures
signatures.LIST = Path(sys.argv[1])
machine_code.SHIPPED = Path("no folder")  # a wheel brings these kernels
from jointforest import precompile
if __name__ == "__main__":
    precompile.compile_all(["--jobs", sys.argv[2]])
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_everything_on_the_list_is_compiled_once(tmp_path: Path, jobs: str) -> None:
    (tmp_path / "list.txt").write_text(LIST)
    (tmp_path / "ask.py").write_text(ASK)

    def said(cache: Path) -> str:
        env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, str(tmp_path / "ask.py"), str(tmp_path / "list.txt"), jobs]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    folder = tmp_path / "cache" / "jointforest"
    assert said(tmp_path / "cache") == f"2 kernels are ready: 2 compiled. They are kept in {folder}.\n"
    assert len(list(folder.iterdir())) == 2
    (next(folder.iterdir())).unlink()
    assert said(tmp_path / "cache") == f"2 kernels are ready: 1 compiled, 1 kept. They are kept in {folder}.\n"
    (tmp_path / "file").write_text("no folder")
    assert (
        said(tmp_path / "file")
        == "2 kernels are ready: 2 compiled. They cannot be kept: there is no folder to write to.\n"
    )


def test_a_number_of_processes_is_positive(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        precompile.compile_all(["--jobs", "0"])
    assert "--jobs must be at least 1, got 0" in capsys.readouterr().err
