"""The examples of the gallery run, as plain Python, and each draws a picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples" / "gallery").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    from matplotlib import pyplot

    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
        assert pyplot.get_fignums()
    finally:
        pyplot.close("all")
    assert not list(tmp_path.iterdir())  # it leaves nothing behind


def test_there_are_examples() -> None:
    assert EXAMPLES
