"""Python code that reads a data set with TensorFlow, without Penstock.

In: paths of TFRecords and of a fitted pipeline, or a schema. Out: the text of a script that defines
`dataset`, or of a function that parses one record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.bridge.graph.program import find_source, make_program
from penstock.bridge.graph.site import find_default
from penstock.columns import Payload
from penstock.dataset import Dataset, open
from penstock.errors import OptionError, PayloadError
from penstock.foundation.wording import show
from penstock.jobs.check.inspect import read_schema
from penstock.jobs.given_dataset import Declaration
from penstock.read.dataset_files import declared_schema, list_files
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from penstock.settings.loading import GraphOptions
from penstock.storage.paths import PathLike
from penstock.transform.pipeline import Pipeline

_KIND_TYPES = {"int64": "tf.int64", "float": "tf.float32", "bytes": "tf.string"}
# Types that tf.io.decode_raw does not support, with a supported type of the same size.
_DECODED_AS = {"uint32": "int32", "uint64": "int64"}


def write_graph(
    paths: PathLike | Iterable[PathLike],
    pipeline: PathLike,
    split: str | None = None,
    declaration: Declaration | None = None,
    read: ReadOptions | None = None,
) -> str:
    """Return the code for the data set that `Split.to_tf_graph` returns.

    `pipeline`: the file that `Pipeline.save` wrote. The code does not contain long vocabularies: it reads
    them from a file of this name in its own folder. `split`: name of the split to read; by default "train",
    or the only split. `declaration`: types, shapes and roles of fields; by default, the manifest or the
    pipeline decides.
    """
    declaration, read = declaration or Declaration(), read or ReadOptions()
    given = [paths] if isinstance(paths, str | Path) else list(paths)  # type: ignore[arg-type]
    fitted = Pipeline.load(pipeline)
    given_types = declaration.fields or declaration.types
    is_declared = bool(given_types) or declared_schema(list_files(given).folders) is not None
    schema = read_schema(given, declaration, read) if is_declared else fitted.schema
    dataset = open(given, schema=schema, options=read)
    name = choose_split(dataset) if split is None else split
    source = find_source(dataset[name].as_source(), dataset.payload)
    return make_program(source, fitted, GraphOptions(), Path(pipeline).name).write()


def choose_split(dataset: Dataset) -> str:
    """Return the name of the split to train on: "train", or the only one."""
    names = dataset.splits
    if "train" in names or len(names) == 1:
        return "train" if "train" in names else names[0]
    got = ", ".join(map(show, names)) or "none"
    expected = "a split named 'train', or only one split"
    raise OptionError("splits", expected=expected, got=got, advice="Choose a split: `split=NAME`.")


def write_parser(schema: Schema, payload: Payload) -> str:
    """Return the code of a function that parses one record.

    An optional field without a default is returned with one additional dimension, of size 1, or of size 0 if
    the record lacks the field. A list that the record lacks is returned as an empty list.

    Example:
        >>> print(write_parser(Schema({"age": Number("int64")}), "example"))
        import tensorflow as tf
        <BLANKLINE>
        feature_description = {
            "age": tf.io.FixedLenFeature([], tf.int64),
        }
        <BLANKLINE>
        <BLANKLINE>
        def parse(serialized):
            values = tf.io.parse_single_example(serialized, feature_description)
            return {
                "age": values["age"],
            }
        <BLANKLINE>
    """
    if payload == "other":
        raise PayloadError("code for TensorFlow", expected="Examples", got="other payloads")
    features = {name: field for name, field in schema.items() if not field.is_feature_list}
    lists = {name: field for name, field in schema.items() if field.is_feature_list}
    lines = ["import tensorflow as tf", ""]
    if payload == "sequence_example" or lists:
        lines += _write_description("context_features", features)
        lines += _write_description("sequence_features", lists)
        call = "tf.io.parse_single_sequence_example(serialized, context_features, sequence_features)"
        parsed = "values, steps"
    else:
        lines += _write_description("feature_description", features)
        call, parsed = "tf.io.parse_single_example(serialized, feature_description)", "values"
    lines += ["", "", "def parse(serialized):", f"    {parsed} = {call}", "    return {"]
    lines += [f"        {quote(name)}: {_write_value(name, field)}," for name, field in schema.items()]
    return "\n".join([*lines, "    }", ""])


def _write_description(name: str, fields: Mapping[str, Field]) -> Iterator[str]:
    yield f"{name} = {{"
    for field_name, field in fields.items():
        yield f"    {quote(field.wire_key(field_name))}: {DESCRIPTIONS[type(field)](field)},"
    yield "}"


def _describe_sequence(field: Sequence) -> str:
    kind = _KIND_TYPES[field.kind]
    if field.shape is None:
        return f"tf.io.RaggedFeature({kind})"
    return f"tf.io.FixedLenSequenceFeature({list(field.shape)}, {kind}, allow_missing=True)"


def _describe_tensor(field: Tensor) -> str:
    return _describe_fixed(field, [] if field.kind == "bytes" else list(field.shape))


def _describe_scalar(field: Field) -> str:
    return _describe_fixed(field, [])


def _describe_fixed(field: Field, shape: list[int]) -> str:
    kind = _KIND_TYPES[field.kind]
    if not field.optional:
        return f"tf.io.FixedLenFeature({shape}, {kind})"
    if field.default is None:
        return f"tf.io.FixedLenSequenceFeature({shape}, {kind}, allow_missing=True)"
    return f"tf.io.FixedLenFeature({shape}, {kind}, default_value={_write_literal(find_default(field))})"


# The feature description of each type of field.
DESCRIPTIONS: dict[type[Field], Callable[[Any], str]] = {
    Number: _describe_scalar,
    Category: _describe_scalar,
    Date: _describe_scalar,
    Text: _describe_scalar,
    Image: _describe_scalar,
    Bytes: _describe_scalar,
    Sequence: _describe_sequence,
    Tensor: _describe_tensor,
}


def _write_value(name: str, field: Field) -> str:
    """Return the expression for the value of a field, with its type and shape."""
    source = "steps" if field.is_feature_list else "values"
    value = f"{source}[{quote(field.wire_key(name))}]"
    if not isinstance(field, Tensor | Number):
        return value
    shape = list(field.shape) if isinstance(field, Tensor) else []
    if field.kind == "bytes":
        decoded = _DECODED_AS.get(field.dtype, field.dtype)
        value = f"tf.io.decode_raw({value}, tf.{decoded})"
        if decoded != field.dtype:
            value = f"tf.bitcast({value}, tf.{field.dtype})"
        has_extra_dimension = field.optional and field.default is None
        return f"tf.reshape({value}, {[-1, *shape] if has_extra_dimension else shape})"
    if field.dtype == "uint64":
        return f"tf.bitcast({value}, tf.uint64)"
    return value if field.dtype in ("int64", "float32") else f"tf.cast({value}, tf.{field.dtype})"


def _write_literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_write_literal, value))}]"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return quote(value) if isinstance(value, str) else repr(value)


def quote(text: str) -> str:
    """Return a text as a Python literal, in double quotes if it is plain."""
    is_plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if is_plain else repr(text)
