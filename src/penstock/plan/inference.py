"""Infer the field of a column: its type, its attributes, and the reason for the decision.

In: the profile of a column. Out: a type with a reason, or the reason why the column is dropped; attributes of
the field; the representation of its values. Pure decisions: no data is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import SchemaError
from penstock.foundation.wording import count, declare, show
from penstock.plan.profile import ColumnProfile, ItemProfile, RawKind
from penstock.schema.date import DateUnit, choose_unit
from penstock.schema.declaration import Representation, TypeName
from penstock.schema.value_kind import StringKind, ValueCounts, classify_numbers, classify_strings

_PLAIN: Final[Mapping[RawKind, tuple[TypeName | None, str]]] = {
    "bool": ("category", "true or false, stored as 1 and 0"),
    "date": ("date", "dates, stored as days since 1970-01-01"),
    "time": ("date", "points in time, stored as microseconds since 1970-01-01 UTC"),
    "image": ("image", "images"),
    "mixed": (None, "values of several types"),
    "other": (None, "no field type holds values of this type"),
}
"""Decisions that follow from the kind of the values alone."""

_LIST_CHANGES: Final[Mapping[str, str]] = {
    "float64": ", rounded to float32",
    "float16": ", widened to float32",
    "bool": ", as 1 and 0",
    **{f"{sign}int{bits}": ", widened to int64" for sign in ("", "u") for bits in (8, 16, 32)},
    "uint64": ", as int64",
}
"""How items of lists change, because a record holds int64 or float32."""

ID_BY_NAME: Final = "identifiers by their name, all values are distinct"
"""Reason of a column that becomes the id although it is not called `id`."""

_ID_NAME: Final = re.compile(r"id|uuid|guid|row_?id", re.IGNORECASE)


@dataclass(frozen=True)
class InferredType:
    """Inferred type of a column.

    Attributes:
        type_name: Type of the field; None if the column is dropped.
        reason: Reason for the decision, one phrase.
        is_id: Whether the name and the values of the column suggest an identifier of rows.
        left_out: Reason why the column is not an input, unless it is declared; empty if it is one.
    """

    type_name: TypeName | None
    reason: str
    is_id: bool = False
    left_out: str = ""


def infer_type(column: str, profile: ColumnProfile, *, is_target: bool, is_whole: bool) -> InferredType:
    """Infer the type of a column.

    Whether the field is optional does not depend on its type. It is optional if values were missing. If not
    all rows were read, every field except a target is optional: an empty cell in row three million must not
    be an error.

    `column`: name of the column; a name such as `id` counts if all values are distinct. `is_target`: whether
    the column is a target: a few whole numbers are then classes.
    """
    if profile.num_present == 0:
        return _infer_empty(profile, is_whole)
    type_name, reason = _decide(column, profile, is_target)
    if profile.is_unique and not is_target and _ID_NAME.fullmatch(column) is not None:
        if profile.reads_as == "text":
            type_name, reason = "text", "all values are distinct"
        is_id = type_name in ("number", "text")
        return InferredType(type_name, reason, is_id, _leave_out(column, profile) if is_id else "")
    left_out = "" if is_target or type_name not in ("number", "text") else _leave_out(column, profile)
    # Numbers of rows identify a row of one file only.
    if left_out and profile.is_unique and not _are_row_numbers(column, profile):
        return InferredType(type_name, ID_BY_NAME, True, left_out)
    return InferredType(type_name, reason, False, left_out)


def _leave_out(column: str, profile: ColumnProfile) -> str:
    """Return the reason why a column is not an input by default; empty if it is one."""
    if _are_row_numbers(column, profile):
        return (
            f"whole numbers that count the rows{_show_range(profile, before=', ')}, which a model can only "
            f"memorize. Use {declare(column, 'Number()')} if they are quantities."
        )
    use = ""
    if _are_whole(profile) and classify_numbers(column, _count(profile), is_target=False) == "identifier":
        classes = declare(column, "Category('int64')")
        use = f"{declare(column, 'Number()')} or {classes} to use it"
    elif _is_token_column(profile) and _classify_texts(column, profile, is_target=False) == "identifier":
        use = f"{declare(column, 'Text()')} or {declare(column, 'Category()')} to use it"
    if not use:
        return ""
    distinct = "nearly all values are distinct"
    if profile.num_distinct is not None:
        distinct = f"{profile.num_distinct} distinct values in {count(profile.num_present, 'row')}"
    return f"identifiers by their name, {distinct}, which a model can only memorize. Use {use}."


def _are_row_numbers(column: str, profile: ColumnProfile) -> bool:
    is_int = _are_whole(profile) and profile.reads_as == "int"
    return is_int and classify_numbers(column, _count(profile), is_target=False) == "index"


def _are_whole(profile: ColumnProfile) -> bool:
    """Return whether a column holds whole numbers, and keeps none of them as text."""
    text = profile.text
    is_kept = text is not None and (text.num_leading_zeros or text.num_beyond_int64)
    return profile.reads_as in ("int", "float") and profile.is_whole and not profile.num_nan and not is_kept


def _is_token_column(profile: ColumnProfile) -> bool:
    """Return whether a column holds texts that are neither names of files nor mostly numbers."""
    text = profile.text
    if text is None or text.num_image_names or (text.num_tried and profile.reads_as == "text"):
        return False
    return profile.reads_as == "text" or bool(text.num_leading_zeros or text.num_beyond_int64)


def _count(profile: ColumnProfile) -> ValueCounts:
    words = 1.0 if profile.text is None else max(1.0, profile.text.mean_words)
    return ValueCounts(profile.num_present, profile.num_distinct, profile.low, profile.high, words)


def _classify_texts(column: str, profile: ColumnProfile, *, is_target: bool) -> StringKind:
    return classify_strings(column, _count(profile), is_target=is_target)


def _infer_empty(profile: ColumnProfile, is_whole: bool) -> InferredType:
    if not profile.num_rows:
        return InferredType("text", "no rows to infer a type from")
    if is_whole:
        return InferredType(None, f"no value in any of {count(profile.num_rows, 'row')}")
    return InferredType("text", f"no value in the first {profile.num_rows} rows, text is assumed")


def _decide(column: str, profile: ColumnProfile, is_target: bool) -> tuple[TypeName | None, str]:
    if profile.reads_as in _PLAIN:
        type_name, reason = _PLAIN[profile.reads_as]
        if profile.reads_as == "time" and not _are_moments(profile.type_text):
            type_name, reason = "number", _describe_durations(profile.type_text)
        return type_name, reason if profile.kind == "text" else f"{profile.type_text}: {reason}"
    if profile.reads_as in ("list", "array"):
        return _decide_items(profile)
    if profile.reads_as in ("int", "float"):
        return _decide_number(column, profile, is_target)
    if profile.reads_as == "text":
        return _decide_text(column, profile, is_target)
    if profile.formats and "unknown" not in profile.formats:
        return "image", f"byte strings that are {_list_formats(profile)}"
    return "bytes", "byte strings"


def _describe_list_times(list_type: str) -> str:
    if "date32" in list_type or "date64" in list_type:
        return ", dates stored as days since 1970-01-01"
    return ", times stored as microseconds" if re.search(r"time(stamp|32|64)\[|duration", list_type) else ""


def _are_moments(type_text: str) -> bool:
    """Return whether values of a type of times are points in time, not times of day or durations."""
    return not type_text.startswith(("duration", "time32", "time64"))


def _describe_durations(type_text: str) -> str:
    if type_text.startswith("duration"):
        return "durations, stored as microseconds"
    return "times of day, stored as microseconds since midnight"


def _decide_number(column: str, profile: ColumnProfile, is_target: bool) -> tuple[TypeName, str]:
    text = profile.text
    if text is not None and (text.num_leading_zeros or text.num_beyond_int64):
        found = _classify_texts(column, profile, is_target=is_target)
        reason = "whole numbers outside the range of int64"
        if text.num_leading_zeros:
            zeros = f"digits, {text.num_leading_zeros} of {profile.num_present} with leading zeros"
            reason = f"{zeros}: codes, not numbers"
        return ("category" if found == "category" else "text"), reason
    kind = classify_numbers(column, _count(profile), is_target=is_target) if _are_whole(profile) else ""
    numbers = f"{count(profile.num_distinct or 0, 'whole number')}, {_show_range(profile)}"
    if kind == "classes":
        return "category", f"target of {numbers}"
    if kind == "codes":
        return "category", f"{numbers}: codes by their name, not quantities"
    if profile.reads_as == "int":
        return "number", f"whole numbers{_show_range(profile, before=', ')}"
    is_double = profile.kind == "text" or profile.type_text.startswith(("double", "decimal"))
    rounded = ", rounded to float32" if is_double else ""
    return "number", f"numbers{_show_range(profile, before=', ')}{rounded}"


def _decide_text(column: str, profile: ColumnProfile, is_target: bool) -> tuple[TypeName, str]:
    text = profile.text
    if text is not None and text.num_image_names == profile.num_present and text.num_files:
        return "image", f"names of files of type {_list_formats(profile)}"
    different = (
        "nearly all texts are distinct"
        if profile.num_distinct is None
        else f"{count(profile.num_distinct, 'distinct text')} in {count(profile.num_present, 'row')}"
    )
    if profile.is_coded:
        return "category", f"{different}, dictionary-encoded in the source"
    if _classify_texts(column, profile, is_target=is_target) == "category":
        return "category", different
    words = "" if text is None or text.mean_words < 2 else f", {text.mean_words:.0f} words on average"
    return "text", f"{different}{words}"


def _decide_items(profile: ColumnProfile) -> tuple[TypeName | None, str]:
    items = profile.items
    if items is None or items.dtype is None:
        return None, f"no field type holds lists of this type: {profile.type_text}"
    where = "JSON " if profile.kind == "text" else ""
    if items.shape is not None and 0 in items.shape:
        return None, f"arrays of {' x '.join(map(str, items.shape))} {items.dtype} are empty"
    if items.are_pixels and items.shape is None:
        return "image", f"uint8 arrays with {_show_lengths(items)} rows and 1, 3 or 4 channels: pixels"
    if items.shape is not None and items.dtype not in ("string", "bytes") and profile.kind == "array":
        dims = " x ".join(map(str, items.shape)) or "scalar"
        return "tensor", f"arrays of {dims} {items.dtype}"
    if items.step is not None and len(items.step) > 1:
        return None, f"lists of arrays of different lengths, {where}{profile.type_text}"
    change = _LIST_CHANGES.get(items.dtype, "") or _describe_list_times(profile.type_text)
    kind = "lists" if items.step == () else "lists of lists"
    return "sequence", f"{where}{kind} of {_show_lengths(items)} {items.dtype}{change}"


def _show_range(profile: ColumnProfile, before: str = "") -> str:
    if profile.low is None or profile.high is None:
        return ""
    bounds = (profile.low, profile.high)
    low, high = (f"{bound:.6g}" if isinstance(bound, float) else str(bound) for bound in bounds)
    return f"{before}{low}" if low == high else f"{before}{low} to {high}"


def _show_lengths(items: ItemProfile) -> str:
    return str(items.max_len) if items.min_len == items.max_len else f"{items.min_len} to {items.max_len}"


def _list_formats(profile: ColumnProfile) -> str:
    names = [name.upper() for name in profile.formats if name != "unknown"]
    return " and ".join(names) or "unknown format"


def find_attributes(type_name: TypeName, profile: ColumnProfile, *, is_whole: bool) -> dict[str, Any]:
    """Return the attributes of a field that follow from the data, of all rows if `is_whole`."""
    return ATTRIBUTES[type_name](profile, is_whole)


def merge_attributes(inferred: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return declared attributes, completed by the inferred ones that do not contradict them."""
    merged = {**inferred, **declared}
    if "dtype" in declared and declared["dtype"] != inferred.get("dtype") and "values" not in declared:
        merged.pop("values", None)
    if "stored" in inferred and {"stored", "shape"} & declared.keys():
        merged = {
            key: value for key, value in merged.items() if key not in ("stored", "shape") or key in declared
        }
    if declared.get("default") is not None and "values" in inferred and "values" not in declared:
        merged["values"] = list(dict.fromkeys([*merged.get("values", ()), declared["default"]]))
    return merged


