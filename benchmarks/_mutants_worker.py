"""Faults for `mutants.py`, in the environment of cosmic-ray: JSON of faults drawn at random from the files given.

Every number, comparison, operator, keyword and loop is a place; annotations, in which `|` is no operator, are left out.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

LEFT_OUT = ("BitOr", "NoOp", "RemoveDecorator", "Variable", "ExceptionReplacer")


def main() -> None:
    asked = json.load(sys.stdin)
    draw = random.Random(asked["seed"])
    names = [name for name in operator_names() if not any(part in name for part in LEFT_OUT)]
    operators = {name: get_operator(name)() for name in names if not get_operator(name).arguments()}
    sources = {path: Path(path).read_text(encoding="utf-8") for path in asked["files"]}
    places: list[tuple[str, int]] = []
    kinds: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for path, source in sources.items():
        nodes = list(ast_nodes(get_ast(source)))
        for name, operator in operators.items():
            found = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            for occurrence, (line, column) in enumerate(found):
                kinds.setdefault((path, 10_000 * line + column), []).append((name, occurrence))
    places = draw.sample(sorted(kinds), min(asked["n"], len(kinds)))
    faults = []
    for path, at in places:
        name, occurrence = draw.choice(kinds[path, at])
        code = mutate_code(sources[path], operators[name], occurrence)
        faults.append({"file": path, "line": at // 10_000, "operator": name.split("/")[-1], "code": code})
    print(json.dumps(faults))


if __name__ == "__main__":
    main()
