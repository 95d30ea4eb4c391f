"""One field in a generated program: its variables, its constants, and its stored values as tensors.

In: calls from the modules that write transforms as operations. Out: statements, feature descriptions by key,
and terms for the stored values: one value or array per record, or lists.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, NoReturn, Protocol, TypeAlias

import numpy as np

from penstock.codegen.program import StatementBlock, Term
from penstock.errors import OptionError
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.array import Tensor
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.transform.padding import count_levels
from penstock.transform.vocabulary import Entry, as_bytes

LONGEST_LIST: Final = 1000
"""Maximum length of a vocabulary written into the code; a longer one is read from the pipeline's file."""

tf: Final = Term.name("tf")

Lack: TypeAlias = Literal["refuse", "fill", "mark"]
"""How to treat records without a value: raise an error, fill in the default, or also mark them."""


class Stored(NamedTuple):
    """Values of a field, one value or array per record, and a mask of the records that have one, or None."""

    values: Term
    present: Term | None


class ValueReader(Protocol):
    """Reads the values of fields from something else than serialized records."""

    def read_values(self, site: Site, lack: Lack, default: Any) -> Stored:
        """Return one value or array per record, in the type of the field."""

    def read_ragged(self, site: Site) -> Term:
        """Return lists of one value per record, or of none for a record without a value."""

    def read_lists(self, site: Site) -> Term:
        """Return lists of values or steps as a ragged tensor."""


# Names that generated programs use for other things.
_RESERVED: Final = ("tf", "json", "pathlib", "len", "prepare", "serialized", "parsed", "steps", "dataset")
_FUNCTIONS: Final = (
    *("find_brightness", "mark_inverted", "read_segment", "read_chunk", "find_part"),
    *("read_orientation", "turn_upright"),
)
_CONSTANTS: Final = (
    "FILES",
    "COMPRESSIONS",
    "BATCH_SIZE",
    "SHUFFLE",
    "SEED",
    "SHUFFLE_RECORDS",
    "FEATURES",
    "CONTEXT_FEATURES",
    "STEP_FEATURES",
    "PIPELINE",
    "PIPELINE_FILE",
)


class Names:
    """Makes unique identifiers for the variables and constants of a program."""

    def __init__(self) -> None:
        self._taken = {*keyword.kwlist, *keyword.softkwlist, *_RESERVED, *_FUNCTIONS, *_CONSTANTS}

    def take(self, name: str) -> str:
        """Return an identifier that resembles a name and is not taken yet."""
        plain = re.sub(r"[^0-9a-zA-Z]+", "_", name).strip("_") or "field"
        stem = plain if plain[0].isalpha() else f"field_{plain}"
        found, number = stem, 2
        while found in self._taken:
            found, number = f"{stem}_{number}", number + 1
        self._taken.add(found)
        return found


@dataclass
class Page:
    """The parts of a program that all fields share.

    Attributes:
        names: Identifiers in use.
        top: Constants and lookup tables.
        functions: Functions that `prepare` calls, by name.
        body: Body of `prepare`, the function that makes a batch.
        features: Feature descriptions by key, of Examples or of the context of SequenceExamples.
        steps: Feature descriptions by key, of feature lists.
        rows: Number of records of every batch; None if it varies.
        uses_file: Whether the program reads the pipeline's JSON file.
        reader: Reads the values of fields; None for serialized records.
        most_values: Number of values of a vocabulary that the program contains; it reads longer ones from
            the pipeline's JSON file.
    """

    names: Names = field(default_factory=Names)
    top: StatementBlock = field(default_factory=StatementBlock)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    body: StatementBlock = field(default_factory=StatementBlock)
    features: dict[str, Term] = field(default_factory=dict)
    steps: dict[str, Term] = field(default_factory=dict)
    rows: int | None = None
    uses_file: bool = False
    reader: ValueReader | None = None
    most_values: int = LONGEST_LIST


