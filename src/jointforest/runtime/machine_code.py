"""Machine code of entries in files: under which key, in which folders, and how it is loaded without compiling."""

# An entry is looked up in two folders: the one that a wheel brings inside this package, then the user's. A file is
# found under the hash of everything that its code depends on (`key_of`). If anything differs, it is not found, and the
# entry is compiled. Neither times nor paths nor the processor's name are part of the key. A file begins with the hash
# of its content, so a damaged one is not loaded. Code in the package's folder is trusted as the package's source is.
# The user's folder and its files count only if they belong to this user or to root, and no other user can write to
# them. No file is unpickled.

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba import _dynfunc
from numba.core import config
from numba.core.environment import Environment
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

CODE_FORMAT = 1
"""Of the files; a change of the way to compile shows in the hash of `numba_internals`."""

SHIPPED = Path(__file__).parent / "machine_code"
"""The folder that a wheel brings."""

_KEPT_VERSIONS = 8
"""Files of one entry and signature that stay in the user's folder: those of some environments and checkouts."""


class Code(NamedTuple):
    """The machine code of an entry for one signature.

    wrapper : str. The function in ``machine`` that takes Python's arguments.
    environment : str. The variable in ``machine`` that has to point to an environment of numba before ``wrapper`` is
        called.
    dtypes : tuple of str. Constants of that environment: the dtypes of the arrays that the entry returns.
    symbols : tuple of str. The functions and variables outside that ``machine`` refers to.
    machine : bytes. An object file.
    """

    wrapper: str
    environment: str
    dtypes: tuple[str, ...]
    symbols: tuple[str, ...]
    machine: bytes


# ---- The processor that entries are compiled for, whatever this one is: code can ship, and gives the same answers.

_NEEDS = {"x86-64-v2": ("ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf"), "x86-64": ()}


@cache
def baseline() -> str:
    """LLVM's name of it: x86-64-v2, as all x86 processors since 2009 are; elsewhere the least of the family."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "generic"
    has = llvm.get_host_cpu_features()
    return next(name for name, features in _NEEDS.items() if all(has.get(feature) for feature in features))


# ---- Keys.


def key_of(function: Callable, signature: str, compiler: str) -> str:
    """All that the code of an entry depends on, as a hash; ``compiler`` is the hash of the module that compiles."""
    options = (config.OPT, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE)
    parts = (
        CODE_FORMAT, function.__module__, function.__qualname__, signature, _source_of(function), compiler,
        numba.__version__, llvmlite.__version__, EXTENSION_SUFFIXES[0], platform.machine(), baseline(),
        config.USING_SVML, *map(str, options),
    )  # fmt: skip
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _source_of(function: Any) -> str:
    """A hash of a function and of all kernels that it calls, as they are loaded."""
    # Not of their files: someone may edit these while a process runs, which would keep old code as that of the new
    # text.
    functions: dict[int, str] = {}
    _describe_function(function, functions)
    return hashlib.sha256("\n".join(sorted(functions.values())).encode()).hexdigest()


def _describe_function(function: Any, functions: dict[int, str]) -> None:
    """Add to ``functions``, by id, what this function and the kernels that it calls consist of."""
    if id(function) in functions:
        return
    functions[id(function)] = ""  # it may call itself
    code = function.__code__
    words = [f"{function.__module__}.{function.__qualname__}", _describe_code(code), repr(function.__defaults__)]
    outside = [(name, function.__globals__.get(name)) for name in _names_in_code(code)]
    if function.__closure__:
        outside += zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__), strict=True)
    for name, value in outside:
        if isinstance(value, ModuleType):
            words.append(f"{name} is {value.__name__}")
            members: list[Any] = [getattr(value, attribute, None) for attribute in _names_in_code(code)]
            for kernel in (member for member in members if _is_kernel(member)):
                _describe_function(kernel.py_func, functions)
        elif _is_kernel(value):
            words.append(f"{name} is {value.py_func.__module__}.{value.py_func.__qualname__}")
            _describe_function(value.py_func, functions)
        elif value is not None:
            words.append(f"{name} is {_describe(value)}")
    functions[id(function)] = "\n".join(words)


def _is_kernel(value: Any) -> bool:
    return isinstance(getattr(value, "py_func", None), FunctionType)


def _names_in_code(code: CodeType) -> list[str]:
    """The names of globals and attributes in code and the functions inside it."""
    names = dict.fromkeys(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= dict.fromkeys(_names_in_code(inner))
    return list(names)


def _describe_code(code: CodeType) -> str:
    """What code does, without where it stands."""
    consts = [_describe_code(one) if isinstance(one, CodeType) else _describe(one) for one in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount)
    return repr((code.co_code.hex(), code.co_exceptiontable.hex(), names, consts))


def _describe(value: Any) -> str:
    """The value of a constant, or the name of anything else."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"{type(value).__qualname__}({', '.join(map(_describe, value))})"
    if isinstance(value, frozenset):
        return f"frozenset({', '.join(sorted(map(_describe, value)))})"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}{getattr(value, '_fields', '')}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return f"{type(value).__qualname__} {value!r}"
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__} {_describe_code(value.__code__)}"
    return f"{type(value).__qualname__} {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


# ---- Files.


