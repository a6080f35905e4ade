"""Sizes of the source and the documentation: python tools/count_lines.py [REVISION]"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter

FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
SPACE = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}


def files(revision: str) -> dict[str, str]:
    """Texts of the Python modules and of the pages of a revision, by path."""
    packed = subprocess.run(["git", "archive", revision, "src", "docs"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        wanted = [one for one in archive if one.isfile() and one.name.endswith((".py", ".md"))]
        return {one.name: opened.read().decode() for one in wanted if (opened := archive.extractfile(one))}


def docstring_lines(tree: ast.Module) -> set[int]:
    """Numbers of the lines of docstrings, of fields and constants too."""
    found = set()
    for node in ast.walk(tree):
        for one in getattr(node, "body", []) if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) else []:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                found |= set(range(one.lineno, (one.end_lineno or 0) + 1))
    return found


def main() -> None:
    texts = files(sys.argv[1] if len(sys.argv) > 1 else "HEAD")
    counts: Counter[str] = Counter()
    modules_of: Counter[str] = Counter()
    for path, text in texts.items():
        if path.endswith(".md"):
            counts["words of documentation"] += len(text.split())
        elif path.startswith("src/"):
            tree = ast.parse(text)
            documented = docstring_lines(tree)
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
            lines = {k for t in tokens if t.type not in SPACE for k in range(t.start[0], t.end[0] + 1)}
            functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
            counts["modules"] += 1
            counts["lines of code"] += len(lines - documented)
            counts["lines of docstrings"] += len(documented)
            counts["comments"] += sum(t.type == tokenize.COMMENT for t in tokens)
            counts["functions"] += len(functions)
            counts["functions with n_jobs"] += sum(
                "n_jobs" in [a.arg for a in f.args.args + f.args.kwonlyargs] for f in functions
            )
            modules_of.update({node.name for node in tree.body if isinstance(node, (ast.ClassDef, *FUNCTIONS))})
    counts["top-level names in several modules"] = sum(n > 1 for n in modules_of.values())
    for what, count in counts.items():
        print(f"{count:8,}  {what}")


if __name__ == "__main__":
    main()