class Site:
    """One field in a program; `variable` is the name of the variable that holds its value."""

    def __init__(self, page: Page, name: str, field: Field) -> None:
        self.page = page
        self.name = name
        self.field = field
        self.variable = page.names.take(name.lower())

    def parse(self, feature: Term) -> Term:
        """Parse the field by a feature description; return the term for its values."""
        key = self.field.wire_key(self.name)
        if self.field.is_feature_list:
            self.page.steps[key] = feature
            return self.bind(Term.name("steps")[key])
        self.page.features[key] = feature
        return self.bind(Term.name("parsed")[key])

    def bind(self, value: Any) -> Term:
        """Assign a value to the variable of the field."""
        return self.page.body.bind(self.variable, value)

    def bind_extra(self, suffix: str, value: Any) -> Term:
        """Assign a value to a further variable of the field."""
        return self.page.body.bind(self.page.names.take(f"{self.variable}_{suffix}"), value)

    def check(self, assertion: Term) -> None:
        """Add an assertion."""
        self.page.body.execute(assertion)

    def reshape(self, value: Term, shape: Sequence[int | None]) -> Term:
        """Reshape a value to one array of a shape per record."""
        return tf.reshape(value, [self.page.rows or -1, *shape])

    def shape(self, value: Term, *dims: int | None) -> Term:
        """Set the static shape of a value, which TensorFlow cannot infer."""
        return tf.ensure_shape(value, [self.page.rows, *dims])

    def fix(self, value: Term, *dims: int | None) -> Term:
        """Set the static shape of a value if all batches have the same number of records."""
        return value if self.page.rows is None else self.shape(value, *dims)

    def define_constant(self, word: str, value: Any) -> Term:
        """Define a constant whose name ends with a word; return the term for it."""
        name = f"{self.variable.upper()}_{word}"
        return self.page.top.define_constant(self.page.names.take(name), value)

    def define_table(self, values: tuple[Entry, ...], first: int, unknown: int, *path: str) -> Term:
        """Define a lookup table from values to codes; return the term for it.

        `path`: path of the values in the JSON form of the transform.
        """
        names, top = self.page.names, self.page.top
        name = names.take(self.variable.upper())
        is_text = not isinstance(values[0], int)
        plain = _plain_texts(values) if is_text else list(values)
        source = None
        if len(values) > self.page.most_values and isinstance(plain[0], int | str):
            self.page.uses_file = True
            source = Term.name("PIPELINE")["transforms"][self.name]
            for key in path:
                source = source[key]
        given = top.define_constant(name, plain, source)
        keys = tf.constant(given) if is_text else tf.constant(given, tf.int64)
        codes = tf.range(first, first + len(values))
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, codes), default_value=unknown
        )
        return top.bind(names.take(f"{name}_TABLE"), table)

    def refuse(self, expected: str, got: str) -> NoReturn:
        """Raise the error for a transform that has no equivalent in TensorFlow operations."""
        raise refuse_field(self.name, expected, got)


def refuse_field(name: str, expected: str, got: str) -> OptionError:
    """Return the error for a field that TensorFlow operations cannot produce."""
    return OptionError(
        f"field {name!r} as TensorFlow operations",
        field=name,
        expected=expected,
        got=got,
        advice="Use loader(…).to_tf(), which runs Penstock's own transforms, or leave the field out.",
    )


def _plain_texts(values: tuple[Entry, ...]) -> list[Any]:
    """Return the values as strings if all are valid text, else as stored bytes."""
    if all(
        isinstance(value, str) and value.encode("utf-8", "replace") == as_bytes(value) for value in values
    ):
        return list(values)
    return [as_bytes(value) for value in values]


_KINDS: Final = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
_ZEROS: Final[dict[str, Any]] = {"int64": 0, "float": 0.0, "bytes": ""}
# Types that tf.io.decode_raw does not support, with supported types of the same width.
_DECODED: Final = {"uint32": "int32", "uint64": "int64", "float16": "uint16", "bool": "uint8"}


