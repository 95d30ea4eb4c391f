"""Raw inputs of an exported model: one tensor per field, with a value that stands for a missing one.

In: the inputs of a pipeline. Out: names, types and shapes of tensors; the statements that read fields from
them, for `bridge/graph/`; and rows as values of those tensors.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from penstock.bridge.graph.site import Lack, Site, Stored, tf
from penstock.codegen.program import Term
from penstock.model.usable_records import list_checked
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.array import Tensor
from penstock.schema.date import date_forms
from penstock.schema.field import Field
from penstock.schema.scalar import Image
from penstock.schema.schema import Schema
from penstock.transform.category import Encode
from penstock.transform.padding import count_levels
from penstock.transform.pipeline import Pipeline
from penstock.transform.vocabulary import as_bytes

SERVING: Final = "serving_default"
"""Name of the signature that predicts."""

MODEL_INPUTS: Final = "model_inputs"
"""Name of the signature that returns the preprocessed raw values."""

_MOST_WHOLE: Final = 2**53  # the whole numbers that float64 holds exactly
_ZEROS: Final[Mapping[str, Any]] = {"string": "", "bool": False}
_UNITS: Final[Mapping[str, str]] = {"date": "days since 1970-01-01", "time": "microseconds since 1970-01-01"}
_SUFFIXES: Final[Mapping[str, str]] = {"date": "_days_since_1970", "time": "_microseconds_since_1970"}
_raw: Final = Term.name("raw")

Part: TypeAlias = Literal["value", "array", "list", "length", "step_length", "present"]
"""Part of a field that a tensor holds: its values, its lists, their lengths, or which rows have a value."""


@dataclass(frozen=True)
class RawInput:
    """A tensor that an exported model takes.

    Attributes:
        name: Name of the tensor.
        field: Name of the field.
        dtype: Element type, as TensorFlow names it.
        shape: Shape without the rows; None is a length that varies.
        part: Part of the field that it holds.
        meaning: One line about the values.
        missing: The text, or the name of the number, that stands for a missing value; None if there is none.
    """

    name: str
    field: str
    dtype: str
    shape: tuple[int | None, ...]
    part: Part
    meaning: str
    missing: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with the rows as the first dimension of the shape."""
        form = {"field": self.field, "part": self.part, "dtype": self.dtype, "shape": [None, *self.shape]}
        return {**form, "meaning": self.meaning, "missing": self.missing}

    @classmethod
    def from_json(cls, name: str, form: Mapping[str, Any]) -> RawInput:
        """Return the input of a JSON form."""
        return cls(name=name, **{**form, "shape": tuple(form["shape"][1:])})


def name_tensor(name: str, taken: Iterable[str]) -> str:
    """Return a name that TensorFlow accepts for a tensor, and that is not taken.

    Example:
        >>> name_tensor("Marital status", ["age"]), name_tensor("age", ["age"])
        ('Marital_status', 'age_2')
    """
    plain = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "field"
    stem = plain if plain[0].isalpha() else f"field_{plain}"
    used, found, number = set(taken), stem, 2
    while found in used:
        found, number = f"{stem}_{number}", number + 1
    return found


def name_model_inputs(pipeline: Pipeline) -> dict[str, str]:
    """Return the names of the inputs of the model in the signature `model_inputs`."""
    names: dict[str, str] = {}
    for name in pipeline.inputs:
        names[name] = name_tensor(name, names.values())
    return names


def loosen_schema(inputs: Pipeline) -> Schema:
    """Return the fields as requests have them: optional wherever the model accepts rows without a value."""
    fields: dict[str, Field] = {}
    for name, field in inputs.schema.items():
        transform = inputs.transforms.get(name)
        can_lack = field.optional or (transform is not None and transform.takes_missing)
        loose = replace(field, optional=can_lack) if can_lack != field.optional else field
        fields[name] = replace(loose, format=None) if isinstance(loose, Image) else loose
    return Schema(fields)


