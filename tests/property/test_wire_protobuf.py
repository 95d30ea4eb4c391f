"""The plain readers and writers against protobuf: alike on every payload, but for a closed list."""

import random
import struct
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_case import each_case
from oracle_differences import without_skipped
from oracle_protobuf import (
    Example,
    RefusedError,
    SequenceExample,
    protobuf_example,
    protobuf_sequence_example,
)
from oracle_wire import plain, wire_example, wire_sequence_example
from random_payloads import mutate, random_payload
from wire.example import Feature, read_example, read_sequence_example, write_example, write_sequence_example
from wire.example import SequenceExample as Sequence
from wire.fields import WireError, write_delimited

READERS: dict[str, tuple[Callable[..., Any], Callable[[bytes], Any]]] = {
    "Example": (wire_example, protobuf_example),
    "SequenceExample": (wire_sequence_example, protobuf_sequence_example),
}
STRICT_REASONS = {"varint_overflow", "duplicate_key", "repeated_message"}


def floats_of(bits: list[int]) -> "array[float]":
    return array("f", struct.pack(f"={len(bits)}I", *bits))


features = st.one_of(
    st.just(Feature(None, [])),
    st.builds(Feature, st.just("bytes"), st.lists(st.binary(max_size=20), max_size=5)),
    st.builds(Feature, st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5)),
    st.builds(Feature, st.just("float"), st.lists(st.integers(0, 2**32 - 1), max_size=5).map(floats_of)),
)
feature_maps = st.dictionaries(st.text(max_size=10), features, max_size=5)
sequences = st.builds(
    Sequence, feature_maps, st.dictionaries(st.text(max_size=10), st.lists(features, max_size=3), max_size=3)
)


def fill(message: Any, feature: Feature) -> None:
    """Set a protobuf `Feature`; floats by their bytes, since assigning one would quieten a NaN."""
    if feature.kind is None:
        message.SetInParent()
    elif feature.kind == "float":
        message.float_list.SetInParent()
        if feature.values:
            packed = struct.pack(f"<{len(feature.values)}I", *plain(feature)[1])
            message.float_list.MergeFromString(b"\x0a" + bytes([len(packed)]) + packed)
    else:
        target = getattr(message, f"{feature.kind}_list")
        target.SetInParent()
        target.value.extend(feature.values)


def protobuf_bytes(example: Sequence) -> bytes:
    message = SequenceExample()
    for key, feature in example.context.items():
        fill(message.context.feature[key], feature)
    for key, steps in example.feature_lists.items():
        message.feature_lists.feature_list[key].SetInParent()
        for step in steps:
            fill(message.feature_lists.feature_list[key].feature.add(), step)
    return bytes(message.SerializeToString())


@settings(max_examples=150)
@given(feature_maps)
def test_example_written_by_wire_is_read_alike_by_protobuf_and_wire(values: dict[str, Feature]) -> None:
    payload = write_example(values)
    assert protobuf_example(payload) == {key: plain(feature) for key, feature in values.items()}
    assert read_example(payload, strict=True) == values


@settings(max_examples=150)
@given(feature_maps)
def test_example_written_by_protobuf_is_read_by_wire_and_has_the_same_bytes(
    values: dict[str, Feature],
) -> None:
    message = Example()
    for key, feature in values.items():
        fill(message.features.feature[key], feature)
    payload = message.SerializeToString()
    read = read_example(payload, strict=True)
    assert read == values
    assert write_example(read) == payload  # in the order in which protobuf wrote them, which is its own


@settings(max_examples=150)
@given(sequences)
def test_sequence_example_passes_between_wire_and_protobuf_unchanged(example: Sequence) -> None:
    payload = write_sequence_example(example)
    context, lists = protobuf_sequence_example(payload)
    assert context == {key: plain(feature) for key, feature in example.context.items()}
    assert lists == {key: [plain(step) for step in steps] for key, steps in example.feature_lists.items()}
    assert read_sequence_example(payload, strict=True) == example

    theirs = protobuf_bytes(example)
    read = read_sequence_example(theirs, strict=True)
    assert read == example
    assert write_sequence_example(read) == theirs


