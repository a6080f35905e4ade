"""One safe file format: a `.joint` file is a safetensors file with the schema as JSON in its metadata."""

# The file has the schema, the components' weights, and the arrays of each component that cannot be derived
# (`Distribution.to_arrays`). A checksum finds accidental changes. It does not protect against intent, so every field is
# checked, too.

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as to_safetensors

from .. import __version__
from ..data.schema import Schema
from ..data.schema_check import schema_from_dict
from ..runtime.parameters import need
from .base import Distribution
from .box_forest.box_forest import BoxForest
from .box_forest.files import LEAF_FIELDS, NAMES, PIECE_FIELDS, TREE_FIELDS, forest_from_arrays
from .hidden_tree.files import check_tree_weights, hidden_from_arrays, hidden_names
from .hidden_tree.hidden_tree import ChowLiuForest, HiddenTree
from .history.files import history_from_arrays, history_to_arrays
from .history.history_model import HistoryModel
from .mixture import Mixture
from .ruled.files import KIND as RULED
from .ruled.files import RULED_NAMES, ruled_from_arrays
from .ruled.ruled import RuledDistribution

FORMAT = 5
"""Version of the format, which files must have. It changes with the names and meanings of fields."""

_KEY = "jointforest"  # the only key: safetensors writes several in random order, and equal models give equal bytes
_MAX_HEADER = 100_000_000  # safetensors' own limit
_NO_CHECKSUM = "0" * 64
_DTYPES = {"I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "|u1", "U64": "<u8", "F32": "<f4", "F64": "<f8"}
_WEIGHT = "log_weight"
PREDICTOR = "predictor"
"""What a predictor adds to the file of its joint: a field of the metadata, and the start of names of arrays."""


class ModelFileError(ValueError):
    """A file is not a model file, is damaged, or has another format than this library."""


def save_model(model: Distribution | HistoryModel, path: str | os.PathLike[str]) -> None:
    """Save a model to a `.joint` file, whose bytes depend on the model alone; an existing file is replaced last."""
    write_atomically(pack(*contents(model)), path)


def load_model(path: str | os.PathLike[str]) -> Distribution | HistoryModel:
    """The model of a `.joint` file; executes nothing, and raises ModelFileError for a damaged or other file."""
    try:
        return unpack(read_start(path))
    except ValueError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error


def contents(model: Distribution | HistoryModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file holds of a model: a JSON object and named arrays; a ValueError if the model is broken."""
    if isinstance(model, HistoryModel):
        histories, arrays = history_to_arrays(model)
        schema = model.columns.schema.to_dict()
        return {"format": FORMAT, "library": __version__, "histories": histories, "schema": schema}, arrays
    check_tree_weights(model.log_weight, len(model.components), "the model")
    schema = model.schema.to_dict()
    components, arrays = [], {_WEIGHT: model.log_weight}
    for k, component in enumerate(model.components):
        need(component.schema.to_dict() == schema, f"component {k} has another schema than the model")
        about, arrays_of_component = component.to_arrays()
        components.append(about)
        arrays |= {f"{k}.{name}": array for name, array in arrays_of_component.items()}
    return {"format": FORMAT, "library": __version__, "components": components, "schema": schema}, arrays


def pack(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Bytes of a file with these arrays and this JSON object, to which the checksum is added."""
    text = json.dumps(about | {"checksum": _NO_CHECKSUM}, allow_nan=False, separators=(",", ":"))
    little = {name: array.astype(array.dtype.newbyteorder("<"), copy=False) for name, array in arrays.items()}
    data = to_safetensors(little, {_KEY: text})
    if _header_size(data) > _MAX_HEADER:
        raise ValueError("the schema takes more than 100 MB: too many columns and levels for a model file")
    at = data.rindex(_NO_CHECKSUM.encode(), 0, 8 + _header_size(data))
    return data[:at] + _checksum(data, at).encode() + data[at + 64 :]


def unpack(data: bytes) -> Distribution | HistoryModel:
    """The model from the bytes of a file; what a predictor adds is left aside."""
    about, arrays = opened(data)
    if "histories" in about:
        return history_from_arrays(about["schema"], about["histories"], arrays)
    about.pop(PREDICTOR, None)
    return model_of(about, {name: array for name, array in arrays.items() if not name.startswith(f"{PREDICTOR}.")})


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON object and the arrays of a file, whose checksum is right; their fields are unchecked."""
    about = read_about(data)
    checksum = about["checksum"]
    if not isinstance(checksum, str) or len(checksum) != 64 or not checksum.isascii():
        raise ValueError("the checksum is not 64 hexadecimal digits")
    at = data.find(checksum.encode(), 0, 8 + _header_size(data))
    if at < 0 or _checksum(data, at) != checksum:
        raise ValueError("the checksum does not match: the file is damaged or incomplete")
    return about, {name: _array(name, tensor) for name, tensor in _tensors(data).items()}


def model_of(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Distribution:
    """The distribution from what `contents` gave, wherever it comes from: every field is checked."""
    schema = schema_from_dict(about["schema"])
    wanted = _names(about["components"], len(arrays))
    expected = {_WEIGHT} | {f"{k}.{name}" for k, names in enumerate(wanted) for name in names}
    if set(arrays) != expected:
        raise ValueError(f"arrays missing or unknown: {', '.join(sorted(set(arrays) ^ expected))[:200]}")
    check_tree_weights(arrays[_WEIGHT], len(wanted), "the model")
    components: list[Distribution] = []
    for k, (names, of) in enumerate(zip(wanted, about["components"], strict=True)):
        components.append(_component(schema, of, {name: arrays[f"{k}.{name}"] for name in names}))
    return components[0] if len(components) == 1 else Mixture(tuple(components), arrays[_WEIGHT])


def _component(schema: Schema, of: dict[str, Any], arrays: dict[str, np.ndarray]) -> Distribution:
    """One component from its metadata in a file, and its arrays."""
    if of["kind"] == "forest":
        return BoxForest(forest_from_arrays(schema, of, arrays))
    if of["kind"] == RULED:
        return RuledDistribution(*ruled_from_arrays(schema, of, arrays, _component))
    hidden = hidden_from_arrays(schema, of, arrays)
    return HiddenTree(hidden) if hidden.grown is None else ChowLiuForest(hidden)


def read_about(data: bytes) -> dict[str, Any]:
    """The JSON object in a file's header: format, library, checksum, schema, and components or histories; unchecked."""
    header = json_of(data[8 : 8 + _header_size(data)], "the header")
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or list(metadata) != [_KEY] or not isinstance(metadata[_KEY], str):
        raise ValueError("a safetensors file, but not one of jointforest")
    about = json_of(metadata[_KEY], "the metadata")
    if "histories" in about:
        return checked_about(about, {"format", "library", "checksum", "histories", "schema"})
    fields = {"format", "library", "checksum", "components", "schema"}
    return checked_about(about, fields | {PREDICTOR} if PREDICTOR in about else fields)


def checked_about(about: dict[str, Any], expected: set[str]) -> dict[str, Any]:
    """A JSON object with these fields, of the format that this version reads."""
    version: Any = about.get("format")
    need(type(version) is int and version >= 1, "the metadata does not name a format version")
    if version != FORMAT:
        age, hint = (
            ("newer", "upgrade jointforest to read it") if version > FORMAT else ("older", "learn the model again")
        )
        raise ValueError(
            f"format {version}, written by jointforest {str(about.get('library'))[:40]}, is {age} than format {FORMAT} "
            f"of this version; {hint}"
        )
    if set(about) != expected:
        raise ValueError(f"metadata missing or unknown: {', '.join(sorted(set(about) ^ expected))[:200]}")
    return about


def _names(components: Any, most: int) -> list[frozenset[str]]:
    """Names of the arrays of each component; there are at most so many arrays."""
    if not isinstance(components, list) or not components or not all(isinstance(one, dict) for one in components):
        raise ValueError("components: expected a list of objects, one at least")
    return [_array_names_of(about, most, may_rule=True) for about in components]


def _array_names_of(about: Any, most: int, may_rule: bool) -> frozenset[str]:
    """Names of the arrays of one component; of a ruled one those of its coordinates' distribution are among them."""
    kinds = ("forest", "hidden trees", RULED) if may_rule else ("forest", "hidden trees")
    kind = about.get("kind") if isinstance(about, dict) else about
    if not isinstance(about, dict) or kind not in kinds:
        raise ValueError(f"components: unknown kind {str(kind)[:40]!r}; known: {', '.join(map(repr, kinds))}")
    if kind == RULED:
        return RULED_NAMES | _array_names_of(about.get("inner"), most, may_rule=False)
    return NAMES if kind == "forest" else hidden_names(about, most)


def _tensors(data: bytes) -> dict[str, Any]:
    try:
        return dict(deserialize(data))
    except SafetensorError as error:
        raise ValueError(f"damaged or incomplete ({error})") from None


def _array(name: str, tensor: dict[str, Any]) -> np.ndarray:
    need(tensor["dtype"] in _DTYPES, f"{name}: no array of the model has the type {tensor['dtype']}")
    stored = np.frombuffer(tensor["data"], dtype=_DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
    # a writable copy in native order, as learners make them: kernels are compiled anew for read-only arrays
    return stored.astype(stored.dtype.newbyteorder("="), order="C", copy=True)


def json_of(text: bytes | str, what: str) -> dict[str, Any]:
    """A JSON object; a ValueError names ``what`` if it is none."""
    try:
        value = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a model file: {what} is not JSON ({error})") from None
    need(isinstance(value, dict), f"not a model file: {what} is not a JSON object")
    return value


def _header_size(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _checksum(data: bytes, at: int) -> str:
    """SHA-256 of the whole file, with the 64 digits of the checksum itself, which start at ``at``, taken as zeros."""
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    digest.update(_NO_CHECKSUM.encode())
    digest.update(view[at + 64 :])
    return digest.hexdigest()


def read_start(path: str | os.PathLike[str]) -> bytes:
    """Bytes of a file that at least starts like a model file."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        need(stat.S_ISREG(status.st_mode), "not a regular file")
        start = file.read(9)
        need(len(start) >= 9 and start[8:] == b"{" and _header_size(start) <= _MAX_HEADER, "not a model file")
        need(8 + _header_size(start) <= status.st_size, "damaged or incomplete: the file ends within its header")
        return start + file.read()


def write_atomically(data: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file so that there is always either the old one or the new one."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a directory; expected the path of a file, such as 'model.joint'")
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)} is not a regular file")
    temporary = target.with_name(f".jointforest-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        error.filename = os.fspath(path)  # what the user named, not the file beside it
        raise
    finally:
        temporary.unlink(missing_ok=True)


# ---- Models as Arrow tables, and back: what a `.joint` file holds, for tools that read tables.

_IN_ARROW = b"jointforest"
_COMPONENTS = "components"
_TABLE_OF = {"N": "nodes", "T": "trees", "W": "left_levels", "L": "leaves", "P": "pieces"}
_TABLES = {f"trees.{name}": _TABLE_OF[of.axes[0]] for name, of in TREE_FIELDS.items()}
_TABLES |= {f"leaves.{name}": _TABLE_OF[of.axes[0]] for name, of in LEAF_FIELDS.items()}
_TABLES |= {f"leaves.pieces.{name}": _TABLE_OF[of.axes[0]] for name, of in PIECE_FIELDS.items()}
"""Table of each array of a forest; any other array is a table of its own name."""


def model_to_arrow(model: Distribution) -> dict[str, Any]:
    """The arrays of a model as pyarrow tables by name; ``parts`` has one line for each part, and the schema as JSON."""
    import pyarrow as pa

    about, arrays = contents(model)
    text = json.dumps(about, allow_nan=False, separators=(",", ":"))
    kinds = [part["kind"] for part in about["components"]]
    columns: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        part, _, field = name.partition(".")
        if field:
            columns.setdefault(f"{part}.{_TABLES.get(field, field)}", {})[field] = array
    tables = {
        _COMPONENTS: pa.table({"kind": kinds, "log_weight": arrays["log_weight"]}).replace_schema_metadata(
            {_IN_ARROW: text}
        )
    }
    for name, fields in columns.items():
        made = [_arrow_column(field, array) for field, array in fields.items()]
        tables[name] = pa.Table.from_arrays(
            [column for _, column in made], schema=pa.schema([field for field, _ in made])
        )
    return tables


def model_from_arrow(tables: Mapping[str, Any]) -> Distribution:
    """The model of tables from `model_to_arrow`; raises ValueError if a field is not valid."""
    import pyarrow as pa

    if not isinstance(tables, Mapping) or _COMPONENTS not in tables:
        raise ValueError(f"expected a dict of tables, {_COMPONENTS!r} among them, as to_arrow gives it")
    for name, table in tables.items():
        if not isinstance(table, pa.Table):
            raise ValueError(
                f"{name}: expected a pyarrow.Table, got {type(table).__module__.partition('.')[0]}'s "
                f"{type(table).__name__}; frames lose the metadata that a joint needs: keep to_arrow's tables, or "
                "write and read them with pyarrow.parquet or pyarrow.feather"
            )
    text = (tables[_COMPONENTS].schema.metadata or {}).get(_IN_ARROW)
    if text is None:
        raise ValueError(f"the table {_COMPONENTS!r} lost its metadata 'jointforest', which hold the schema")
    about = checked_about(json_of(text, "the metadata"), {"format", "library", "components", "schema"})
    arrays = {}
    for name, table in tables.items():
        part = name.partition(".")[0]
        for field in table.schema:
            if name != _COMPONENTS:
                arrays[f"{part}.{field.name}"] = _array_of_column(f"{name}: {field.name}", field, table[field.name])
    need("log_weight" in tables[_COMPONENTS].schema.names, f"the table {_COMPONENTS!r} has no column 'log_weight'")
    arrays["log_weight"] = np.array(tables[_COMPONENTS]["log_weight"].to_numpy(), np.float64)
    return model_of(about, arrays)


def _arrow_column(name: str, array: np.ndarray) -> tuple[Any, Any]:
    """Field and column of an array (n,) or (n, w); its type is in the field's metadata, as lists of none have none."""
    import pyarrow as pa

    if array.ndim == 1:
        column = pa.array(array)
    elif array.shape[1]:
        column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).ravel()), array.shape[1])
    else:
        column = pa.nulls(len(array))
    return pa.field(name, column.type, metadata={b"dtype": array.dtype.str.encode()}), column


def _array_of_column(name: str, field: Any, column: Any) -> np.ndarray:
    """The array of a column, of the type that its field names."""
    import pyarrow as pa

    dtype = (field.metadata or {}).get(b"dtype", b"").decode(errors="replace")
    need(dtype in ("<i4", "<i8", "|u1", "<u8", "<f4", "<f8"), f"{name}: no array of a model has the type {dtype!r}")
    if pa.types.is_null(field.type):
        return np.empty((len(column), 0), dtype)
    need(not column.null_count, f"{name}: has missing values")
    width = None
    if pa.types.is_fixed_size_list(field.type):
        width = field.type.list_size
        column = column.combine_chunks()
        column = (
            column.flatten() if isinstance(column, pa.Array) else pa.chunked_array([c.flatten() for c in column.chunks])
        )
        need(not column.null_count, f"{name}: has missing values")
    array = np.array(column.to_numpy(), copy=True)
    need(array.dtype == np.dtype(dtype), f"{name}: expected the type {dtype!r}, got {array.dtype.str!r}")
    return array if width is None else array.reshape(-1, width)
