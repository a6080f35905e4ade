"""Runs the tour on Adult of docs/tutorials/tour.md and README.md, and fails if an answer differs.

``--write`` writes the answers into the pages.
"""

from __future__ import annotations

import argparse
import doctest
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/tutorials/tour.md")
BLOCK = re.compile(r"(?<=^```py\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Run the pages' tours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with adult_train.parquet")
    parser.add_argument("--write", action="store_true", help="write the answers into the pages")
    options = parser.parse_args()
    differ = sum(check(page, options.data, options.write) for page in PAGES)
    print(f"{differ} answers {'written' if options.write else 'differ'}")
    sys.exit(0 if options.write or not differ else 1)


def check(page: str, data: Path, write: bool) -> int:
    """Run a page's blocks marked ``py`` as doctests, in order, sharing their names: how many answers differ."""
    names: dict[str, object] = {"DATA": data}
    differ = 0

    def run(match: re.Match[str]) -> str:
        nonlocal differ
        test = doctest.DocTestParser().get_doctest(match.group(1), {}, page, page, 0)
        test.globs = names
        answers: list[str] = []
        Recorder(answers).run(test, out=lambda _: None, clear_globs=False)
        parts = []
        for example, answer in zip(test.examples, answers, strict=True):
            differ += answer != example.want
            if answer != example.want and not write:
                print(f"{page}: {example.source}is now {answer}", end="")
            lines = example.source.rstrip("\n").split("\n")
            parts.append("\n".join([">>> " + lines[0], *("... " + line for line in lines[1:])]) + "\n" + answer)
        return "".join(parts)

    path = ROOT / page
    text = BLOCK.sub(run, path.read_text(encoding="utf-8"))
    if write:
        path.write_text(text, encoding="utf-8")
    return differ


class Recorder(doctest.DocTestRunner):
    """Keeps what each example printed."""

    def __init__(self, answers: list[str]) -> None:
        super().__init__(verbose=False)
        self.answers = answers

    def report_success(self, out: object, test: object, example: doctest.Example, got: str) -> None:
        """Keep it."""
        self.answers.append(got)

    def report_failure(self, out: object, test: object, example: doctest.Example, got: str) -> None:
        """Keep it."""
        self.answers.append(got)

    def report_unexpected_exception(self, out: object, test: object, example: doctest.Example, exc_info: tuple) -> None:
        """An error is never an answer."""
        raise exc_info[1]


if __name__ == "__main__":
    main()
