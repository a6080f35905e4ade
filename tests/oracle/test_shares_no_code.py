"""The oracle shares no code with the package: what it imports of it are data classes, and numbers that name kinds."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parents[1]
ORACLE = [path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]


def imported(path: Path) -> list[tuple[str, str]]:
    """(module, name) of every import in a file; a module imported whole has the name ''."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(str(node.module), alias.name) for alias in node.names]
    return found


def with_helpers(paths: list[Path]) -> set[Path]:
    """These files, and all files of the tests that they import, directly or through others."""
    known, waiting = set(), list(paths)
    while waiting:
        path = waiting.pop()
        if path not in known:
            known.add(path)
            for module, name in imported(path):
                if module.split(".")[0] == "tests":
                    for whole in (module, f"{module}.{name}"):
                        file = TESTS.parent.joinpath(*whole.split(".")).with_suffix(".py")
                        waiting += [file] if file.is_file() else []
    return known


def is_data(thing: Any) -> bool:
    """A class that only holds fields, or a number."""
    fields = hasattr(thing, "_fields") or hasattr(thing, "__dataclass_fields__")
    return isinstance(thing, int | np.integer) or (isinstance(thing, type) and fields)


def test_the_oracle_imports_only_data_classes() -> None:
    code = []
    for path in with_helpers(ORACLE):
        for module, name in imported(path):
            if module.split(".")[0] == "jointforest" and not (
                name and is_data(getattr(importlib.import_module(module), name))
            ):
                code.append(f"{path.relative_to(TESTS)}: {module} {name}")
    assert len(ORACLE) >= 10
    assert code == []
