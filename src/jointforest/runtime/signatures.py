"""Signatures of entries as text, and back: types as numba writes them, records by the name of their class."""

# `signatures.txt` lists the entries that the public API calls, with their types. `tools/list_signatures.py` and `pytest
# --add-signatures` write it, and `jointforest.precompile` reads it.

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from numba.core import types

LIST = Path(__file__).with_suffix(".txt")

HEADER = """\
# Kernels that Python calls, with the types of their arguments: wheels bring machine code for these. Written by tools.
# After a change of kernels:  pytest --add-signatures PATHS OF TESTS  adds what these tests call and the list lacks.
# To write all of it anew:    python tools/list_signatures.py  (several minutes; it also drops what nothing calls).
# After a conflict of merging: keep the lines of both sides, then add those that are still missing as above.
"""

Listed = list[tuple[Any, tuple[types.Type, ...]]]
"""Entries, and the types of their arguments."""

RecordType = Callable[[type, tuple[types.Type, ...]], types.Type]
"""Gives the type of a record of a class with fields of these types."""


def text_of(signature: Iterable[types.Type]) -> str:
    """The types of arguments, such as ``float64[:, ::1], int64``."""
    return ", ".join(map(_type_text, signature))


def _type_text(of: types.Type) -> str:
    if isinstance(of, types.Array):
        dimensions = [":"] * of.ndim
        if of.layout in "CF":
            dimensions[-1 if of.layout == "C" else 0] = "::1"
        text = f"{_type_text(of.dtype)}[{', '.join(dimensions)}]"
        text = text if of.mutable else f"readonly({text})"
        return text if of.aligned else f"unaligned({text})"
    if hasattr(of, "cls"):  # a record
        return f"{of.cls.__module__}.{of.cls.__qualname__}({text_of(of.fields)})"
    if isinstance(of, types.Tuple | types.UniTuple):
        return f"({''.join(f'{_type_text(one)}, ' for one in of.types)})"
    return of.name


def read_list(text: str, record_type: RecordType) -> Listed:
    """The entries and signatures of a list."""
    # ``Name = package.module.Class(types of its fields)`` names a record; ``package.module.entry(types)`` is an entry.
    records: dict[str, types.Type] = {}
    listed = []
    for line in ast.parse(text).body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            records[line.targets[0].id] = _type(line.value, records, record_type)
        elif isinstance(line, ast.Expr) and isinstance(line.value, ast.Call):
            arguments = tuple(_type(argument, records, record_type) for argument in line.value.args)
            listed.append((_named(ast.unparse(line.value.func)), arguments))
        else:
            raise ValueError(f"not a line of a list of signatures: {ast.unparse(line)}")
    return listed


def entries(text: str) -> set[str]:
    """The entries of a list with their types, as text: names of records are replaced by what they stand for."""
    # Other than `read_list` this imports nothing, so it can read a list of another state of the package.
    records: dict[str, ast.expr] = {}

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return records.get(node.id, node)

    found = set()
    for line in ast.parse(text).body:
        replaced = Replace().visit(line.value)  # type: ignore[attr-defined]  # every line has a value
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            records[line.targets[0].id] = replaced
        else:
            found.add(ast.unparse(replaced))
    return found


def _type(node: ast.expr, records: dict[str, types.Type], record_type: RecordType) -> types.Type:
    if isinstance(node, ast.Name):
        return records[node.id] if node.id in records else getattr(types, node.id)
    if isinstance(node, ast.Subscript):  # such as int32[:, ::1]
        dimensions = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        layout = "C" if ast.unparse(dimensions[-1]) == "::1" else "F" if ast.unparse(dimensions[0]) == "::1" else "A"
        return types.Array(_type(node.value, records, record_type), len(dimensions), layout)
    if isinstance(node, ast.Tuple):
        return types.Tuple([_type(element, records, record_type) for element in node.elts])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "readonly":
        return _type(node.args[0], records, record_type).copy(readonly=True)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        fields = tuple(_type(argument, records, record_type) for argument in node.args)
        return record_type(_named(ast.unparse(node.func)), fields)
    raise ValueError(f"not a type in a list of signatures: {ast.unparse(node)}")


def _named(path: str) -> Any:
    """What stands at a path such as ``package.module.name``."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def write_list(listed: Listed) -> str:
    """The list of these entries and signatures; the same whatever order they come in."""
    names: dict[str, str] = {}  # of records, by their text

    def named(of: types.Type) -> str:
        if not hasattr(of, "cls"):
            return _type_text(of)
        full = f"{of.cls.__module__}.{of.cls.__qualname__}({', '.join(map(named, of.fields))})"
        if full not in names:
            same = sum(name.rstrip("0123456789_") == of.cls.__name__ for name in names.values())
            names[full] = of.cls.__name__ + (f"_{same + 1}" if same else "")
        return names[full]

    def key(item: tuple[Any, tuple[types.Type, ...]]) -> tuple[str, str, str]:
        return item[0].py_func.__module__, item[0].py_func.__qualname__, text_of(item[1])

    entries = []
    for entry, arguments in sorted(dict.fromkeys(listed), key=key):
        function = entry.py_func
        entries.append(f"{function.__module__}.{function.__qualname__}({', '.join(map(named, arguments))})\n")
    return HEADER + "".join(f"{name} = {full}\n" for full, name in names.items()) + "".join(entries)