class RawReader:
    """Reads fields from a dict `raw` of tensors; a `ValueReader` of `bridge/graph/`.

    Attributes:
        inputs: The tensors by name, as far as fields have been read.
    """

    def __init__(self, pipeline: Pipeline, forms: Mapping[str, str]) -> None:
        """Take a pipeline without targets, and how raw columns represented the values of its fields."""
        self.inputs: dict[str, RawInput] = {}
        self._forms = {**forms, **date_forms(pipeline.schema)}
        self._finite = dict(list_checked(pipeline))
        self._transforms = pipeline.transforms

    def read_values(self, site: Site, lack: Lack, default: Any) -> Stored:
        """Return one value or array per record, in the type of the field."""
        values, present = self._read(site)
        self._check_finite(site, values, present)
        if present is None:
            return Stored(values, None)
        if lack == "refuse":
            site.check(tf.debugging.Assert(tf.reduce_all(present), [_refuse(site, "a value is missing")]))
            return Stored(values, None)
        fill = self._find_fill(site, default)
        shape = site.field.shape if isinstance(site.field, Tensor) else ()
        mask = site.reshape(present, [1] * len(shape)) if shape else present
        filled = site.bind(tf.where(mask, values, fill))
        return Stored(filled, present if lack == "mark" else None)

    def read_ragged(self, site: Site) -> Term:
        """Return a ragged tensor with one value per record, and none for a record without a value."""
        values, present = self._read(site)
        if present is None:
            present = site.bind_extra("present", tf.ones_like(values, dtype=tf.bool))
        chosen = tf.boolean_mask(values, present)
        return site.bind(tf.RaggedTensor.from_row_lengths(chosen, tf.cast(present, tf.int64)))

    def read_lists(self, site: Site) -> Term:
        """Return lists of values or steps as a ragged tensor."""
        field = site.field
        if not isinstance(field, SequenceField):
            raise TypeError(f"expected a sequence field, got {field!r}")
        dtype = "string" if field.kind == "bytes" else field.dtype
        is_nested = count_levels(field) == 2
        steps = (None,) if is_nested else tuple(field.shape or ())
        values = self._take(site, "list", dtype, (None, *steps), f"{field.describe()}, padded to one length")
        length = self._take(site, "length", "int64", (), f"number of values of {site.name!r} in the row")
        self._check_length(site, length, tf.shape(values, out_type=tf.int64)[1])
        if not is_nested:
            lists = site.bind(tf.RaggedTensor.from_tensor(values, lengths=length))
        else:
            meaning = f"number of values in each list of {site.name!r}"
            inner = self._take(site, "step_length", "int64", (None,), meaning)
            mask = tf.sequence_mask(length, tf.shape(values, out_type=tf.int64)[1])
            inner = site.bind_extra("inner", tf.boolean_mask(inner, mask))
            self._check_length(site, inner, tf.shape(values, out_type=tf.int64)[2])
            lists = site.bind(tf.RaggedTensor.from_tensor(values, lengths=(length, inner)))
        self._check_finite(site, lists.flat_values, None)
        return lists

    def _read(self, site: Site) -> tuple[Term, Term | None]:
        """Return the values of a field in its type, and which rows have one; None if all must."""
        field = site.field
        if isinstance(field, Tensor):
            meaning = f"array of {field.describe()}"
            values = self._take(site, "array", field.dtype, field.shape, meaning)
            if not field.optional:
                return values, None
            meaning = f"whether a row has {site.name!r}"
            return values, self._take(site, "present", "bool", (), meaning)
        dtype = getattr(field, "dtype", "string")
        if dtype in ("string", "bytes"):
            return self._read_strings(site)
        if dtype == "int64" and field.optional:
            return self._read_whole(site)
        meaning = f"{self._describe(site)}, one per row"
        values = self._take(site, "value", dtype, (), meaning, "NaN" if field.optional else None)
        if not field.optional:
            return values, None
        return values, site.bind_extra("present", ~tf.math.is_nan(values))

    def _read_strings(self, site: Site) -> tuple[Term, Term | None]:
        field = site.field
        what = "encoded image: the bytes of a file" if isinstance(field, Image) else field.type_name
        if not field.optional:
            return self._take(site, "value", "string", (), f"{what}, one per row"), None
        missing = self._find_missing_text(site)
        values = self._take(site, "value", "string", (), f"{what}, one per row", missing)
        return values, site.bind_extra("present", tf.not_equal(values, missing))

    def _read_whole(self, site: Site) -> tuple[Term, Term]:
        """Read whole numbers that may be missing: as float64, as NaN is not a whole number."""
        meaning = f"{self._describe(site)}, one whole number per row"
        numbers = self._take(site, "value", "float64", (), meaning, "NaN")
        present = site.bind_extra("present", ~tf.math.is_nan(numbers))
        numbers = site.bind(tf.where(present, numbers, tf.zeros_like(numbers)))
        is_whole = tf.equal(numbers, tf.round(numbers)) & (tf.abs(numbers) <= float(_MOST_WHOLE))
        site.check(tf.debugging.Assert(tf.reduce_all(is_whole), [_refuse(site, "expected a whole number")]))
        return site.bind(tf.cast(numbers, tf.int64)), present

    def _take(
        self,
        site: Site,
        part: Part,
        dtype: str,
        shape: tuple[int | None, ...],
        meaning: str,
        missing: str | None = None,
    ) -> Term:
        """Declare a tensor of a field, and return the term for it."""
        is_main = part in ("value", "array", "list")
        # A number alone does not show that it is a date: the name of the input says its unit.
        suffix = _SUFFIXES.get(self._forms.get(site.name, ""), "") if is_main else f"_{part}"
        name = name_tensor(f"{site.name}{suffix}", self.inputs)
        self.inputs[name] = RawInput(name, site.name, dtype, shape, part, meaning, missing)
        return site.bind(_raw[name]) if is_main else site.bind_extra(part, _raw[name])

    def _describe(self, site: Site) -> str:
        return _UNITS.get(self._forms.get(site.name, ""), site.field.type_name)

    def _find_missing_text(self, site: Site) -> str:
        """Return the text for a missing value: an empty one, unless that is a value of the vocabulary."""
        transform = self._transforms.get(site.name)
        known: set[bytes] = set()
        if isinstance(transform, Encode) and transform.fitted is not None:
            known = {as_bytes(each) for each in transform.fitted.values if not isinstance(each, int)}
        missing, number = "", 1
        while missing.encode() in known:
            missing, number = f"<missing {number}>" if number > 1 else "<missing>", number + 1
        return missing

    def _find_fill(self, site: Site, default: Any) -> Term:
        """Return the value for rows without one: the default of the field, or zero."""
        field = site.field
        chosen = field.default if default is None else default
        dtype = "string" if (kind := getattr(field, "dtype", "string")) in ("string", "bytes") else kind
        if chosen is None:
            chosen = _ZEROS.get(dtype, 0)
        elif isinstance(field, Tensor):
            chosen = np.asarray(chosen, field.dtype).tolist()
        return tf.constant(chosen, getattr(tf, dtype))

    def _check_length(self, site: Site, length: Term, most: Term) -> None:
        is_valid = tf.reduce_all((length >= 0) & (length <= most))
        site.check(tf.debugging.Assert(is_valid, [_refuse(site, "a length beyond the values")]))

    def _check_finite(self, site: Site, values: Term, present: Term | None) -> None:
        """Refuse NaN and infinity where training and `penstock.predict` refuse them."""
        if site.name not in self._finite:
            return
        allows_nan, allows_inf = self._finite[site.name]
        is_good = tf.math.is_finite(values)
        if allows_nan or present is not None:
            is_good = is_good | tf.math.is_nan(values)
        if allows_inf:
            is_good = is_good | tf.math.is_inf(values)
        message = _refuse(site, "expected finite numbers, as in training, got NaN or infinity")
        site.check(tf.debugging.Assert(tf.reduce_all(is_good), [message]))


