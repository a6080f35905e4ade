"""Puts compiled kernels into a wheel: the folder that JOINTFOREST_MACHINE_CODE names, see `make wheel`.

Without it a wheel is of pure Python. With it the wheel is for this Python and this platform.
"""

from __future__ import annotations

import os
import sysconfig
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCode(BuildHookInterface):
    """Adds the folder, and the tag of the platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("JOINTFOREST_MACHINE_CODE")
        if not folder or version == "editable":
            return
        files = sorted(Path(folder).glob("*.code"))
        if not files:
            raise ValueError(f"JOINTFOREST_MACHINE_CODE: no compiled kernels in {folder}")
        build_data["pure_python"] = False
        build_data["tag"] = tag()
        build_data["force_include"] |= {str(file): f"jointforest/runtime/machine_code/{file.name}" for file in files}


def tag() -> str:
    """The tag of wheels for this Python; the platform is that of llvmlite's wheel, which links the code."""
    python = (
        "cp"
        + sysconfig.get_config_var("py_version_nodot")
        + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")
    )
    lines = (distribution("llvmlite").read_text("WHEEL") or "").splitlines()
    platforms = [line.rpartition("-")[2] for line in lines if line.startswith("Tag: ")]
    return f"{python.replace('t', '')}-{python}-{'.'.join(sorted(platforms))}"
