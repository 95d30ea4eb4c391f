"""Sequence examples: context, feature lists, and where they differ from examples."""

import pytest

from oracle_protobuf import protobuf_sequence_example
from oracle_wire import wire_sequence_example
from raising import mentions, raises_with
from wire.example import (
    Feature,
    SequenceExample,
    read_sequence_example,
    write_feature,
    write_sequence_example,
)
from wire.fields import WireError, write_delimited

ONE = Feature("int64", [1])
TWO = Feature("int64", [2])
UNSET = Feature(None, [])


def feature_list(*steps: Feature) -> bytes:
    return b"".join(write_delimited(1, write_feature(step)) for step in steps)


def feature_lists(*entries: bytes) -> bytes:
    return write_delimited(2, b"".join(write_delimited(1, entry) for entry in entries))


def entry(name: bytes, *values: bytes) -> bytes:
    return write_delimited(1, name) + b"".join(write_delimited(2, value) for value in values)


def test_sequence_example_has_the_known_bytes_and_reads_back() -> None:
    example = SequenceExample({"c": ONE}, {"l": [ONE, UNSET]})
    payload = write_sequence_example(example)
    assert payload.hex() == "0a0c0a0a0a016312051a030a0101" + "12100a0e0a016c1209" + "0a051a030a0101" + "0a00"
    assert read_sequence_example(payload) == example


@pytest.mark.parametrize(
    "example",
    [
        SequenceExample(),
        SequenceExample({"c": ONE}, {}),
        SequenceExample({}, {"no steps": []}),
        SequenceExample({}, {"short": [ONE], "long": [ONE, TWO, UNSET]}),
        SequenceExample({"same": ONE}, {"same": [Feature("bytes", [b"x", b""]), Feature("float", [])]}),
        SequenceExample({}, {"ragged": [Feature("float", [1.0] * n) for n in range(4)]}),
    ],
    ids=["empty", "context alone", "no steps", "lengths differ", "same name, kinds differ", "ragged"],
)
def test_sequence_example_of_any_shape_passes_through_wire_and_protobuf(example: SequenceExample) -> None:
    payload = write_sequence_example(example)
    assert read_sequence_example(payload) == example
    assert wire_sequence_example(payload) == protobuf_sequence_example(payload)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (feature_lists(entry(b"a", feature_list(ONE)), entry(b"a", feature_list(TWO))), {"a": [TWO]}),
        (feature_lists(entry(b"a", feature_list(ONE), feature_list(TWO))), {"a": [ONE, TWO]}),
        (feature_lists(entry(b"a", feature_list(ONE))) + feature_lists(entry(b"b")), {"a": [ONE], "b": []}),
        (feature_lists(entry(b"a", feature_list(ONE) + b"\x48\x01" + feature_list(TWO))), {"a": [ONE, TWO]}),
    ],
    ids=["duplicate key", "value twice", "feature lists twice", "unknown among steps"],
)
def test_feature_lists_in_odd_forms_are_read_as_protobuf_does(
    payload: bytes, expected: dict[str, list[Feature]]
) -> None:
    assert read_sequence_example(payload).feature_lists == expected
    assert wire_sequence_example(payload) == protobuf_sequence_example(payload)


def test_unknown_field_in_a_feature_lists_entry_keeps_the_entry_where_protobuf_drops_it() -> None:
    payload = feature_lists(entry(b"a", feature_list(ONE)) + b"\x48\x01")
    assert read_sequence_example(payload).feature_lists == {"a": [ONE]}
    assert protobuf_sequence_example(payload) == ({}, {})


@pytest.mark.parametrize(
    ("payload", "facts"),
    [
        (b"\x08\x01", "0 SequenceExample.context LENGTH_DELIMITED VARINT"),
        (b"\x10\x01", "0 SequenceExample.feature_lists LENGTH_DELIMITED VARINT"),
        (feature_lists(entry(b"a", b"\x08\x01")), "9 FeatureList.feature LENGTH_DELIMITED VARINT"),
    ],
)
def test_known_field_of_a_wrong_wire_type_is_refused(payload: bytes, facts: str) -> None:
    with pytest.raises(WireError) as caught:
        read_sequence_example(payload)
    assert caught.value.reason == "wrong_wire_type"
    assert mentions(caught.value, facts)


@pytest.mark.parametrize(
    ("payload", "facts"),
    [
        (feature_lists(entry(b"a"), entry(b"a")), "7 key 'a'"),
        (feature_lists() + feature_lists(), "2 SequenceExample.feature_lists"),
        (b"\x0a\x00\x0a\x00", "2 SequenceExample.context"),
    ],
)
def test_sequence_example_with_repeated_parts_and_strict_is_refused(payload: bytes, facts: str) -> None:
    read_sequence_example(payload)
    with raises_with(WireError, facts):
        read_sequence_example(payload, strict=True)


def test_sequence_example_with_the_same_name_in_both_parts_and_strict_is_taken() -> None:
    example = SequenceExample({"a": ONE}, {"a": [TWO]})
    assert read_sequence_example(write_sequence_example(example), strict=True) == example


def test_step_with_an_integer_over_64_bits_and_strict_is_refused() -> None:
    step = write_delimited(1, write_delimited(3, b"\x08" + b"\xff" * 9 + b"\x02"))
    payload = feature_lists(entry(b"a", step))
    assert read_sequence_example(payload).feature_lists == {"a": [Feature("int64", [2**63 - 1])]}
    with raises_with(WireError, "64") as caught:
        read_sequence_example(payload, strict=True)
    assert caught.value.reason == "varint_overflow"
