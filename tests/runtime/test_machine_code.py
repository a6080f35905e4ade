"""Machine code in files: what its key depends on, what is not loaded, who is trusted, what happens without a home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from jointforest.runtime import machine_code
from jointforest.runtime.compile import entry, kernel
from jointforest.runtime.machine_code import Code, key_of

CALLED = "from jointforest.runtime.compile import kernel\n\n@kernel\ndef step(x):\n    return x + {}\n"
CALLS = (
    "from jointforest.runtime.compile import entry, kernel\nfrom called_kernels import step\n\n"
    "@kernel\ndef twice(x):\n    return step(step(x))\n\n@entry\ndef run(x):\n    return twice(x)\n"
)
ASK = "from calls_kernels import run; print(run(1.0), len(run.compiled.overloads))"  # overloads are what is compiled


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., list[str]]:
    """Runs an entry in a process of its own; gives the answer, and how many signatures the process compiled."""
    (tmp_path / "calls_kernels.py").write_text(CALLS)
    (tmp_path / "called_kernels.py").write_text(CALLED.format("1.0"))

    def run(code: str = ASK, **environment: str) -> list[str]:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
               "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **environment}  # fmt: skip
        return subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        ).stdout.split()

    return run


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "jointforest").glob("*.code"))


def test_code_is_kept_until_a_kernel_in_it_changes(ask: Callable[..., list[str]], tmp_path: Path) -> None:
    assert [ask(), ask()] == [["3.0", "1"], ["3.0", "0"]]
    (tmp_path / "called_kernels.py").write_text("# a comment\n\n\n" + CALLED.format("1.0"))
    assert ask() == ["3.0", "0"]  # what it does is the same
    (tmp_path / "called_kernels.py").write_text(CALLED.format("10.0"))
    assert ask() == ["21.0", "1"]
    (tmp_path / "called_kernels.py").write_text(CALLED.format("1.0"))
    assert ask() == ["3.0", "0"]  # the first code is still there
    assert len(kept(tmp_path)) == 2


def test_code_does_not_depend_on_the_processor_or_the_place(ask: Callable[..., list[str]], tmp_path: Path) -> None:
    names, contents = [], []
    for processor in ("nehalem", "skylake-avx512"):
        cache = tmp_path / processor
        assert ask(NUMBA_CPU_NAME=processor, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=str(cache)) == ["3.0", "1"]
        (file,) = (cache / "jointforest").iterdir()
        names.append(file.name)
        contents.append(file.read_bytes())
    assert names[0] == names[1]
    assert contents[0] == contents[1]
    for place in (tmp_path, Path(sys.prefix), Path(machine_code.__file__).parent):
        assert str(place).encode() not in contents[0]


def test_code_is_the_same_in_every_process(ask: Callable[..., list[str]], tmp_path: Path) -> None:
    """Numba names the functions of array expressions by addresses, which differ."""
    (tmp_path / "sums_kernels.py").write_text(
        "from jointforest.runtime.compile import entry, kernel\n\n"
        "@kernel\ndef inner(x):\n    return x + 2.0 * x\n\n"
        "@entry\ndef outer(x):\n    return (inner(x) - x * x).sum()\n"
    )
    use = "import numpy as np; from sums_kernels import outer; print(outer(np.arange(3.0)))"
    contents = []
    for cache, garbage in (("first", "0"), ("second", "[object() for _ in range(10 ** 5)]")):
        code = f"garbage = {garbage}; {use}"
        assert ask(code, NUMBA_CACHE_DIR=str(tmp_path / cache), PYTHONHASHSEED="0") == ["4.0"]
        (file,) = (tmp_path / cache / "jointforest").iterdir()
        contents.append(file.read_bytes())
    assert contents[0] == contents[1]


def test_functions_that_one_def_makes_stay_apart(ask: Callable[..., list[str]], tmp_path: Path) -> None:
    """Two processes give them the same symbol, each in a file of its own; a third process loads both files."""
    (tmp_path / "made_kernels.py").write_text(
        "from jointforest.runtime.compile import entry, kernel\n\n"
        "def make(n):\n"
        "    @kernel\n"
        "    def inner(x, k):\n"
        "        return x if k == 0 else inner(x + n, k - 1)\n\n"  # no compiler inlines a function that calls itself
        "    return inner\n\n"
        "one, ten = make(1.0), make(10.0)\n\n"
        "@entry\ndef first(x, k):\n    return one(x, k)\n\n"
        "@entry\ndef second(x, k):\n    return ten(x, k)\n"
    )
    assert ask("from made_kernels import first; print(first(0.0, 3))") == ["3.0"]
    assert ask("from made_kernels import second; print(second(0.0, 3))") == ["30.0"]
    both = "print(first(0.0, 3), second(0.0, 3), len(second.compiled.overloads))"
    assert ask(f"from made_kernels import first, second; {both}") == ["3.0", "30.0", "0"]


@pytest.mark.parametrize("change", ["numba.__version__ = '0.68.99'", "llvmlite.__version__ = '9'"])
def test_code_of_another_compiler_is_not_loaded(ask: Callable[..., list[str]], change: str) -> None:
    assert ask() == ["3.0", "1"]
    assert ask(f"import numba, llvmlite; {change}; {ASK}") == ["3.0", "1"]


def test_a_damaged_file_is_compiled_anew(ask: Callable[..., list[str]], tmp_path: Path) -> None:
    ask()
    (file,) = kept(tmp_path)
    good = file.read_bytes()
    file.write_bytes(good[:-100] + bytes([good[-100] ^ 16]) + good[-99:])
    assert ask() == ["3.0", "1"]
    assert file.read_bytes() == good


def test_no_byte_of_a_file_can_change() -> None:
    code = Code("wrapper", "environment", ("<f8",), ("NRT_Free",), b"machine\ncode")
    good = machine_code._pack(code, "key")
    assert machine_code._unpack(good, "key") == code
    assert machine_code._unpack(good, "another key") is None  # the file of another key under this one's name
    flipped = [good[:k] + bytes([good[k] ^ 1]) + good[k + 1 :] for k in range(len(good))]
    for damaged in (b"", b"\n", good[:-1], good[: len(good) // 2], good + b"\0", *flipped):
        assert machine_code._unpack(damaged, "key") is None


def test_files_are_shipped_beside_the_package(
    ask: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask()
    shipped = tmp_path / "shipped"
    shutil.copytree(tmp_path / "cache" / "jointforest", shipped)
    shutil.rmtree(tmp_path / "cache")
    look = f"from pathlib import Path; from jointforest.runtime import machine_code; at = Path({str(shipped)!r})\n"
    look += "machine_code.SHIPPED = at\n"
    assert ask(look + ASK) == ["3.0", "0"]
    assert not kept(tmp_path)
    (file,) = shipped.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert ask(look + ASK) == ["3.0", "1"]
    assert [one.name for one in kept(tmp_path)] == [file.name]


@pytest.mark.skipif(os.name != "posix", reason="owners and permissions of POSIX")
def test_code_that_somebody_else_could_have_written_is_not_loaded(
    ask: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask() == ["3.0", "1"]
    (file,) = kept(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o644
    file.chmod(0o666)
    assert ask() == ["3.0", "1"]
    file.chmod(0o644)
    file.parent.chmod(0o777)
    assert [ask(), ask()] == [["3.0", "1"]] * 2
    file.parent.chmod(0o755)
    assert ask() == ["3.0", "0"]
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert machine_code._is_trusted(file) == (file.stat().st_uid == 0)  # root's is as good as one's own
    assert not machine_code._is_trusted(tmp_path / "nothing")


def test_without_a_folder_to_write_to_code_is_compiled_in_memory(ask: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for nowhere in (str(tmp_path / "file"), "/proc/nowhere"):
        assert ask(NUMBA_CACHE_DIR=nowhere) == ["3.0", "1"]
        assert ask(HOME=nowhere, XDG_CACHE_HOME="", NUMBA_CACHE_DIR="") == ["3.0", "1"]


def test_the_folder_is_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def folder(platform: str) -> Path | None:
        monkeypatch.setattr(sys, "platform", platform)
        machine_code.user_folder.cache_clear()
        return machine_code.user_folder()

    monkeypatch.setattr(machine_code.config, "CACHE_DIR", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert folder("linux") == tmp_path / ".cache" / "jointforest" / "machine_code"
    assert folder("darwin") == tmp_path / "Library" / "Caches" / "jointforest" / "machine_code"
    assert folder("win32") == tmp_path / "AppData" / "Local" / "jointforest" / "machine_code"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert folder("linux") == tmp_path / "elsewhere" / "jointforest" / "machine_code"
    monkeypatch.setattr(machine_code.config, "CACHE_DIR", str(tmp_path / "numba"))
    assert folder("linux") == tmp_path / "numba" / "jointforest"
    monkeypatch.undo()
    machine_code.user_folder.cache_clear()


def test_old_files_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine_code, "user_folder", lambda: tmp_path)
    code = Code("wrapper", "environment", ("<f8",), (), b"machine code")
    for number in range(20):
        key = f"{number:064x}"[::-1]
        machine_code.keep(stepped.py_func, "float64", key, code)
        assert machine_code.find(stepped.py_func, "float64", key) == (code, "kept")
    machine_code.keep(stepped.py_func, "int64", "f" * 64, code)
    assert len(list(tmp_path.iterdir())) == machine_code._KEPT_VERSIONS + 1


# ---- Keys.


STEP = 1.0
TABLE = np.array([1.0, 2.0])


@kernel
def halved(x):
    return x / 2


@entry
def stepped(x):
    return halved(x) + STEP + TABLE[0]


def key(function: Any = stepped, signature: str = "float64") -> str:
    return key_of(function.py_func, signature, "compiler")


def test_a_key_depends_on_everything_that_is_compiled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    first = key()
    assert key() == first
    assert key(signature="int64") != first
    assert key_of(stepped.py_func, "float64", "another compiler") != first
    for name, value in (("STEP", 2.0), ("STEP", 1), ("TABLE", np.array([1.0, 3.0])), ("TABLE", np.array([1, 2]))):
        monkeypatch.setitem(globals(), name, value)
        assert key() != first
        monkeypatch.undo()

    @kernel
    def other(x):
        return x / 3

    monkeypatch.setitem(globals(), "halved", other)
    assert key() != first
    monkeypatch.undo()
    monkeypatch.setattr(machine_code, "baseline", lambda: "generic")
    assert key() != first


def test_a_key_depends_on_a_closure() -> None:
    def add(n: int) -> Any:
        @entry
        def run(x):
            return x + n

        return run

    assert key(add(1)) == key(add(1)) != key(add(2))


def test_a_key_depends_on_the_fields_of_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pair(NamedTuple):
        a: float
        b: float

    def turned() -> type:
        class Pair(NamedTuple):
            b: float
            a: float

        return Pair

    monkeypatch.setitem(globals(), "STEP", Pair)
    first = key()
    monkeypatch.setitem(globals(), "STEP", turned())
    assert key() != first


def test_the_processor_is_one_that_this_machine_is_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    def baseline(machine: str, **has: bool) -> str:
        monkeypatch.setattr("platform.machine", lambda: machine)
        monkeypatch.setattr(machine_code.llvm, "get_host_cpu_features", lambda: has)
        machine_code.baseline.cache_clear()
        return machine_code.baseline()

    all_of_v2 = dict.fromkeys(machine_code._NEEDS["x86-64-v2"], True)
    assert baseline("x86_64", **all_of_v2, avx2=True) == baseline("AMD64", **all_of_v2) == "x86-64-v2"
    assert baseline("x86_64", **{**all_of_v2, "popcnt": False}) == "x86-64"
    assert baseline("arm64") == baseline("aarch64") == "generic"
    monkeypatch.undo()
    machine_code.baseline.cache_clear()
