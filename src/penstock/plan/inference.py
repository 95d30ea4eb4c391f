"""Decide what a column is: the type of its field, and the phrase that says why.

In: facts of a column. Out: a type, or the reason for which the column is left out. Pure decisions, no data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import SchemaError
from penstock.foundation.wording import count, show
from penstock.plan.profile import ColumnFacts, ItemFacts, RawKind
from penstock.schema.declaration import Form, TypeName
from penstock.schema.scalar import MAX_CATEGORIES

MIN_ROWS_PER_VALUE: Final = 10
"""Texts that come back this often on average are drawn from a domain; below that, it may be chance."""

MAX_SMALL_DOMAIN: Final = 20
"""A domain of so few texts is one as soon as they come twice on average: small tables have categories too."""

MAX_CATEGORY_WORDS: Final = 4.0
"""Names of categories are short; what has more words on average is prose, however often it comes."""

MAX_CLASSES: Final = 100
"""A target of so many different whole numbers, close together from 0 or above, is taken for classes."""

_PLAIN: Final[Mapping[RawKind, tuple[TypeName | None, str]]] = {
    "bool": ("category", "true or false, as 1 and 0"),
    "date": ("number", "dates, as days since 1970-01-01"),
    "time": ("number", ""),
    "image": ("image", "images"),
    "mixed": (None, "values of several types"),
    "other": (None, "no field holds values of this type"),
}
"""What is clear from the kind of the values alone."""

_LIST_CHANGES: Final[Mapping[str, str]] = {
    "float64": ", rounded to float32",
    "float16": ", widened to float32",
    "bool": ", as 1 and 0",
    **{f"{sign}int{bits}": ", widened to int64" for sign in ("", "u") for bits in (8, 16, 32)},
    "uint64": ", as int64",
}
"""What becomes of the items of lists, which are int64 or float32 in a record."""

_ID_NAME: Final = re.compile(r"id|uuid|guid|row_?id", re.IGNORECASE)


@dataclass(frozen=True)
class Guess:
    """What a column is taken for.

    Attributes:
        type_name: The type of its field; None leaves the column out.
        reason: What speaks for that, one phrase.
        is_id: Whether it names the rows, by its own name and by its values.
    """

    type_name: TypeName | None
    reason: str
    is_id: bool = False


def guess_type(column: str, facts: ColumnFacts, *, is_target: bool, is_whole: bool) -> Guess:
    """Decide what a column is.

    Args:
        column: Its name: `id` is believed, where no value comes twice.
        facts: What was found in it.
        is_target: Whether a model is to predict it: a few whole numbers are then classes.
        is_whole: Whether all rows were looked at.

    Whether the field may lack values is no matter of its type. It may where some were missing; and where not
    all rows were looked at, every field but a target may: an empty cell in row three million is no failure.
    """
    if facts.num_present == 0:
        return _guess_empty(facts, is_whole)
    is_id = facts.is_unique and not is_target and _ID_NAME.fullmatch(column) is not None
    type_name, reason = (
        ("text", "no value comes twice") if is_id and facts.reads_as == "text" else _decide(facts, is_target)
    )
    return Guess(type_name, reason, is_id and type_name in ("number", "text"))


def _guess_empty(facts: ColumnFacts, is_whole: bool) -> Guess:
    if not facts.num_rows:
        return Guess("text", "no rows to look at")
    if is_whole:
        return Guess(None, f"no value in any of {count(facts.num_rows, 'row')}")
    return Guess("text", f"no value in the first {facts.num_rows} rows, so texts will do")


def _decide(facts: ColumnFacts, is_target: bool) -> tuple[TypeName | None, str]:
    if facts.reads_as in _PLAIN:
        type_name, reason = _PLAIN[facts.reads_as]
        if facts.reads_as == "time":
            reason = _word_time(facts.type_text)
        return type_name, reason if facts.kind == "text" else f"{facts.type_text}: {reason}"
    if facts.reads_as in ("list", "array"):
        return _decide_items(facts)
    if facts.reads_as in ("int", "float"):
        return _decide_number(facts, is_target)
    if facts.reads_as == "text":
        return _decide_text(facts, is_target)
    if facts.formats and "unknown" not in facts.formats:
        return "image", f"byte strings that begin as {_list_formats(facts)}"
    return "bytes", "byte strings"


def _word_times(list_type: str) -> str:
    if "date32" in list_type or "date64" in list_type:
        return ", dates as days since 1970-01-01"
    return ", times as microseconds" if re.search(r"time(stamp|32|64)\[|duration", list_type) else ""


def _word_time(type_text: str) -> str:
    if type_text.startswith("duration"):
        return "durations, as microseconds"
    if type_text.startswith(("time32", "time64")):
        return "times of day, as microseconds since midnight"
    return "points in time, as microseconds since 1970-01-01 UTC"


def _decide_number(facts: ColumnFacts, is_target: bool) -> tuple[TypeName, str]:
    text = facts.text
    if text is not None and text.num_leading_zeros:
        zeros = f"digits, {text.num_leading_zeros} of {facts.num_present} with leading zeros"
        return ("category" if _is_domain(facts) else "text"), f"{zeros}: codes, not numbers"
    if text is not None and text.num_beyond_int64:
        return ("category" if _is_domain(facts) else "text"), "digits, too many for a number of 64 bits"
    if is_target and facts.is_whole and not facts.num_nan and _are_classes(facts):
        return "category", f"target of {count(facts.num_distinct or 0, 'whole number')}, {_show_range(facts)}"
    if facts.reads_as == "int":
        return "number", f"whole numbers{_show_range(facts, before=', ')}"
    is_double = facts.kind == "text" or facts.type_text == "double" or facts.type_text.startswith("decimal")
    return "number", f"numbers{_show_range(facts, before=', ')}{', rounded to float32' if is_double else ''}"


def _decide_text(facts: ColumnFacts, is_target: bool) -> tuple[TypeName, str]:
    text = facts.text
    if text is not None and text.num_image_names == facts.num_present and text.num_files:
        return "image", f"names of files that hold {_list_formats(facts)}"
    different = (
        "texts that nearly all differ"
        if facts.num_distinct is None
        else f"{count(facts.num_distinct, 'different text')} in {count(facts.num_present, 'row')}"
    )
    if facts.is_coded:
        return "category", f"{different}, held as codes"
    if _is_domain(facts) or (is_target and facts.num_distinct is not None and _come_twice(facts)):
        return "category", different
    words = "" if text is None or text.mean_words < 2 else f", {text.mean_words:.0f} words on average"
    return "text", f"{different}{words}"


def _decide_items(facts: ColumnFacts) -> tuple[TypeName | None, str]:
    items = facts.items
    if items is None or items.dtype is None:
        return None, f"no field holds lists of this type: {facts.type_text}"
    where = "JSON " if facts.kind == "text" else ""
    if items.shape is not None and 0 in items.shape:
        return None, f"arrays of {' x '.join(map(str, items.shape))} {items.dtype} hold no values"
    if items.are_pixels and items.shape is None:
        return "image", f"arrays of uint8 of {_show_lengths(items)} rows, with channels: pixels"
    if items.shape is not None and items.dtype not in ("string", "bytes") and facts.kind == "array":
        dims = " x ".join(map(str, items.shape)) or "scalar"
        return "tensor", f"arrays of {dims} {items.dtype}"
    if items.step is not None and len(items.step) > 1:
        return None, f"lists of arrays of several lengths, {where}{facts.type_text}"
    change = _LIST_CHANGES.get(items.dtype, "") or _word_times(facts.type_text)
    kind = "lists" if items.step == () else "lists of lists"
    return "sequence", f"{where}{kind} of {_show_lengths(items)} {items.dtype}{change}"


def _is_domain(facts: ColumnFacts) -> bool:
    """Whether texts are drawn from a small set of them."""
    distinct = facts.num_distinct
    if distinct is None or distinct > MAX_CATEGORIES:
        return False
    words = 0.0 if facts.text is None else facts.text.mean_words
    if distinct <= MAX_SMALL_DOMAIN:
        return _come_twice(facts) or (distinct == 1 and facts.num_present > 1)
    return words <= MAX_CATEGORY_WORDS and facts.num_present >= MIN_ROWS_PER_VALUE * distinct


def _come_twice(facts: ColumnFacts) -> bool:
    return facts.num_distinct is not None and 2 * facts.num_distinct <= facts.num_present


def _are_classes(facts: ColumnFacts) -> bool:
    """Whether whole numbers are codes of classes: few, close together, and coming back."""
    distinct, low, high = facts.num_distinct, facts.low, facts.high
    if distinct is None or low is None or high is None or distinct > MAX_CLASSES:
        return False
    return distinct <= 2 or (low >= -1 and high - low < 2 * distinct and 2 * distinct <= facts.num_present)


def _show_range(facts: ColumnFacts, before: str = "") -> str:
    if facts.low is None or facts.high is None:
        return ""
    low, high = (
        f"{bound:.6g}" if isinstance(bound, float) else str(bound) for bound in (facts.low, facts.high)
    )
    return f"{before}{low}" if low == high else f"{before}{low} to {high}"


def _show_lengths(items: ItemFacts) -> str:
    return str(items.max_len) if items.min_len == items.max_len else f"{items.min_len} to {items.max_len}"


def _list_formats(facts: ColumnFacts) -> str:
    names = [name.upper() for name in facts.formats if name != "unknown"]
    return " and ".join(names) or "something"


_SEQUENCE_DTYPES: Final = {"b": "int64", "i": "int64", "u": "int64", "f": "float32"}


def find_attributes(type_name: TypeName, facts: ColumnFacts, *, is_whole: bool) -> dict[str, Any]:
    """Return what the data say about a field of that type.

    Args:
        type_name: Of the field.
        facts: Of the column.
        is_whole: Whether all rows were looked at; only then is the domain of a category known.
    """
    if type_name == "number":
        return {"dtype": "int64" if facts.reads_as in ("int", "bool", "date", "time") else "float32"}
    if type_name == "category":
        return _find_domain(facts, is_whole)
    if type_name == "image" and len(facts.formats) == 1:
        name = next(iter(facts.formats))
        return {} if name == "unknown" else {"format": name}
    if type_name == "sequence" and facts.items is not None:
        return _find_list(facts.items)
    if type_name == "tensor" and facts.items is not None and facts.items.shape is not None:
        dtype = facts.items.dtype
        return {"shape": list(facts.items.shape), **({"dtype": dtype} if dtype else {})}
    return {}


def merge_attributes(found: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Put what was told over what was found, and leave out what was found and does not go with it."""
    merged = {**found, **told}
    if "dtype" in told and told["dtype"] != found.get("dtype") and "values" not in told:
        merged.pop("values", None)
    if "stored" in found and {"stored", "shape"} & told.keys():
        merged = {
            key: value for key, value in merged.items() if key not in ("stored", "shape") or key in told
        }
    if told.get("default") is not None and "values" in found and "values" not in told:
        merged["values"] = list(dict.fromkeys([*merged.get("values", ()), told["default"]]))
    return merged


