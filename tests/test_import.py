"""What stays unimported: `import jointforest` takes no time, and a query loads only what it needs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import jointforest as jf

HEAVY = ["numba", "numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow", "click", "safetensors", "matplotlib"]
HEAVY += ["starlette", "uvicorn", "jinja2", "anywidget", "ipywidgets", "IPython", "dask", "distributed"]


def loaded(code: str) -> set[str]:
    """Top-level packages that a fresh Python has loaded after some code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_import_loads_nothing_heavy() -> None:
    assert not loaded("import jointforest; jointforest.__version__; dir(jointforest)") & set(HEAVY)


def test_reading_a_query_needs_no_kernels() -> None:
    code = "from jointforest.query_language import parse_query; parse_query('P(a = 1 | b > 2)')"
    assert not loaded(code) & {"numba", "scipy", "sklearn", "pandas", "polars", "pyarrow"}


def test_the_command_line_starts_light() -> None:
    assert not loaded("import jointforest.cli") & (set(HEAVY) - {"click"})


def test_loading_and_asking_a_model_needs_no_frames(tmp_path: Path) -> None:
    path = tmp_path / "p.joint"
    jf.AdversarialForest(n_estimators=2, random_state=0).fit(jf.datasets.load_penguins()).joint_.save(path)
    code = f"import jointforest as jf; joint = jf.load({str(path)!r}); joint.query('P(species | body_mass_g > 5000)')"
    assert not loaded(code) & {"sklearn", "pandas", "polars", "pyarrow", "matplotlib", "starlette", "uvicorn", "jinja2"}


@pytest.mark.parametrize("name", jf.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(jf, name) is not None and name in dir(jf)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="nothing_such"):
        jf.nothing_such  # noqa: B018


def test_version_is_the_package_s() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["version"] == jf.__version__
