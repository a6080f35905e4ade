"""Everything that overrides private parts of numba, so that kernels compile faster."""

# Numba optimises and emits each inner function on its own, with a wrapper for Python, and does it again inside every
# caller. Here an inner kernel stops at unoptimised code, which its callers link and optimise once. Only entries end as
# machine code and are kept on disk. Records (`runtime.records`) are passed by reference. `compile` uses this module for
# the releases of numba that it names, and plain numba for all others. What each part saves is in
# docs/experiments/kernel-compilation.md.

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import _dynfunc, njit
from numba.core import cgutils, types
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.ir import Expr
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import Purpose, typeof
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from . import machine_code
from .records import follow
from .signatures import text_of

_COMPILER = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
"""Part of what kept code depends on."""

# -- The processor.


class _Codegen(JITCPUCodegen):
    """Generates code for `machine_code.baseline`, whatever this processor is."""

    def _get_host_cpu_name(self) -> str:
        return machine_code.baseline()

    def _get_host_cpu_features(self) -> str:
        return ""


@cache
def _codegen() -> _Codegen:
    return _Codegen("jointforest")


# -- Lowering: the same names in every process.


class _Lower(Lower):
    """Numba's lowering, which gives the function of an array expression the same name in every process."""

    def lower_expr(self, resty: types.Type, expr: Expr) -> Any:
        if expr.op == "arrayexpr":
            expr = _ArrayExpression(expr.op, expr.loc, **expr._kws)
        return super().lower_expr(resty, expr)


class _ArrayExpression(Expr):
    """An array expression; numba names its function by this hash, which else is an address."""

    def __hash__(self) -> int:
        return 0


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(NativeLowering):
    _name = "jointforest_entry_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


def _lower_by(lowering: type, steps: Any) -> list[Any]:
    """Replace numba's lowering in the steps of a compiler; a list of these steps alone."""
    steps.passes = [(lowering if step is NativeLowering else step, what) for step, what in steps.passes]
    return [steps]


# -- Inner kernels: they are linked into their callers and never become machine code of their own.

_NOT_CALLABLE = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
"""What Python reaches if it calls an inner kernel: it raises a TypeError, because this is not callable."""


