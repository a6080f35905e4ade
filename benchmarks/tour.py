"""Run the README's tour on Adult: fail if an answer differs from what is printed there, or write the answers anew."""

from __future__ import annotations

import argparse
import doctest
import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(?<=^```py\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Run the blocks marked ``py`` as doctests, in order, sharing their names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with adult_train.parquet")
    parser.add_argument("--write", action="store_true", help="write the answers into README.md")
    options = parser.parse_args()
    names: dict[str, object] = {"DATA": options.data}
    differ = 0

    def run(match: re.Match[str]) -> str:
        nonlocal differ
        test = doctest.DocTestParser().get_doctest(match.group(1), {}, "README", "README.md", 0)
        test.globs = names
        answers: list[str] = []
        Recorder(answers).run(test, out=lambda _: None, clear_globs=False)
        differ += sum(a != e.want for a, e in zip(answers, test.examples, strict=True))
        parts = []
        for example, answer in zip(test.examples, answers, strict=True):
            lines = example.source.rstrip("\n").split("\n")
            parts.append("\n".join([">>> " + lines[0], *("... " + line for line in lines[1:])]) + "\n" + answer)
        return "".join(parts)

    text = BLOCK.sub(run, README.read_text(encoding="utf-8"))
    if options.write:
        README.write_text(text, encoding="utf-8")
    print(f"{differ} answers {'written' if options.write else 'differ'}")
    sys.exit(0 if options.write or not differ else 1)


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
