"""Read `Example` and `SequenceExample` with protobuf itself: what the wire readers are compared with.

The messages are built here, in a separate pool, so that they never collide with the messages of TensorFlow.
Needs protobuf 7.34 or later: its limits changed there (lengths of over five bytes, field 0 in a group).
"""

import struct
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

_TYPE = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "penstock.oracle"

Value = tuple[str | None, list[Any]]
"""Kind and values of a feature: bytes, the uint32 bit patterns of the floats, or ints."""


def _add_message(file: descriptor_pb2.FileDescriptorProto, name: str) -> descriptor_pb2.DescriptorProto:
    entry = file.message_type.add()
    entry.name = name
    return entry


def _add_field(
    owner: descriptor_pb2.DescriptorProto,
    number: int,
    name: str,
    kind: str | int,
    repeated: bool = False,
    packed: bool = False,
) -> descriptor_pb2.FieldDescriptorProto:
    field = owner.field.add()
    field.name = name
    field.number = number
    field.label = _TYPE.LABEL_REPEATED if repeated else _TYPE.LABEL_OPTIONAL
    if isinstance(kind, str):
        field.type = _TYPE.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    else:
        field.type = kind
    if packed:
        field.options.packed = True
    return field


def _add_map(owner: descriptor_pb2.DescriptorProto, name: str, value: str) -> None:
    """Give `owner` a field 1 that is a map from string to the message `value`."""
    entry = owner.nested_type.add()
    entry.name = "".join(word.capitalize() for word in name.split("_")) + "Entry"
    entry.options.map_entry = True
    _add_field(entry, 1, "key", _TYPE.TYPE_STRING)
    _add_field(entry, 2, "value", value)
    _add_field(owner, 1, name, f"{owner.name}.{entry.name}", repeated=True)


def _describe() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="oracle.proto", package=_PACKAGE, syntax="proto3")
    _add_field(_add_message(file, "BytesList"), 1, "value", _TYPE.TYPE_BYTES, repeated=True)
    _add_field(_add_message(file, "FloatList"), 1, "value", _TYPE.TYPE_FLOAT, repeated=True, packed=True)
    _add_field(_add_message(file, "Int64List"), 1, "value", _TYPE.TYPE_INT64, repeated=True, packed=True)
    feature = _add_message(file, "Feature")
    feature.oneof_decl.add().name = "kind"
    for number, kind in ((1, "bytes"), (2, "float"), (3, "int64")):
        _add_field(feature, number, f"{kind}_list", f"{kind.capitalize()}List").oneof_index = 0
    _add_map(_add_message(file, "Features"), "feature", "Feature")
    _add_field(_add_message(file, "FeatureList"), 1, "feature", "Feature", repeated=True)
    _add_map(_add_message(file, "FeatureLists"), "feature_list", "FeatureList")
    _add_field(_add_message(file, "Example"), 1, "features", "Features")
    sequence = _add_message(file, "SequenceExample")
    _add_field(sequence, 1, "context", "Features")
    _add_field(sequence, 2, "feature_lists", "FeatureLists")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_describe())


def _message_class(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Example: Any = _message_class("Example")
SequenceExample: Any = _message_class("SequenceExample")


class RefusedError(ValueError):
    """protobuf does not take these bytes."""


def protobuf_example(payload: bytes) -> dict[str, Value]:
    """Return kind and values of each feature of an `Example`, as protobuf reads it."""
    return _read_features(_parse(Example, payload).features)


def protobuf_sequence_example(payload: bytes) -> tuple[dict[str, Value], dict[str, list[Value]]]:
    """Return the context and the feature lists of a `SequenceExample`, as protobuf reads it."""
    parsed = _parse(SequenceExample, payload)
    lists = parsed.feature_lists.feature_list
    return _read_features(parsed.context), {
        key: [_read_feature(step) for step in lists[key].feature] for key in lists
    }


def _parse(message_class: Any, payload: bytes) -> Any:
    try:
        parsed = message_class.FromString(payload)
    except message.DecodeError as error:
        raise RefusedError(str(error)) from None
    parsed.DiscardUnknownFields()
    return parsed


def _read_features(features: Any) -> dict[str, Value]:
    return {key: _read_feature(features.feature[key]) for key in features.feature}


def _read_feature(feature: Any) -> Value:
    name = feature.WhichOneof("kind")
    if name is None:
        return None, []
    kind = name.removesuffix("_list")
    values = getattr(feature, name)
    return kind, _float_bits(values) if kind == "float" else list(values.value)


def _float_bits(values: Any) -> list[int]:
    """Return the bits of the floats. Asking for a value would make a double of it and quieten a NaN."""
    num_values = len(values.value)
    packed = values.SerializeToString()
    return list(struct.unpack(f"<{num_values}I", packed[len(packed) - 4 * num_values :]))
