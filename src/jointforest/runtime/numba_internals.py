"""Everything that overrides private parts of numba, so that kernels compile faster.

Numba optimises and emits each inner function on its own, with a wrapper for Python, and does it again inside every
caller. Here an inner kernel stops at unoptimised code, which its callers link and optimise once. Only entries end as
machine code and are kept on disk. Records (`runtime.records`) are passed by reference.

`compile` uses this module for the releases of numba that it names, and plain numba for all others. What each part saves
is in docs/experiments/kernel-compilation.md.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import _dynfunc, njit  # type: ignore[attr-defined]  # absent from numba's annotations
from numba.core import cgutils, types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from .records import follow

# -- Inner kernels: they are linked into their callers and never become machine code of their own.

_NOT_CALLABLE = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
"""What Python reaches if it calls an inner kernel: it raises a TypeError, which says that this is not callable."""


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

    _name = "jointforest_inner_lowering"  # type: ignore[assignment]  # numba annotates it as None

    @property
    def lowering_class(self) -> type[Lower]:
        return Lower

    def run_pass(self, state: Any) -> bool:
        if not state.flags.nrt and state.targetctx.data_model_manager[state.return_type].contains_nrt_meminfo():
            raise TypeError(f"{state.func_id.func_qualname} returns an array that nobody counts: it is an array_kernel")
        state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
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
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes = [(_InnerLowering if step is NativeLowering else step, what) for step, what in steps.passes]
        return [steps]


_BOTH = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER = {**_BOTH, "no_cpython_wrapper": True, "pipeline_class": _InnerCompiler}


def _one_signature(compiled: Any) -> Any:
    """Return the inner kernel, compiled once for integers of all widths and for constants.

    Numba would compile it for each of these types.
    """
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template([_plain(x) for x in args], kws)
    return compiled


def _plain(argument: types.Type) -> types.Type:
    argument = types.unliteral(argument)
    return types.int64 if argument in _NARROW else argument


_NARROW = {types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32}


def kernel(function: Callable) -> Any:
    """Return a kernel that only kernels call and that makes no arrays.

    Without new arrays no references need counting. Counting those of some twenty arrays takes 0.4 us a call.
    """
    return _one_signature(njit(_nrt=False, **_INNER)(function))  # type: ignore[call-overload]  # not in annotations


def array_kernel(function: Callable) -> Any:
    """Return a kernel that only kernels call and that makes arrays."""
    return _one_signature(njit(_nrt=True, **_INNER)(function))  # type: ignore[call-overload]  # not in annotations


# -- Entries: what Python calls.


class _EntryLibrary(JITCodeLibrary):
    """Code that is optimised once.

    Numba does it twice, to remove counts of references, of which entries have hardly any.
    """

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _EntryCompiler(Compiler):
    def define_pipelines(self) -> list[Any]:
        self.state.library = _EntryLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


class _EntryCache(FunctionCache):
    """Kept code, which becomes stale when a kernel that was compiled into it changes, in whatever file that is."""

    _files: tuple | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if self._files is None:
            files = sorted(_files_of(self._py_func, set()))
            self._files = tuple((name, (at := os.stat(name)).st_mtime_ns, at.st_size) for name in files)
            self._cache_file._source_stamp = self._files
        try:
            return super().load_overload(sig, target_context)
        except (AttributeError, ImportError):  # pickled with record classes that are gone
            self.flush()
            return None


def _files_of(function: Any, seen: set) -> set[str]:
    """Return the files of a function and of all kernels that it calls."""
    seen.add(function)
    files = {function.__code__.co_filename}
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None and called not in seen:
            files |= _files_of(called, seen)
    return files


def entry(function: Callable) -> Any:
    """Return a kernel that Python calls, compiled at its first call and kept on disk."""
    compiled = njit(_nrt=True, pipeline_class=_EntryCompiler, **_BOTH)(function)  # type: ignore[call-overload]  # nor here
    compiled._cache = _EntryCache(function)
    return compiled


# -- Records: a pointer to a block of arrays.


class Record(types.Type):
    """The type of a NamedTuple of arrays and numbers that is passed by reference; ``fields`` are the types in it."""

    def __init__(self, cls: type, fields: tuple[types.Type, ...]) -> None:
        self.cls, self.fields = cls, fields
        super().__init__(f"Record({cls.__module__}.{cls.__qualname__}{fields})")

    @property
    def key(self) -> tuple:
        return self.cls, self.fields


@register_model(Record)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, record: Record) -> None:
        block = ir.LiteralStructType([manager.lookup(field).get_data_type() for field in record.fields])
        super().__init__(manager, record, block.as_pointer())


@infer_getattr
class _RecordAttribute(AttributeTemplate):
    key = Record

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]  # numba means 'to be written'
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
