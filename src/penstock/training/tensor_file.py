"""Files of arrays in the safetensors format, which holds no code.

In: arrays by name, and texts. Out: a file, written atomically, and the same arrays again. The package
`safetensors` reads, as it checks untrusted files before it allocates memory; it does not write, as it (0.8)
orders texts at random, and the same run must give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from penstock.errors import NoSuchPathError, PathError, StateError
from penstock.foundation.json_text import parse_json
from penstock.storage.atomic import AtomicFile

_DTYPES: Final = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES: Final = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_TEXTS: Final = "__metadata__"
_ALIGNED: Final = 8


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], texts: Mapping[str, str]) -> str:
    """Write arrays, replacing the file, and return its SHA-256."""
    entries: dict[str, object] = {_TEXTS: dict(texts)}
    arrays = {name: _as_stored(name, array) for name, array in tensors.items()}
    at = 0
    for name, array in arrays.items():
        entries[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    try:
        json.dumps(entries, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise StateError(
            "names and texts of arrays", expected="Unicode", got=ascii(error.object[error.start])
        ) from None
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

    `sha256`: expected SHA-256 of the file; not checked if not given.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NoSuchPathError("no such file", path=path) from None
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=path) from None
    if sha256 is not None and (got := hashlib.sha256(data).hexdigest()) != sha256:
        raise StateError("SHA-256", path=path, expected=sha256, got=got, advice="The file is damaged.")
    try:
        tensors = dict(deserialize(data))
        # `deserialize` has checked the header, but returns neither the texts nor the order of the arrays.
        header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, ValueError) as error:
        _refuse(path, "a safetensors file", str(error))
    texts = header.pop(_TEXTS, None) or {}
    if header.keys() != tensors.keys():
        _refuse(path, "one entry per array", "entries of the same name")
    return {name: _make_array(path, name, tensors[name]) for name in header}, texts


def _make_array(path: Path, name: str, tensor: Mapping[str, Any]) -> NDArray[Any]:
    kind, shape = tensor["dtype"], tensor["shape"]
    if kind not in _DTYPES:
        _refuse(path, f"array {name!r} of one of {', '.join(_DTYPES)}", kind)
    try:
        return np.frombuffer(tensor["data"], _DTYPES[kind]).reshape(
            shape
        )  # writable, as `data` is a bytearray
    except ValueError:  # the format allows more dimensions than NumPy
        _refuse(path, f"a shape that array {name!r} can have", shape)


def _as_stored(name: str, array: NDArray[Any]) -> NDArray[Any]:
    little = (
        np.ascontiguousarray(array).reshape(array.shape).astype(array.dtype.newbyteorder("<"), copy=False)
    )
    if little.dtype not in _NAMES:
        raise StateError(f"array {name!r}", expected=f"one of {', '.join(_NAMES.values())}", got=array.dtype)
    return little


def _refuse(path: Path, expected: object, got: object) -> NoReturn:
    advice = "The file is damaged, or is not a file of weights."
    raise StateError("file of weights", path=path, expected=expected, got=got, advice=advice)
