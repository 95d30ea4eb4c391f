"""Vocabularies: the values that have their own code, and lookup tables for the codes.

In: statistics of a field, a pass over its values, or a list given by the user. Out: entries in the order of
codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.option_checks import refuse_option
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.statistics.statistics import is_counted
from penstock.transform.base import FitSource
from penstock.transform.measurement import MAX_COUNTED, count_values

if TYPE_CHECKING:
    from penstock.statistics.summary import FieldStatistics

Entry: TypeAlias = str | bytes | int
Table: TypeAlias = "_native.Vocabulary | _native.IntVocabulary"


def count_entries(name: str, field: Field, source: FitSource) -> list[tuple[Entry, int]]:
    """Return the values of a field with their counts, most frequent first, ties in the order of values.

    Records without a value count with the default of the field, if it has one.
    """
    statistics: FieldStatistics | None = source.statistics(name) if is_counted(field) else None
    frequencies = None if statistics is None else statistics.frequencies
    counted: dict[Entry, int] = {}
    if statistics is not None and frequencies is not None and frequencies.is_complete:
        counted = dict(zip(frequencies.values, frequencies.counts, strict=True))
        num_missing = statistics.missing
    elif statistics is not None and not statistics.count:
        num_missing = statistics.missing
    else:
        found = count_values(name, source)
        if not found.is_complete:
            raise OptionError(
                f"vocabulary of field {name!r}",
                field=name,
                expected=f"at most {MAX_COUNTED} distinct values",
                got="more",
                advice="Use Encode('hash', num_bins=…).",
            )
        counted = dict(zip(map(as_text, found.values), found.counts, strict=True))
        num_missing = found.num_missing
    if num_missing and field.default is not None and not isinstance(field, Sequence):
        default = as_text(field.default)
        counted[default] = counted.get(default, 0) + num_missing
    return sorted(counted.items(), key=lambda item: (-item[1], sort_key(item[0])))


def check_entries(owner: str, given: object, option: str = "vocabulary") -> tuple[Entry, ...]:
    """Return a vocabulary given by the user as a tuple."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise refuse_option(owner, option, "a list of strings or of integers", show(given))
    entries = tuple(item.item() if isinstance(item, np.generic) else item for item in given)
    is_text = bool(entries) and isinstance(entries[0], str | bytes)
    seen = set()
    for i, entry in enumerate(entries):
        if not (isinstance(entry, str | bytes) if is_text else is_int64(entry)):
            is_mixed = isinstance(entry, str | bytes | int)
            expected = "strings or integers, not both" if is_mixed else "strings or integers"
            raise refuse_option(owner, f"{option}[{i}]", expected, show(entry))
        key = sort_key(entry)
        if key in seen:
            raise refuse_option(owner, f"{option}[{i}]", "distinct values", f"{show(entry)} a second time")
        seen.add(key)
    return tuple(as_text(entry) for entry in entries)


def entry_dtype(field: Field) -> str | None:
    """Return the type of the entries for a field, "string" or "int64"; None if it cannot be encoded."""
    return ENTRY_DTYPES[type(field)](field)


def _dtype_of(field: Category | Number | Sequence) -> str | None:
    return {"int64": "int64", "string": "string", "bytes": "string"}.get(field.dtype)


# Type of the entries of a vocabulary, by type of field.
ENTRY_DTYPES: dict[type[Field], Callable[[Any], str | None]] = {
    Number: _dtype_of,
    Category: _dtype_of,
    Date: lambda _: "int64",
    Text: lambda _: "string",
    Image: lambda _: None,
    BytesField: lambda _: "string",
    Sequence: _dtype_of,
    Tensor: lambda _: None,
}


def check_dtype(owner: str, entries: tuple[Entry, ...], dtype: str, option: str) -> None:
    """Refuse strings for a field of integers, and integers for a field of strings."""
    if entries and isinstance(entries[0], int) != (dtype == "int64"):
        expected = "integers, as in the field" if dtype == "int64" else "strings, as in the field"
        raise refuse_option(owner, option, expected, show(entries[0]))


def make_table(entries: tuple[Entry, ...], dtype: str) -> Table:
    """Return the lookup table from entries to their index."""
    if dtype == "int64":
        return _native.IntVocabulary(np.array(entries, np.int64))
    return _native.Vocabulary([as_bytes(entry) for entry in entries])


def as_text(value: Entry) -> Entry:
    """Decode bytes if they are valid UTF-8; return any other value unchanged."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def as_bytes(entry: Entry) -> bytes:
    """Return a string as stored bytes."""
    if isinstance(entry, int):
        raise TypeError(f"expected a string or bytes, got {entry!r}")
    return entry.encode("utf-8", "surrogatepass") if isinstance(entry, str) else entry


def sort_key(entry: Entry) -> bytes | int:
    """Return the sort key of an entry: the bytes of a string, which sort like its code points."""
    return entry if isinstance(entry, int) else as_bytes(entry)


def is_int64(value: object) -> bool:
    """Whether a value is an integer in the range of int64."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