def _refuse(site: Site, what: str) -> str:
    return f"input {site.name}: {what}"  # TensorFlow escapes quotes


def encode_rows(inputs: Mapping[str, RawInput], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as nested lists by tensor, as TensorFlow Serving takes them: bytes as `{"b64": "…"}`.

    `rows`: rows as dicts of values by field, with None for a missing value.
    """
    return {name: _ENCODERS[each.part](each, rows) for name, each in inputs.items()}


def _encode_values(tensor: RawInput, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    missing: Any = tensor.missing if tensor.dtype == "string" else float("nan")
    values = [row.get(tensor.field) for row in rows]
    return [missing if value is None else _as_json(value) for value in values]


def _encode_arrays(tensor: RawInput, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    zeros = np.zeros([dim or 0 for dim in tensor.shape], tensor.dtype)
    values = [row.get(tensor.field) for row in rows]
    return [(zeros if value is None else np.asarray(value)).tolist() for value in values]


def _encode_lists(tensor: RawInput, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return lists that are padded to the longest."""
    lists = [_list(row.get(tensor.field)) for row in rows]
    most = max([1, *map(len, lists)])
    inner = tensor.shape[1:]
    if not inner:
        zero = "" if tensor.dtype == "string" else 0
        return [[*map(_as_json, each), *[zero] * (most - len(each))] for each in lists]
    width = inner[0] or max([1, *(len(step) for each in lists for step in each)])
    zero = "" if tensor.dtype == "string" else 0
    return [
        [
            [*map(_as_json, step), *[zero] * (width - len(step))]
            for step in [*map(_list, each), *[[]] * (most - len(each))]
        ]
        for each in lists
    ]


def _encode_step_lengths(tensor: RawInput, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    lists = [_list(row.get(tensor.field)) for row in rows]
    most = max([1, *map(len, lists)])
    return [[*(len(step) for step in each), *[0] * (most - len(each))] for each in lists]


_Encode: TypeAlias = Callable[[RawInput, Sequence[Mapping[str, Any]]], list[Any]]
_ENCODERS: Final[Mapping[Part, _Encode]] = {
    "value": _encode_values,
    "array": _encode_arrays,
    "list": _encode_lists,
    "length": lambda tensor, rows: [len(_list(row.get(tensor.field))) for row in rows],
    "step_length": _encode_step_lengths,
    "present": lambda tensor, rows: [row.get(tensor.field) is not None for row in rows],
}


def _list(value: Any) -> list[Any]:
    return [] if value is None else list(value)


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, np.datetime64):
        return int(value.astype(np.int64))  # the stored number
    return value.item() if isinstance(value, np.generic) else value