def choose_encoding(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a tensor is stored where nobody said it: what TFRecords hold as it is as a list, else raw.

    A list of float32 or int64 is what every reader takes; of other types it would need more bytes, more time,
    and knowledge of the type to come back from.
    """
    is_list = attributes.get("dtype", "float32") in ("float32", "int64")
    return {"encoding": "list" if is_list else "raw"}


def find_form(type_name: TypeName, attributes: Mapping[str, Any], facts: ColumnFacts) -> Form:
    """Return how the column holds a field of that type."""
    reads_as = facts.reads_as
    if reads_as in ("date", "time") and type_name == "number":
        return "date" if reads_as == "date" else "time"
    if reads_as == "bool" and (type_name == "number" or attributes.get("dtype") == "int64"):
        return "bool"
    if facts.kind == "text":
        if type_name in ("sequence", "tensor"):
            return "json"
        text = facts.text
        # Opaque bytes may be meant by a text itself; an image cannot.
        is_name = text is not None and text.num_files and not facts.is_decoded
        if type_name == "image" or (type_name == "bytes" and is_name):
            return "path"
    return "value"


def need_shape(column: str, attributes: Mapping[str, Any]) -> None:
    """Refuse a tensor whose shape neither a person nor the data tell.

    Raises:
        SchemaError: There is no shape.
    """
    if "shape" not in attributes:
        raise SchemaError(
            f"shape of column {show(column)} as a tensor",
            field=column,
            expected="one shape in all rows",
            got="none, or several",
            advice=f"Tell it: '--tensor {column}:64x64:float32' or fields.Tensor((64, 64)); "
            "values of several lengths are a sequence.",
        )


def _find_domain(facts: ColumnFacts, is_whole: bool) -> dict[str, Any]:
    if facts.reads_as == "bool":
        return {"dtype": "int64", "values": [0, 1]}
    is_int = facts.reads_as == "int" or (facts.reads_as == "float" and facts.is_whole)
    if is_int and facts.text is not None and (facts.text.num_leading_zeros or facts.text.num_beyond_int64):
        is_int = False
    domain = {"values": list(facts.values)} if facts.values and is_whole and not facts.num_nan else {}
    if is_int:
        return {"dtype": "int64", **domain}
    return {"dtype": "string", **(domain if facts.kind == "text" and facts.reads_as != "float" else {})}


def _find_list(items: ItemFacts) -> dict[str, Any]:
    dtype = items.dtype
    if dtype not in ("string", "bytes"):
        dtype = "float32" if dtype is None else _SEQUENCE_DTYPES[_kind_letter(dtype)]
    if items.step == ():
        return {"dtype": dtype}
    # A list of lists is a list of steps; steps are flat.
    step = items.step if items.step is not None and len(items.step) == 1 else None
    return {"dtype": dtype, "shape": None if step is None else list(step), "stored": "feature_list"}


def _kind_letter(dtype: str) -> str:
    return "f" if dtype.startswith("float") else "i"
