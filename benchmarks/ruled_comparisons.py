"""Compares all answers of joints of random small tables under overlapping rules with sums over all their rows.

Each seed is a table with two to six rules, of which some are declared and others found, and a joint learned from it.
The questions and the sums are those of tests/random_cases/ruled_joints.py and tests/oracle/ruled.py. Printed are the
numbers compared, questions that were refused or estimated, and every answer that is wrong. ``--cases`` is the number of
joints, of some 250 questions and 3,000 numbers each; ``--seed`` is the first of them.
"""

from __future__ import annotations

import sys

from _common import HERE, arguments, finish, progress

sys.path.insert(0, str(HERE.parent))

from tests.random_cases.ruled_joints import cases

TITLE = "Answers under rules beside sums over all rows"


def main() -> None:
    options = arguments(__doc__, cases={"type": int, "default": 100, "help": "joints to ask (default 100)"})
    n = 5 if options.quick else options.cases
    total = {"joints": 0, "questions": 0, "comparisons": 0, "refused": 0, "estimated": 0, "wrong": 0}
    for seed, tally in cases(options.seed, n):
        counts = (1, tally.questions, tally.made, tally.refused, tally.estimated, len(tally.wrong))
        total = {name: before + count for (name, before), count in zip(total.items(), counts, strict=True)}
        for text in tally.wrong:
            progress(text)
        if total["joints"] % 5 == 0:
            progress(f"up to seed {seed}: {total}")
    finish("ruled_comparisons", {TITLE: [total]}, {"cases": n, "seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
