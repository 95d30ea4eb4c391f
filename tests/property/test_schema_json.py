"""Laws of the JSON form: nothing is lost on the way, and any document gives a schema or its error."""

import json
import math
from typing import Any, get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Field, Image, Number, Sequence, Tensor, Text
from penstock.schema.field import TensorDtype
from penstock.schema.scalar import ImageFormat
from penstock.schema.schema import Schema
from raising import containing

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32)
VALUES = {"int64": INTS, "float32": FLOATS, "string": TEXTS, "bytes": st.binary(max_size=8)}


def field_of(cls: type[Field], default: st.SearchStrategy[Any], **own: Any) -> st.SearchStrategy[Field]:
    # `schemas` gives the roles weight and id, which a schema has once.
    return st.builds(
        cls,
        role=st.sampled_from(["input", "target"]),
        default=st.none() | default,
        optional=st.booleans(),
        **{name: st.just(value) for name, value in own.items()},
    )


@st.composite
def numbers(draw: st.DrawFn) -> Field:
    dtype = draw(st.sampled_from(["float32", "int64"]))
    return draw(field_of(Number, VALUES[dtype], dtype=dtype))


@st.composite
def categories(draw: st.DrawFn) -> Field:
    dtype = draw(st.sampled_from(["string", "int64"]))
    values = draw(st.none() | st.lists(VALUES[dtype], min_size=1, max_size=5, unique=True))
    default = VALUES[dtype] if values is None else st.sampled_from(values)
    return draw(field_of(Category, default, dtype=dtype, values=values))


@st.composite
def sequences(draw: st.DrawFn) -> Field:
    dtype = draw(st.sampled_from(["int64", "float32", "string", "bytes"]))
    stored = draw(st.sampled_from(["feature", "feature_list"]))
    shape = () if stored == "feature" else draw(st.sampled_from([(), (1,), (3,), None]))
    item = VALUES[dtype]
    if shape != ():
        low, high = (0, 4) if shape is None else (shape[0], shape[0])
        item = st.lists(item, min_size=low, max_size=high)
    return draw(field_of(Sequence, st.lists(item, max_size=4), dtype=dtype, shape=shape, stored=stored))


@st.composite
def tensors(draw: st.DrawFn) -> Field:
    dtype = draw(st.sampled_from(get_args(TensorDtype)))
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    encoding = draw(st.sampled_from(["auto", "raw"] if dtype == "float64" else ["auto", "list", "raw"]))
    num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    raw = st.binary(min_size=num_bytes, max_size=num_bytes)

    def to_array(data: bytes) -> np.ndarray[Any, Any]:
        # A bool of other bits than 0 and 1 is none.
        bits = np.frombuffer(data, np.uint8) & 1 if dtype == "bool" else np.frombuffer(data, np.uint8)
        return bits.view(dtype).reshape(shape)

    return draw(field_of(Tensor, raw.map(to_array), shape=shape, dtype=dtype, encoding=encoding))


FIELDS = st.one_of(
    numbers(),
    categories(),
    sequences(),
    tensors(),
    field_of(Text, TEXTS),
    field_of(Bytes, VALUES["bytes"]),
    st.sampled_from([None, *get_args(ImageFormat)]).flatmap(
        lambda name: field_of(Image, VALUES["bytes"], format=name)
    ),
)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    fields = draw(st.dictionaries(TEXTS, FIELDS, max_size=6))
    schema = Schema(fields)
    if fields:
        schema = schema.with_roles(id=draw(st.none() | st.sampled_from(list(fields))))
    numeric = [
        name for name, field in fields.items() if isinstance(field, (Number, Tensor)) and name != schema.id
    ]
    return schema.with_roles(weight=draw(st.sampled_from(numeric))) if numeric else schema


@given(schemas())
def test_schema_through_json_text_is_the_same(schema):
    text = json.dumps(schema.to_json(), allow_nan=False)
    loaded = Schema.from_json(json.loads(text))
    assert loaded == schema
    assert list(loaded) == list(schema)
    assert loaded.fingerprint() == schema.fingerprint()
    assert loaded.to_json() == json.loads(text)


@given(schemas(), schemas())
def test_fingerprints_of_schemas_are_equal_where_they_are(one, other):
    assert (one.fingerprint() == other.fingerprint()) == (one == other)


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        ["number", "tensor", "sequence", "float32", "int64", "feature_list", "weight", "raw", "nan"]
    ),
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@st.composite
def damaged_forms(draw: st.DrawFn) -> object:
    """Replace one value of a valid JSON form."""
    form: Any = draw(schemas()).to_json()
    node, parents = form, []
    while isinstance(node, (dict, list)) and node and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        parents.append((node, key))
        node = node[key]
    if parents:
        parent, key = parents[-1]
        parent[key] = draw(DOCUMENTS)
    return form


@settings(max_examples=300)
@given(damaged_forms() | DOCUMENTS)
def test_any_document_gives_a_schema_or_an_error_with_the_path(document):
    fault = None
    try:
        schema = Schema.from_json(document)
    except SchemaError as error:
        fault = error
    if fault is None:
        assert Schema.from_json(schema.to_json()) == schema
    else:
        assert str(fault) == containing("schema", fault.field, fault.expected, fault.got)
        assert fault.field[0] == "$"