def compare(payload: bytes, root: str) -> str:
    """Hold wire and protobuf against each other on one payload and say which case it was."""
    wire, protobuf = READERS[root]
    try:
        ours = wire(payload)
    except WireError as error:
        ours = error
    try:
        theirs = protobuf(payload)
    except RefusedError:
        assert isinstance(ours, WireError), "protobuf refuses what wire takes"
        return "both refuse"

    # protobuf took it: then it must have read the rest without the fields and entries it skips.
    rest, differences = without_skipped(payload, root, drop_odd_entries=True)
    assert wire(rest) == protobuf(rest) == theirs
    if isinstance(ours, WireError):
        assert ours.reason == "wrong_wire_type"
        assert differences.wrong_wire_types > 0
        return "wrong wire type"
    assert differences.wrong_wire_types == 0
    if differences.odd_entries:
        kept, _ = without_skipped(payload, root, drop_odd_entries=False)
        assert wire(kept) == protobuf(kept) == ours
        return "entry kept"
    assert ours == theirs
    return "alike"


def compare_strict(payload: bytes, root: str) -> str:
    """Check that `strict` changes nothing but to refuse for a specific reason."""
    wire, _ = READERS[root]
    try:
        strict = wire(payload, strict=True)
    except WireError as error:
        if error.reason in STRICT_REASONS:
            return error.reason
        with pytest.raises(WireError):
            wire(payload)
        return "refused anyway"
    assert strict == wire(payload)
    return "same"


@pytest.mark.parametrize("root", READERS)
@pytest.mark.parametrize("seed", range(4))
def test_odd_and_damaged_payloads_are_read_alike_or_differ_by_the_closed_list(root: str, seed: int) -> None:
    rng = random.Random(f"{root} {seed}")  # noqa: S311
    cases: Counter[str] = Counter()
    strict_cases: Counter[str] = Counter()
    for _ in range(500):
        form = random_payload(rng, root)
        for payload in (form, mutate(rng, form), mutate(rng, form)):
            try:
                cases[compare(payload, root)] += 1
                strict_cases[compare_strict(payload, root)] += 1
            except AssertionError as error:
                error.add_note(f"{root}.FromString(bytes.fromhex({payload.hex()!r}))")
                raise
    # Each case must have come up, or the comparison says less than it seems to.
    assert set(cases) == {"alike", "both refuse", "wrong wire type", "entry kept"}
    assert min(cases.values()) >= 10
    assert set(strict_cases) == {"same", "refused anyway"} | STRICT_REASONS


@pytest.mark.parametrize("root", READERS)
def test_payload_cut_at_every_byte_is_read_alike_or_refused_by_both(root: str) -> None:
    rng = random.Random(7)  # noqa: S311
    for _ in range(20):
        payload = random_payload(rng, root)
        for stop in range(len(payload) + 1):
            compare(payload[:stop], root)


def padded(value: int, num_bytes: int) -> bytes:
    """Write a varint in exactly `num_bytes` bytes."""
    groups = [value >> 7 * index & 0x7F for index in range(num_bytes)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def nested(content: bytes, numbers: list[int]) -> bytes:
    """Wrap content into the messages that these field numbers lead to."""
    for number in reversed(numbers):
        content = write_delimited(number, content)
    return content


# From the outermost message down to the list of one step of a feature list.
LEVELS = [[], [2], [2, 1], [2, 1, 2], [2, 1, 2, 1], [2, 1, 2, 1, 3]]
FORMS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "varint": (lambda n: b"\x48" + padded(1, n), 10),
    "tag": (lambda n: padded(9 << 3, n) + b"\x01", 5),
    "length": (lambda n: b"\x4a" + padded(3, n) + b"abc", 5),
    "groups": (lambda n: b"\x4b" * n + b"\x4c" * n, 100),
    "varint in a group": (lambda n: b"\x4b\x08" + padded(1, n) + b"\x4c", 10),
    "tag in a group": (lambda n: b"\x4b" + padded(8, n) + b"\x01\x4c", 5),
    "end tag": (lambda n: b"\x4b" + padded(9 << 3 | 4, n), 5),
    "length in a group": (lambda n: b"\x4b\x0a" + padded(3, n) + b"abc\x4c", 5),
}


@pytest.mark.parametrize("form", FORMS)
@each_case("level", range(len(LEVELS)))
def test_limits_at_every_level_equal_protobuf(form: str, level: int) -> None:
    write, limit = FORMS[form]
    if form == "groups":
        limit -= level  # messages count as well
    for size in range(max(1, limit - 3), limit + 4):
        case = compare(nested(write(size), LEVELS[level]), "SequenceExample")
        assert (case != "both refuse") == (size <= limit), size
