"""Arrays in a file that holds nothing else: the safetensors format, which no reader can be made to run.

In: arrays by name and a few texts. Out: a file that appears whole or not at all, and the same arrays again.
Eight bytes give the length of a JSON header, which has the type, shape and place of each array; then the
arrays follow without gaps.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from penstock.errors import NoSuchPathError, PathError, StateError
from penstock.storage.atomic import AtomicFile

_DTYPES: Final = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES: Final = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_TEXTS: Final = "__metadata__"
_ALIGNED: Final = 8
_LONGEST_HEADER: Final = 100_000_000  # what the format allows


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], texts: Mapping[str, str]) -> str:
    """Write arrays, in place of a file that is there, and return the SHA-256 of the file.

    Raises:
        WriteError: The disk is full, or fails.
        StateError: An array has a type that the format does not know.
    """
    entries: dict[str, Any] = {_TEXTS: dict(texts)}
    arrays = {name: _as_stored(name, array) for name, array in tensors.items()}
    at = 0
    for name, array in arrays.items():
        entries[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _ALIGNED)
    start = len(header).to_bytes(8, "little") + header
    digest = hashlib.sha256(start)
    with AtomicFile(path, overwrite=True, planned_bytes=len(start) + at) as file:
        file.write(start)
        for array in arrays.values():
            data = array.reshape(-1).view(np.uint8).data
            digest.update(data)
            file.write(data)
    return digest.hexdigest()


def read_tensors(path: Path, sha256: str | None = None) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read arrays and texts.

    Args:
        path: The file.
        sha256: What its SHA-256 must be; not looked at, if not given.

    Raises:
        NoSuchPathError: There is no such file.
        PathError: It cannot be read.
        StateError: It is another file than was written, or no such file at all.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NoSuchPathError("no such file", path=path) from None
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=path) from None
    if sha256 is not None and (got := hashlib.sha256(data).hexdigest()) != sha256:
        raise StateError("SHA-256", path=path, expected=sha256, got=got, advice="The file is damaged.")
    entries, body = _read_header(path, data)
    texts = entries.pop(_TEXTS, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        _refuse(path, "texts by name", "something else")
    arrays = {}
    end = 0
    for name, entry in entries.items():
        arrays[name], end = _read_array(path, name, entry, body, end)
    if end != len(body):
        _refuse(path, f"{end} bytes of arrays", len(body))
    return arrays, texts


def _as_stored(name: str, array: NDArray[Any]) -> NDArray[Any]:
    little = (
        np.ascontiguousarray(array).reshape(array.shape).astype(array.dtype.newbyteorder("<"), copy=False)
    )
    if little.dtype not in _NAMES:
        raise StateError(f"array {name!r}", expected=f"one of {', '.join(_NAMES.values())}", got=array.dtype)
    return little


def _read_header(path: Path, data: bytes) -> tuple[dict[str, Any], memoryview]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _LONGEST_HEADER):
        _refuse(path, "a header of arrays", f"{len(data)} bytes that begin with none")
    try:
        entries = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError):
        _refuse(path, "a header in JSON", "something else")
    if not isinstance(entries, dict):
        _refuse(path, "a header that is an object", "something else")
    return entries, memoryview(data)[8 + length :]


def _read_array(path: Path, name: str, entry: Any, body: memoryview, start: int) -> tuple[NDArray[Any], int]:
    """Return an array, and where it ends; it must begin where the one before it ended."""
    facts: dict[str, Any] = entry if isinstance(entry, dict) else {}
    kind, shape, offsets = (facts.get(key) for key in ("dtype", "shape", "data_offsets"))
    if kind not in tuple(_DTYPES) or not _are_counts(shape) or not _are_counts(offsets):
        _refuse(path, f"type, shape and place of array {name!r}", "something else")
    dtype = np.dtype(_DTYPES[str(kind)])
    end = start + math.prod(shape or ()) * dtype.itemsize
    if offsets != [start, end] or end > len(body):
        _refuse(path, f"array {name!r} in bytes {start} to {end} of {len(body)}", offsets)
    try:
        # A copy: whoever takes the array may change it, and the file's bytes are let go.
        return np.frombuffer(body[start:end], dtype).reshape(shape).copy(), end
    except ValueError:  # an empty array can have any shape in the file, and not in NumPy
        _refuse(path, f"a shape that array {name!r} can have", shape)


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and 0 <= each < 2**63 for each in value)


def _refuse(path: Path, expected: object, got: object) -> NoReturn:
    raise StateError("file of weights", path=path, expected=expected, got=got, advice="It is damaged.")