def choose_encoding(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default encoding of a tensor: a list for the types that TFRecords hold, otherwise raw bytes.

    Every reader understands a list of float32 or int64. Other types would take more bytes and time as a list,
    and a reader would need to know the original type.
    """
    is_list = attributes.get("dtype", "float32") in ("float32", "int64")
    return {"encoding": "list" if is_list else "raw"}


def find_representation(
    type_name: TypeName, attributes: Mapping[str, Any], profile: ColumnProfile
) -> Representation:
    """Return the representation of a field's values in its column."""
    reads_as = profile.reads_as
    if reads_as in ("date", "time") and type_name == "number":
        return "date" if reads_as == "date" else "time"
    if reads_as == "bool" and (type_name == "number" or attributes.get("dtype") == "int64"):
        return "bool"
    if profile.kind == "text":
        if type_name in ("sequence", "tensor"):
            return "json"
        text = profile.text
        # A text can itself be the value of a field of bytes, but not an image.
        is_name = text is not None and text.num_files and not profile.is_decoded
        if type_name == "image" or (type_name == "bytes" and is_name):
            return "path"
    return "value"


def check_shape(column: str, attributes: Mapping[str, Any]) -> None:
    """Check that the shape of a tensor is declared or inferred."""
    if "shape" not in attributes:
        raise SchemaError(
            f"shape of column {show(column)} as a tensor",
            field=column,
            expected="one shape in all rows",
            got="no shape, or different shapes",
            advice=f"Declare it, such as {declare(column, 'Tensor((64, 64))')}. "
            "Use a sequence for values of different lengths.",
        )


def _find_domain(profile: ColumnProfile, is_whole: bool) -> dict[str, Any]:
    if profile.reads_as == "bool":
        return {"dtype": "int64", "values": [0, 1]}
    is_int = profile.reads_as == "int" or (profile.reads_as == "float" and profile.is_whole)
    text = profile.text
    if text is not None and (text.num_leading_zeros or text.num_beyond_int64):
        is_int = False
    domain = {"values": list(profile.values)} if profile.values and is_whole and not profile.num_nan else {}
    if is_int:
        return {"dtype": "int64", **domain}
    return {"dtype": "string", **(domain if profile.kind == "text" and profile.reads_as != "float" else {})}


def _find_unit(profile: ColumnProfile) -> DateUnit:
    """Return the unit of a column that is declared as dates: of texts and numbers, by their size."""
    if profile.reads_as in ("date", "time"):
        return "days" if profile.reads_as == "date" else "microseconds"
    text = profile.text
    if profile.reads_as in ("int", "float"):  # floats hold whole numbers beside missing ones
        return choose_unit(profile.low, profile.high)
    if text is None or text.date_kind is not None:
        return "days" if text is None or text.date_kind == "date" else "microseconds"
    return "days" if text.max_bytes <= len("2024-01-31") else "microseconds"


def _find_list(items: ItemProfile) -> dict[str, Any]:
    dtype = items.dtype
    if dtype not in ("string", "bytes"):
        dtype = "float32" if dtype is None or dtype.startswith("float") else "int64"
    if items.step == ():
        return {"dtype": dtype}
    # A list of lists is a sequence of steps, each a flat list.
    step = items.step if items.step is not None and len(items.step) == 1 else None
    return {"dtype": dtype, "shape": None if step is None else list(step), "stored": "feature_list"}


def _find_number(profile: ColumnProfile, _: bool) -> dict[str, Any]:
    return {"dtype": "int64" if profile.reads_as in ("int", "bool", "date", "time") else "float32"}


def _find_format(profile: ColumnProfile, _: bool) -> dict[str, Any]:
    name = next(iter(profile.formats)) if len(profile.formats) == 1 else "unknown"
    return {} if name == "unknown" else {"format": name}


def _find_array(profile: ColumnProfile, _: bool) -> dict[str, Any]:
    items = profile.items
    if items is None or items.shape is None:
        return {}
    return {"shape": list(items.shape), **({"dtype": items.dtype} if items.dtype else {})}


# How the attributes of each type of field follow from a profile, and from whether all rows were read.
ATTRIBUTES: Final[Mapping[TypeName, Callable[[ColumnProfile, bool], dict[str, Any]]]] = {
    "number": _find_number,
    "category": _find_domain,
    "date": lambda profile, _: {"unit": _find_unit(profile)},
    "text": lambda *_: {},
    "image": _find_format,
    "bytes": lambda *_: {},
    "sequence": lambda profile, _: {} if profile.items is None else _find_list(profile.items),
    "tensor": _find_array,
}