def read_values(site: Site, lack: Lack, default: Any = None) -> Stored:
    """Return one value or array per record.

    `lack`: how to treat records without a value, if the field is optional. `default`: value for such records
    instead of the field's default, in its stored representation.
    """
    if site.page.reader is not None:
        return site.page.reader.read_values(site, lack, default)
    field, kind = site.field, _KINDS[site.field.kind]
    shape = list(field.shape) if isinstance(field, Tensor) and field.kind != "bytes" else []
    if not field.optional or lack == "refuse":
        value = site.parse(tf.io.FixedLenFeature(shape, kind))
        return Stored(_convert(site, value, is_filled=False), None)
    if default is None:
        default = find_default(field)
    if lack == "fill" and (default is not None or not shape):
        fill = _ZEROS[field.kind] if default is None else default
        value = site.parse(tf.io.FixedLenFeature(shape, kind, default_value=fill))
        return Stored(_convert(site, value, is_filled=True), None)
    rows = site.parse(tf.io.RaggedFeature(kind))
    present = site.bind_extra("present", rows.row_lengths() > 0) if lack == "mark" else None
    if not shape:
        fill = _ZEROS[field.kind] if default is None else default
        value = site.bind(rows.to_tensor(fill, shape=[None, 1])[:, 0])
        return Stored(_convert(site, value, is_filled=True), present)
    value = rows.to_tensor(shape=[None, field.num_values])
    if default is not None and present is not None:
        # Each element may have its own default, and to_tensor accepts only one value.
        value = tf.where(present[:, tf.newaxis], value, np.ravel(default).tolist())
    value = site.bind(site.reshape(value, shape))
    return Stored(_convert(site, value, is_filled=True), present)


def read_ragged(site: Site) -> Term:
    """Return a ragged tensor with one value per record, and none for a record without a value."""
    if site.page.reader is not None:
        return site.page.reader.read_ragged(site)
    return site.parse(tf.io.RaggedFeature(_KINDS[site.field.kind]))


def read_lists(site: Site) -> Term:
    """Return lists of values or steps as a ragged tensor; a record without a list gets an empty one."""
    field = site.field
    if not isinstance(field, SequenceField):
        raise TypeError(f"expected a sequence field, got {field!r}")
    if field.default:
        site.refuse("no default, as TensorFlow reads a missing list as empty", f"default={field.default!r}")
    if site.page.reader is not None:
        return site.page.reader.read_lists(site)
    lists = site.parse(tf.io.RaggedFeature(_KINDS[field.kind], row_splits_dtype=tf.int64))
    if not field.is_feature_list or count_levels(field) == 2:
        return lists
    if field.shape == ():
        return site.bind(lists.merge_dims(1, 2))
    steps = tf.reshape(lists.flat_values, [-1, field.num_step_values])
    return site.bind(tf.RaggedTensor.from_row_splits(steps, lists.row_splits))


def _convert(site: Site, value: Term, *, is_filled: bool) -> Term:
    """Convert stored values to the type and shape of the field."""
    field = site.field
    if not isinstance(field, Number | Tensor):
        return value
    if field.kind == "bytes":
        return _decode(site, value, field, is_filled=is_filled)
    if field.dtype == "uint64":
        return site.bind(tf.bitcast(value, tf.uint64))
    return (
        value if field.dtype in ("int64", "float32") else site.bind(tf.cast(value, getattr(tf, field.dtype)))
    )


def _decode(site: Site, value: Term, field: Number | Tensor, *, is_filled: bool) -> Term:
    decoded = _DECODED.get(field.dtype, field.dtype)
    num_bytes = field.num_bytes if isinstance(field, Tensor) else 8
    if is_filled and field.default is None:
        # With a fixed length, an empty string decodes to zeros.
        value = tf.io.decode_raw(value, getattr(tf, decoded), fixed_length=num_bytes)
    else:
        value = tf.io.decode_raw(value, getattr(tf, decoded))
    if field.dtype == "bool":
        value = tf.cast(value, tf.bool)
    elif decoded != field.dtype:
        value = tf.bitcast(value, getattr(tf, field.dtype))
    shape = field.shape if isinstance(field, Tensor) else ()
    return site.bind(site.reshape(value, shape))


def find_default(field: Field) -> Any:
    """Return the default of the field in its stored representation, or None."""
    default = field.default
    if default is None or not isinstance(field, Tensor | Number):
        return default
    if field.kind == "bytes":
        return np.asarray(default, np.dtype(field.dtype).newbyteorder("<")).tobytes()
    kind = np.int64 if field.kind == "int64" else np.float32
    return np.asarray(default).astype(kind).tolist() if isinstance(field, Tensor) else default
