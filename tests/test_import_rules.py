"""The import rules of docs/design.md, checked on the source: layers, circular imports, private names, kernel modules.

The table under "## Layers" of docs/design.md lists the layers, lowest first. A module imports from its own layer and
from the layers above it in the table. Imports inside functions and imports for type checkers count too. The package's
own `__init__.py` is exempt: it looks names up on first use. So are the annotations of `models/base.py`, which name the
arrays of the kinds of distribution.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "jointforest"
PAGE = ROOT / "docs" / "design.md"
COMPILERS = {"entry", "kernel", "njit", "jit", "vectorize", "guvectorize", "cfunc"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Path_ = tuple[str, ...]  # of a module below the package: ("trees", "grow", "grow"); of a package: ("trees", "grow")


class Import(NamedTuple):
    """One name that a file imports from the package."""

    source: Path_  # the module that imports
    target: Path_  # the module it imports, or imports from
    name: str  # "" for the module itself
    line: int
    alias: str  # what it is called there


# ------------------------------------------------------------------------------------------------------ reading source


@cache
def modules() -> dict[Path_, ast.Module]:
    """The syntax tree of every module; a package stands for its `__init__.py`."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[parts] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def file(module: Path_) -> str:
    """Path of a module's file below the package."""
    path = SOURCE.joinpath(*module)
    return str((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(SOURCE))


def base_of(node: ast.ImportFrom, module: Path_) -> Path_ | None:
    """The module that ``from ... import`` names; None if it is not the package's."""
    words = tuple(node.module.split(".")) if node.module else ()
    if node.level == 0:
        return words[1:] if words[:1] == ("jointforest",) else None
    package = module if SOURCE.joinpath(*module).is_dir() else module[:-1]
    return package[: len(package) - node.level + 1] + words


@cache
def imports() -> list[Import]:
    """All imports of the package's modules by each other."""
    found = []
    for module, tree in modules().items():
        if not module:
            continue
        for node in ast.walk(tree if module != ("models", "base") else without_annotations(tree)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    words = tuple(alias.name.split("."))
                    if words[0] == "jointforest":
                        found.append(Import(module, words[1:], "", node.lineno, alias.asname or words[0]))
            elif isinstance(node, ast.ImportFrom) and (base := base_of(node, module)) is not None:
                for alias in node.names:
                    module_name = (*base, alias.name)
                    target, name = (module_name, "") if module_name in modules() else (base, alias.name)
                    found.append(Import(module, target, name, node.lineno, alias.asname or alias.name))
    return found


def without_annotations(tree: ast.Module) -> ast.Module:
    """The module without its imports for type checkers."""
    kept = [node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]
    return ast.Module(kept, tree.type_ignores)


def functions() -> list[tuple[Path_, Function]]:
    """Every function and method, nested ones too, with its module."""
    return [(m, node) for m, tree in modules().items() for node in ast.walk(tree) if isinstance(node, Function)]


# --------------------------------------------------------------------------------------------------------------- layers


def layers() -> list[Path_]:
    """The layers of docs/design.md, lowest first."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Layers\n", 1)[1].split("\n## ", 1)[0]
    return [
        tuple(re.sub(r"\.py$", "", name).strip("/").split("/")) for name in re.findall(r"^\| `([^`]+)` ", text, re.M)
    ]


def layer_of(module: Path_) -> Path_:
    """The innermost layer of the table that a module is in; of the modules right at the root their own name."""
    inside = [layer for layer in layers() if module[: len(layer)] == layer]
    return max(inside, key=len, default=module[:1])


def scope_of(module: Path_) -> Path_:
    """The layer within which underscored names may be used: a folder directly below the package."""
    package = module if SOURCE.joinpath(*module).is_dir() else module[:-1]
    return package[:1] or module


def circles() -> list[list[Path_]]:
    """Groups of modules that reach each other by imports (Tarjan's strongly connected components of more than one)."""
    graph = {
        m: sorted({i.target for i in imports() if i.source == m and i.target and i.target != m}) for m in modules()
    }
    number: dict[Path_, int] = {}
    low: dict[Path_, int] = {}
    stack: list[Path_] = []
    found = []

    def visit(m: Path_) -> None:
        number[m] = low[m] = len(number)
        stack.append(m)
        for to in graph.get(m, ()):
            if to not in number:
                visit(to)
                low[m] = min(low[m], low[to])
            elif to in stack:
                low[m] = min(low[m], number[to])
        if low[m] == number[m]:
            group = stack[stack.index(m) :]
            del stack[stack.index(m) :]
            if len(group) > 1:
                found.append(group)

    for m in graph:
        if m not in number:
            visit(m)
    return found


def report(violations: list[str]) -> str:
    return f"{len(violations)} found:\n" + "\n".join(sorted(violations))


# ---------------------------------------------------------------------------------------------------------------- rules


def test_the_rooms_of_the_page_are_those_of_the_source() -> None:
    listed, folders = layers(), {m for m in modules() if SOURCE.joinpath(*m).is_dir() and m}
    assert len(listed) == len(set(listed)) >= 12
    gone = [layer for layer in listed if layer not in modules()]
    homeless = [file(m) for m, tree in modules().items() if m and tree.body and layer_of(m) not in listed]
    assert not gone and not homeless, f"layers without a folder {gone}, modules without a layer {homeless}"
    assert {f[0] for f in folders} <= {layer[0] for layer in listed}


def test_no_import_circle() -> None:
    assert not (found := circles()), report([", ".join(sorted(file(m) for m in group)) for group in found])


def test_no_room_imports_an_upper_one() -> None:
    order = {layer: k for k, layer in enumerate(layers())}
    wrong = []
    for i in imports():
        if not i.target:  # the package itself, which holds the version, and knows all layers
            if i.source != ("cli",) and i.name != "__version__":
                wrong.append(f"{file(i.source)}:{i.line} imports the package itself")
        elif order.get(layer_of(i.target), len(order)) > order.get(layer_of(i.source), -1):
            wrong.append(f"{file(i.source)}:{i.line} imports {file(i.target)}")
    assert not wrong, report(wrong)


def private_names_of(i: Import) -> list[tuple[int, str]]:
    """Line and name of each underscored name that a file takes from a module it imports."""
    return [
        (node.lineno, node.attr)
        for node in ast.walk(modules()[i.source])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == i.alias
        if node.attr.startswith("_") and not node.attr.startswith("__")
    ]


def test_no_underscored_name_leaves_its_room() -> None:
    wrong = []
    for i in imports():
        private = [word for word in (*i.target, i.name) if word.startswith("_") and not word.startswith("__")]
        if private and i.target and scope_of(i.source) != scope_of(i.target):
            wrong.append(f"{file(i.source)}:{i.line} imports {'.'.join((*i.target, i.name))}")
        if i.target and not i.name and scope_of(i.source) != scope_of(i.target):
            wrong += [f"{file(i.source)}:{line} uses {i.alias}.{name}" for line, name in private_names_of(i)]
    assert not wrong, report(wrong)


def compiles(node: ast.expr) -> bool:
    """Whether an expression is a compiling decorator, with or without its settings."""
    inner = node.func if isinstance(node, ast.Call) else node
    return (inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")) in COMPILERS


def test_kernels_live_in_files_named_kernels_and_only_there() -> None:
    wrong, with_kernels = [], set()
    for module, f in functions():
        if any(compiles(decorator) for decorator in f.decorator_list):
            with_kernels.add(module)
            if not module[-1].endswith("_kernels"):
                wrong.append(f"{file(module)}:{f.lineno} {f.name} is a kernel")
    wrong += [
        f"{file(m)} holds no kernel" for m in modules() if m and m[-1].endswith("_kernels") and m not in with_kernels
    ]
    assert not wrong, report(wrong)


def test_no_file_is_compiled_with_a_warning() -> None:
    """Such as of ``is`` beside a literal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in sorted(SOURCE.rglob("*.py")):
            compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_n_jobs_is_an_argument_of_the_public_interface_alone() -> None:
    """What the interface calls reads the number of threads where work is spread: `runtime.threads`."""
    public = ("api/", "drift/", "estimators/", "learners/", "evaluation/fidelity.py")
    wrong = []
    for module, f in functions():
        default = {
            argument.arg: ast.unparse(value)
            for argument, value in zip(f.args.kwonlyargs, f.args.kw_defaults, strict=True)
            if value is not None
        }
        names = [argument.arg for argument in [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs]]
        is_known = file(module).startswith(public) and default.get("n_jobs") == "-1"
        if "n_jobs" in names and not is_known and file(module) != "runtime/threads.py":
            wrong.append(f"{file(module)}:{f.lineno} {f.name} has an argument n_jobs")
    assert not wrong, report(wrong)