class _InnerLibrary(JITCodeLibrary):
    """Unoptimised code that callers link."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(BaseNativeLowering):
    """Numba's lowering, which writes into an `_InnerLibrary`."""

    _name = "jointforest_inner_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower

    def run_pass(self, state: Any) -> bool:
        state.library = _InnerLibrary(_codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        done = state["cr"]
        name = done.fndesc.qualname.split(".")[-1]
        handle = _dynfunc.make_function(
            done.fndesc.lookup_module(), name, "a kernel that only kernels call", _NOT_CALLABLE, done.env,
            (state.library,),
        )  # fmt: skip
        state.targetctx.insert_user_function(handle, done.fndesc, [state.library])
        state["cr"] = _LowerResult(done.fndesc, done.call_helper, cfunc=handle, env=done.env)
        return True


class _InnerCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        return _lower_by(_InnerLowering, DefaultPassBuilder.define_nopython_pipeline(self.state))


_BOTH = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER = {**_BOTH, "no_cpython_wrapper": True, "pipeline_class": _InnerCompiler}


def _one_signature(compiled: Any) -> Any:
    """Return the inner kernel, compiled once for integers of all widths and for constants."""
    # Numba would compile it for each of these types.
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template([_plain(x) for x in args], kws)
    return compiled


def _plain(argument: types.Type) -> types.Type:
    argument = types.unliteral(argument)
    return types.int64 if argument in _NARROW else argument


_NARROW = {types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32}


def kernel(function: Callable) -> Any:
    """Return a kernel that only kernels call."""
    return _one_signature(njit(**_INNER)(function))


# -- Entries: what Python calls.


class _EntryCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        self.state.library = JITCodeLibrary(_codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return _lower_by(_EntryLowering, DefaultPassBuilder.define_nopython_pipeline(self.state))


def entry(function: Callable) -> Any:
    """Return a kernel that Python calls."""
    return _Entry(function)


def prepare(compiled: _Entry, signature: tuple[types.Type, ...]) -> str:
    """Have the code of an entry ready for arguments of these types; return what was done: shipped, kept or compiled."""
    compiled.prepare(signature)
    return compiled.origins[signature]


def where_code_is() -> str:
    """Where compiled code is kept, in a sentence."""
    folder = machine_code.writable_folder()
    return "They cannot be kept: there is no folder to write to." if folder is None else f"They are kept in {folder}."


class _Entry(CPUDispatcher):
    """Numba's function, which looks for machine code in files before it compiles."""

    def __init__(self, function: Callable) -> None:
        options = {"nopython": True, "_nrt": True, **_BOTH}
        super().__init__(function, targetoptions=options, pipeline_class=_EntryCompiler)
        self._ready: dict[tuple, Any] = {}  # by signature
        self.origins: dict[tuple, str] = {}

    def _compile_for_args(self, *arguments: Any, **keywords: Any) -> Any:
        """What numba calls for arguments of types that are new; it calls what this returns."""
        try:
            signature = tuple(typeof(argument, Purpose.argument) for argument in arguments)
        except ValueError:  # numba's own words for what it cannot take
            return super()._compile_for_args(*arguments, **keywords)
        return self.prepare(signature)

    def prepare(self, signature: tuple[types.Type, ...]) -> Any:
        """The function for arguments of these types: of machine code that is kept, or else compiled, and kept then."""
        with global_compiler_lock:
            if signature not in self._ready:
                self._ready[signature], self.origins[signature] = self._found_or_made(signature)
            return self._ready[signature]

    def _found_or_made(self, signature: tuple[types.Type, ...]) -> tuple[Any, str]:
        text = text_of(signature)
        asked[self.py_func, text] = signature
        key = machine_code.key_of(self.py_func, text, _COMPILER)
        code, origin = machine_code.find(self.py_func, text, key)
        if code is not None and (function := machine_code.load_code(self.py_func, key, code)) is not None:
            self._insert([argument._code for argument in signature], function, False)
            return function, origin
        function = self.compile(signature)
        if (code := _code_of(self.overloads[signature])) is not None:
            machine_code.keep(self.py_func, text, key, code)
        return function, "compiled"


asked: dict[tuple[Callable, str], tuple[types.Type, ...]] = {}
"""Entries and signatures that this process asked for; tests compare them with the list in `signatures`."""


def _code_of(done: CompileResult) -> machine_code.Code | None:
    """The machine code of a compiled entry; None if it cannot be used by another process."""
    dtypes = done.environment.consts
    if done.reload_init or done.lifted or done.library.has_dynamic_globals or not all(map(_is_dtype, dtypes)):
        return None
    module = done.library._final_module
    symbols = [one.name for one in (*module.functions, *module.global_variables) if one.is_declaration]
    return machine_code.Code(
        done.fndesc.llvm_cpython_wrapper_name, done.environment.env_name, tuple(dtype.str for dtype in dtypes),
        tuple(sorted(name for name in symbols if not name.startswith("llvm."))), done.library._get_compiled_object(),
    )  # fmt: skip


def _is_dtype(constant: Any) -> bool:
    return isinstance(constant, np.dtype) and constant.fields is None


# -- Records: a pointer to a block of arrays.


class Record(types.Type):
    """The type of a NamedTuple of arrays and numbers that is passed by reference; ``fields`` are the types in it."""

    def __init__(self, cls: type, fields: tuple[types.Type, ...]) -> None:
        self.cls, self.fields = cls, fields
        super().__init__(f"Record({cls.__module__}.{cls.__qualname__}{fields})")

    @property
    def key(self) -> tuple:
        return self.cls, self.fields


def record_type(cls: type, fields: tuple[types.Type, ...]) -> types.Type:
    """The type of a record with fields of these types."""
    return Record(cls, fields)


@register_model(Record)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, record: Record) -> None:
        block = ir.LiteralStructType([manager.lookup(field).get_data_type() for field in record.fields])
        super().__init__(manager, record, block.as_pointer())


@infer_getattr
class _RecordAttribute(AttributeTemplate):
    key = Record

    def generic_resolve(self, value: Any, attr: str) -> Any:
        names = value.cls._fields
        return value.fields[names.index(attr)] if attr in names else None


@lower_getattr_generic(Record)
def _field(context: Any, builder: Any, record: Record, pointer: Any, name: str) -> Any:
    at = record.cls._fields.index(name)  # type: ignore[attr-defined]  # of NamedTuples
    place = cgutils.gep_inbounds(builder, pointer, 0, at)
    if not isinstance(record.fields[at], types.Array):
        return context.unpack_value(builder, record.fields[at], place)
    array = builder.load(place)
    array.set_metadata("invariant.load", builder.module.add_metadata([]))  # blocks never change, so loads leave loops
    for owner in (0, 1):  # the caller holds the arrays, so nothing is counted
        array = builder.insert_value(array, ir.Constant(array.type.elements[owner], None), owner)
    return array


@unbox(Record)
def _from_python(record: Record, obj: Any, c: Any) -> NativeValue:
    block = cgutils.alloca_once(c.builder, c.context.get_value_type(record).pointee)
    signature = ir.FunctionType(ir.IntType(32), [c.pyapi.pyobj, c.pyapi.voidptr])
    adapt = cgutils.get_or_insert_function(c.builder.module, signature, "numba_adapt_ndarray")
    for at, field in enumerate(record.fields):
        item = c.pyapi.tuple_getitem(obj, at)
        place = cgutils.gep_inbounds(c.builder, block, 0, at)
        if isinstance(field, types.Array):  # the type was derived from this tuple, so it needs no check
            c.builder.call(adapt, [item, c.builder.bitcast(place, c.pyapi.voidptr)])
        else:
            c.context.pack_value(c.builder, field, c.unbox(field, item).value, place)
    return NativeValue(block)


def _by_reference(cls: type) -> None:
    @typeof_impl.register(cls)
    def _typeof(value: Any, context: Any) -> Record:
        fields = tuple(typeof_impl(item, context) for item in value)
        for name, field in zip(cls._fields, fields, strict=True):  # type: ignore[attr-defined]  # of NamedTuples
            if not isinstance(field, types.Array | types.Number | types.Boolean | Record):
                raise TypeError(f"{cls.__name__}.{name}: a record holds arrays, numbers and records, not {field}")
        # No kernel writes to arrays that may be read-only, such as those of a mapped file. One compilation serves both.
        return Record(cls, tuple(f.copy(readonly=False) if isinstance(f, types.Array) else f for f in fields))


follow(_by_reference)
