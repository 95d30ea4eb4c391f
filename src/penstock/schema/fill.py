"""What a type of field leaves open, taken from the data: dtype, shape, domain, and how the column holds it.

In: the type of a field, told or guessed, and the facts of a column. Out: attributes in their JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.errors import SchemaError
from penstock.foundation.wording import show
from penstock.plan.profile import ColumnFacts, ItemFacts
from penstock.schema.told import TypeName
from penstock.source.block import Form

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
