"""The scripts of the pages, run by Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from jointforest.explorer.scripts import PAGE, one_script
from jointforest.report.write import FILES

NODE = shutil.which("node")


def run(script: str, expression: str, data: Any = None) -> Any:
    """What an expression of ``data`` and of the names that a script exports answers, through JSON."""
    module = f"""{one_script(script, [FILES, PAGE])}
import {{ readFileSync }} from "node:fs";
const data = JSON.parse(readFileSync(0, "utf-8"));
process.stdout.write(JSON.stringify(await ({expression})));
"""
    command = [str(NODE), "--input-type=module", "-e", module]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