def find(function: Callable, signature: str, key: str) -> tuple[Code | None, str]:
    """The code that is kept under a key, if it is, and where from: shipped or kept."""
    name = _file_name(function, signature, key)
    if (code := _unpack(_content(SHIPPED / name, is_shipped=True), key)) is not None:
        return code, "shipped"
    folder = user_folder()
    if folder is None or not _is_trusted(folder):
        return None, ""
    return _unpack(_content(folder / name, is_shipped=False), key), "kept"


def keep(function: Callable, signature: str, key: str, code: Code) -> None:
    """Write code into the user's folder; do nothing if that is not possible."""
    folder = writable_folder()
    if folder is None:
        return
    name = _file_name(function, signature, key)
    temporary = folder / f"{uuid.uuid4().hex}.tmp"  # other processes see the whole file, or none
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o644), "wb") as file:
            file.write(_pack(code, key))
        os.replace(temporary, folder / name)
        _prune(folder, name)
    except OSError:
        with suppress(OSError):
            temporary.unlink()


def writable_folder() -> Path | None:
    """The user's folder, made if need be; None if nothing can be written there, or nothing there is trusted."""
    folder = user_folder()
    if folder is None:
        return None
    with suppress(OSError):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    return folder if _is_trusted(folder) and os.access(folder, os.W_OK) else None


@cache
def user_folder() -> Path | None:
    """The folder of the user's own machine code: below NUMBA_CACHE_DIR, or where the system keeps caches."""
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR) / "jointforest"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        caches = home / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return caches / "jointforest" / "machine_code"


def _file_name(function: Callable, signature: str, key: str) -> str:
    """What a file is called: first the kernel, for readers; then its signature; then the key."""
    module = function.__module__.rpartition(".")[2].removesuffix("_kernels")
    name = "".join(letter for letter in function.__qualname__ if letter.isalnum() or letter in "_.")
    return f"{module}.{name}-{hashlib.sha256(signature.encode()).hexdigest()[:8]}-{key[:32]}.code"


def _is_trusted(path: Path | int) -> bool:
    """Whether a folder, or an open file, is this user's or root's, and no other user can write to it."""
    if os.name != "posix":
        return True  # the folders of users are their own on Windows
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_uid in (0, os.getuid()) and not status.st_mode & 0o022


def _content(path: Path, is_shipped: bool) -> bytes:
    """The content of a file; nothing, if it cannot be read or anybody else could have written it."""
    try:
        with path.open("rb") as file:
            return file.read() if is_shipped or _is_trusted(file.fileno()) else b""
    except OSError:
        return b""


def _pack(code: Code, key: str) -> bytes:
    """The content of a file: a line with its hash, a line of JSON, and the object file."""
    header = json.dumps({name: value for name, value in code._asdict().items() if name != "machine"}, sort_keys=True)
    body = header.encode() + b"\n" + code.machine
    return _hash_line(key, body) + body


def _unpack(data: bytes, key: str) -> Code | None:
    """The code in the content of a file; None if a byte of it is not what was written under this key."""
    line, newline, body = data.partition(b"\n")
    if line + newline != _hash_line(key, body):
        return None
    header, _, machine = body.partition(b"\n")
    read = json.loads(header)
    return Code(read["wrapper"], read["environment"], tuple(read["dtypes"]), tuple(read["symbols"]), machine)


def _hash_line(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).hexdigest().encode() + b"\n"


def _prune(folder: Path, name: str) -> None:
    """Remove old files of the same entry and signature."""
    files = sorted(folder.glob(f"{name.rpartition('-')[0]}-*.code"), key=lambda file: file.stat().st_mtime)
    for file in files[:-_KEPT_VERSIONS]:
        file.unlink(missing_ok=True)


# ---- Loading.

_loaded: dict[str, tuple[Any, Any]] = {}  # by key: an object file is linked into a process once; and its engine


def load_code(function: Callable, key: str, code: Code) -> Any:
    """The function of Python that calls this code; None if something that the code refers to is not there."""
    if key not in _loaded:
        if not _has_symbols(code.symbols):
            return None
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code.machine))
        engine.finalize_object()
        environment = Environment(function.__globals__)
        environment.consts.extend(np.dtype(dtype) for dtype in code.dtypes)
        ctypes.c_void_p.from_address(engine.get_global_value_address(code.environment)).value = id(environment)
        made = _dynfunc.make_function(
            sys.modules.get(function.__module__), function.__name__, function.__doc__ or "",
            engine.get_function_address(code.wrapper), environment, (),
        )  # fmt: skip
        _loaded[key] = made, engine
    return _loaded[key][0]


def _has_symbols(names: tuple[str, ...]) -> bool:
    """Whether all symbols have an address; LLVM ends the process if one that it links has none."""
    rtsys.initialize(cpu_target.target_context)  # numba tells LLVM its own ones then
    if all(llvm.address_of_symbol(name) for name in names):
        return True
    cpu_target.target_context.refresh()  # some of them only after this, which takes long
    return all(llvm.address_of_symbol(name) for name in names)


def _engine() -> Any:
    """An LLVM engine of its own for one object file."""
    # Numba numbers functions as a process compiles them, so files from two processes may have the same symbol for two
    # functions that one `def` makes. In a common engine, both files would call the first of them.
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
