"""The scripts of the explorer's page for those who cannot serve files: what a script reaches, as one script."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parent / "page"
"""Where the scripts and the style of the explorer are."""
IMPORT = re.compile(r'^(import (?:[^"]*? from )?)"\./([\w.]+)";', re.MULTILINE)
"""An import of another file: what comes before its name, and the name."""
_NAMED = re.compile(r"^import (\{[^}]*\}) from $")
_WHOLE = re.compile(r"^import \* as (\w+) from $")
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def script_text(path: Path) -> str:
    """A file of the page, whatever ends its lines."""
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def reached(main: str, folders: Sequence[Path]) -> dict[str, str]:
    """The scripts that one reaches, by name, each after those that it imports; the first folder that has it counts."""
    found: dict[str, str] = {}
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in open_:
            raise ValueError(f"scripts in a circle: {' imports '.join([*open_, name])}")
        if name in found:
            return
        open_.append(name)
        text = script_text(next(folder / name for folder in folders if (folder / name).exists()))
        for match in IMPORT.finditer(text) if name.endswith(".js") else ():
            visit(match[2])
        open_.pop()
        found[name] = text

    visit(main)
    return found


def one_script(main: str, folders: Sequence[Path] = (PAGE,)) -> str:
    """A script and all that it reaches as one module; a style that it imports is the text of its name ``text``."""
    # Each script becomes a function that is called once, so that names in one mean nothing in another.
    *others, (_, last) = reached(main, folders).items()
    parts = [f"const {_name(name)} = {_called(name, text)};" for name, text in others]
    return "\n".join([*parts, _imports(last)])


def _called(name: str, text: str) -> str:
    """What a file exports."""
    if name.endswith(".css"):
        return f"{{ text: {json.dumps(text)} }}"
    names = ", ".join(_EXPORT.findall(text))
    return f"(() => {{\n{_EXPORT.sub('', _imports(text))}return {{ {names} }};\n}})()"


def _imports(text: str) -> str:
    """A script whose imports are constants."""
    return IMPORT.sub(lambda match: _script_constant(match[1], _name(match[2])), text)


def _script_constant(words: str, name: str) -> str:
    if found := _NAMED.match(words):
        return f"const {found[1].replace(' as ', ': ')} = {name};"
    if found := _WHOLE.match(words):
        return f"const {found[1]} = {name};"
    if words == "import ":
        return ""
    raise ValueError(f"an import of another form: {words}")


def _name(file: str) -> str:
    return "$" + re.sub(r"\W", "_", file)


@cache
def script(main: str) -> str:
    """The page with all its scripts and its style, as one module of JavaScript."""
    return one_script(main)
