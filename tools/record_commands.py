"""Runs the commands that a page of the documentation shows, and writes their output into the page.

A page has Python blocks, which are run first, and console blocks: a line ``$ jointforest ...`` and the output below it.
`python tools/record_commands.py docs/tutorials/messy-table.md` renews the output; a test compares it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import jointforest

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ jointforest (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def recorded(page: str) -> str:
    """The page with the output that its commands have today, all run in one new folder."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in PYTHON.finditer(page):
                exec(compile(block[1], "page", "exec"), {"__name__": "__main__"})
            return CONSOLE.sub(lambda block: f"```console\n$ jointforest {block[1]}\n{_output(block[1])}```", page)
        finally:
            os.chdir(before)


def _output(command: str) -> str:
    """What a command prints on both of its streams."""
    words = [sys.executable, "-m", "jointforest", *shlex.split(command)]
    env = os.environ | {"PYTHONPATH": str(Path(jointforest.__file__).parents[1])}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False)
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(recorded(path.read_text()))


if __name__ == "__main__":
    main()
