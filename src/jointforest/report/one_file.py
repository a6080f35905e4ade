"""Scripts, styles and data inside one file of HTML, which a browser runs from disk and which reaches no network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..explorer.scripts import IMPORT, PAGE, reached, script_text

FILES = Path(__file__).parent / "page"
"""Where the report's own scripts, styles and template are."""
_HINT = "a report needs Jinja2: pip install 'jointforest[report]'"
_MAIN = "report_main.js"


def render(data: Mapping[str, Any], **told: Any) -> str:
    """The report: the template filled with ``told`` and, for its scripts, with ``data``.

    Raises
    ------
    ImportError
        Without Jinja2.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(_HINT) from error
    page = Environment(
        autoescape=True, loader=FileSystemLoader(FILES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page.filters["breakable"] = _breakable
    style = script_text(PAGE / "style.css") + script_text(FILES / "report.css")
    modules = json.dumps({"imports": {f"jf/{name}": _address(text) for name, text in _modules().items()}})
    start = f'import "jf/{_MAIN}";'
    policy = (
        f"default-src 'none'; script-src {_hash(modules)} {_hash(start)} data:; style-src {_hash(style)}; "
        "img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return page.get_template("report.html.jinja").render(
        policy=policy,
        style=Markup(style),
        modules=Markup(modules),
        start=Markup(start),
        data=Markup(_in_script(data)),
        **told,
    )


def _breakable(text: Any) -> Any:
    """A name that may go on in the next line after a "_", ".", "/" or "-", and nowhere inside a word."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[_./-])(?=[^_./-])", str(text)))


def _modules() -> dict[str, str]:
    """The scripts that the first one reaches, by name; they import each other by bare names."""
    found = reached(_MAIN, [FILES, PAGE])
    return {name: IMPORT.sub(r'\1"jf/\2";', found[name]) for name in sorted(found)}


def _address(script: str) -> str:
    return "data:text/javascript;base64," + base64.b64encode(script.encode()).decode()


def _hash(text: str) -> str:
    """What a Content-Security-Policy calls an element with this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _in_script(data: Mapping[str, Any]) -> str:
    """JSON in which nothing ends a script element, or begins a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
