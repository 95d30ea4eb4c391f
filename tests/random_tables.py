"""Random tables for the laws of encoding: schemas over all types of field, rows with values at the edges."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from encoded_rows import Cells, column_of
from penstock import fields as f
from penstock.columns import Columns
from penstock.schema.field import list_kind
from penstock.schema.schema import Schema

INT_EDGES = [0, 1, 127, 128, 16383, 16384, 2**31, 2**53 + 1, 2**63 - 1]
INTS = st.one_of(
    st.sampled_from(INT_EDGES + [-value for value in INT_EDGES] + [-(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
# 0, -0, 1, infinities, denormals, quiet and signalling NaNs with payloads
FLOAT_EDGES = [0, 1 << 31, 0x3F800000, 0x7F800000, 0xFF800000, 1, 0x807FFFFF, 0x7FC00000, 0x7F800001]
FLOAT_BITS = st.one_of(st.sampled_from(FLOAT_EDGES), st.integers(0, 2**32 - 1))
DOUBLE_EDGES = [0, 1 << 63, 1, 0x3FF0000000000000, 0x7FF0000000000000, 0x7FF0000000000001, 0xFFF8000000ABCDEF]
DOUBLE_BITS = st.one_of(st.sampled_from(DOUBLE_EDGES), st.integers(0, 2**64 - 1))
# Lengths at which the length of the string, of its list, of the feature or of the entry takes one byte more.
SIZES = st.one_of(
    st.integers(0, 20),
    st.integers(75, 130),
    st.integers(112, 120),
    st.integers(2**14 - 70, 2**14 + 2),
    st.sampled_from([0, 4096]),
)
STRINGS = st.one_of(
    st.binary(max_size=12), st.builds(lambda size, byte: bytes([byte]) * size, SIZES, st.integers(0, 255))
)
# An entry is written by a short cut up to 38 bytes of key.
KEYS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.builds(lambda size, last: "k" * size + last, st.integers(20, 42), st.sampled_from("ab")),
    st.sampled_from(["", "é" * 19, "é" * 19 + "x", "k" * 110, "k" * 119, "k" * 127, "k" * 128, "\0"]),
)
TENSOR_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64",
]  # fmt: skip
OPTIONAL = st.booleans()
SHAPES = st.lists(st.integers(1, 3), max_size=3).map(tuple)


@st.composite
def tensor_fields(draw: Any) -> f.Tensor:
    dtype = draw(st.sampled_from(TENSOR_DTYPES))
    encodings = ["raw"] if list_kind(dtype) is None else ["raw", "list"]
    return f.Tensor(draw(SHAPES), dtype, draw(st.sampled_from(encodings)), optional=draw(OPTIONAL))


FEATURES = st.one_of(
    st.builds(f.Number, st.sampled_from(["int64", "float32", "float64"]), optional=OPTIONAL),
    st.builds(f.Category, st.sampled_from(["int64", "string"]), optional=OPTIONAL),
    st.builds(f.Text, optional=OPTIONAL),
    st.builds(f.Bytes, optional=OPTIONAL),
    st.builds(f.Image, optional=OPTIONAL),
    st.builds(
        lambda dtype, optional: f.Sequence(dtype, optional=optional),
        st.sampled_from(["int64", "float32", "string", "bytes"]),
        OPTIONAL,
    ),
    tensor_fields(),
)
FEATURE_LISTS = st.builds(
    lambda dtype, shape, optional: f.Sequence(dtype, shape, "feature_list", optional=optional),
    st.sampled_from(["int64", "float32", "string", "bytes"]),
    st.sampled_from([(), (1,), (3,), None]),
    OPTIONAL,
)


def arrays(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Arrays of any bits that the type can have."""
    count = int(np.prod(shape, dtype=int))
    if dtype == "int64":
        return st.lists(INTS, min_size=count, max_size=count).map(
            lambda values: np.array(values, np.int64).reshape(shape)
        )
    if dtype in ("float32", "float64"):
        each, word = (FLOAT_BITS, np.uint32) if dtype == "float32" else (DOUBLE_BITS, np.uint64)
        return st.lists(each, min_size=count, max_size=count).map(
            lambda values: np.array(values, word).view(dtype).reshape(shape)
        )
    size = count * np.dtype(dtype).itemsize
    drawn = st.binary(min_size=size, max_size=size).map(lambda data: np.frombuffer(data, np.uint8))
    if dtype == "bool":
        return drawn.map(lambda data: (data & 1).view(np.bool_).reshape(shape))
    if dtype == "float16":  # becoming a float32 makes a NaN a quiet one
        return drawn.map(lambda data: (data.view(np.uint16) & 0xBFFF).view(np.float16).reshape(shape))
    return drawn.map(lambda data: data.view(dtype).reshape(shape))


def lists(field: f.Sequence, count: int | None) -> st.SearchStrategy[Any]:
    if field.kind == "bytes":
        return st.lists(STRINGS, min_size=count or 0, max_size=3 if count is None else count)
    if count is not None:
        return arrays(field.dtype, (count,))
    return st.integers(0, 20).flatmap(lambda size: arrays(field.dtype, (size,)))


def cells(field: f.Field) -> st.SearchStrategy[Any]:
    """Return what a row can have of a field."""
    if isinstance(field, f.Tensor):
        values = arrays(field.dtype, field.shape)
    elif isinstance(field, f.Sequence):
        one = lists(field, field.num_step_values if field.is_feature_list else None)
        values = st.lists(one, max_size=4) if field.is_feature_list else one
    elif isinstance(field, f.Number):
        values = arrays(field.dtype, ())
    else:
        values = arrays("int64", ()) if field.kind == "int64" else STRINGS
    return st.none() | values if field.optional else values


class Table(NamedTuple):
    schema: Schema
    cells: Cells
    columns: Columns
    num_rows: int


@st.composite
def tables(draw: Any, fields: Any = FEATURES, min_fields: int = 0) -> Table:
    keys = draw(st.lists(KEYS, unique=True, min_size=min_fields, max_size=5))
    schema = Schema({key: draw(fields) for key in keys})
    num_drawn = draw(st.integers(1, 4))
    # Room for all rows is made after 64 of them.
    num_rows = draw(st.sampled_from([0, num_drawn, num_drawn, 66]))
    made: Cells = {}
    for name, field in schema.items():
        few = [draw(cells(field)) for _ in range(num_drawn)]
        made[name] = [few[row % num_drawn] for row in range(num_rows)]
    gap = draw(st.sampled_from([b"", b"gap"]))
    columns = {name: column_of(field, made[name], gap) for name, field in schema.items()}
    return Table(schema, made, columns, num_rows)
