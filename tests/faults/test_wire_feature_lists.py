"""W30: the feature lists of a SequenceExample in every spelling that protobuf reads; and their faults."""

import pytest

import penstock as ps
from core_reading import check_payloads, expect_outcomes, read_outcomes
from oracle_protobuf import protobuf_sequence_example
from penstock.decode.losses import describe_malformed
from penstock.errors import CorruptRecordError
from raising import containing, raises_with
from record_files import open_split, write_plain
from sequence_rows import STEPS, feature_lists, open_each_way, record, steps_of
from wire.example import write_feature
from wire.fields import write_delimited as delimited
from wire_rows import (
    CUT,
    DUPLICATE,
    FLOAT_SIZE,
    OVERRUN,
    WRONG_TYPE,
    entry,
    example,
    features,
    floats,
    ints,
    named,
)

STEP = delimited(1, write_feature(ints(1)))
TWO = delimited(1, write_feature(ints(2)))
ODD = {
    "value before key": feature_lists(delimited(2, STEP) + delimited(1, b"a")),
    "a list in two values": feature_lists(entry("a", STEP) + delimited(2, TWO)),
    "a key twice": feature_lists(entry("a", TWO + TWO), entry("a", STEP)),
    "two maps": feature_lists(entry("a", TWO)) + feature_lists(entry("a", STEP)),
    "lists before context": feature_lists(entry("a", STEP)) + features(entry("b", write_feature(ints(9)))),
    "unknown fields": feature_lists(entry("a", b"\x48\x01" + STEP + b"\x4b\x4c")) + b"\x4a\x01x",
    "no value": feature_lists(delimited(1, b"a")),
    "a step of two lists": feature_lists(
        entry("a", delimited(1, write_feature(floats(0)) + write_feature(ints(1))))
    ),
}


@pytest.mark.parametrize("payload", named(ODD))
def test_w30_odd_spellings_of_lists_are_read_as_protobuf_reads_them(tmp_path, payload):
    context, lists = protobuf_sequence_example(payload)
    assert read_outcomes([payload], ["a", "b"], ["a", "b"]) == [expect_outcomes(context, lists)]
    sound = record(a=[ints(5, 6)])
    path = write_plain(tmp_path / "odd.tfrecord", [sound, payload])
    for split in open_each_way(path, a=STEPS):
        assert steps_of(split, "a") == [[[5, 6]], [values for _, values in lists["a"]]]
    assert not check_payloads([payload]).refused_lists


@pytest.mark.parametrize("name", ["a key twice", "two maps"])
def test_w30_a_list_that_stands_there_twice_is_refused_if_strict(tmp_path, name):
    path = write_plain(tmp_path / "twice.tfrecord", [record(a=[ints(1)]), ODD[name]])
    split = open_split(path, options=ps.options.ReadOptions(strict=True))
    with raises_with(CorruptRecordError, record=1, what=containing(describe_malformed(DUPLICATE))):
        split[1]
    assert read_outcomes([ODD[name]], [], ["a"], strict=True)[0].status == DUPLICATE


BROKEN = {
    "lists as varint": (b"\x10\x01", WRONG_TYPE, "payload"),
    "entry as varint": (delimited(2, b"\x08\x01"), WRONG_TYPE, "payload"),
    "step as varint": (feature_lists(entry("a", b"\x08\x01")), WRONG_TYPE, "a"),
    "step that overruns": (feature_lists(entry("a", b"\x0a\x05\x1a")), OVERRUN, "a"),
    "integers cut": (feature_lists(entry("a", delimited(1, b"\x1a\x03\x0a\x01\x80"))), CUT, "a"),
    "floats of six bytes": (
        feature_lists(entry("a", delimited(1, b"\x12\x08\x0a\x06" + bytes(6)))),
        FLOAT_SIZE,
        "a",
    ),
    "lists that overrun": (b"\x12\x05\x0a", OVERRUN, "payload"),
}


@pytest.mark.parametrize(("payload", "status", "field"), named(BROKEN))
def test_w30_broken_lists_are_refused_in_files_of_sequences_alone(tmp_path, payload, status, field):
    sound = record(a=[ints(1, 2)])
    path = write_plain(tmp_path / "broken.tfrecord", [sound, payload, sound])
    for split in open_each_way(path, a=STEPS):
        with pytest.raises(CorruptRecordError) as caught:
            split[1]
        assert (caught.value.record, caught.value.field, caught.value.offset) == (1, field, len(sound) + 16)
        assert [split[row]["a"][0].tolist() for row in (0, 2)] == [[1, 2], [1, 2]]
    checked = check_payloads([sound, payload, sound])
    assert {**checked.refused, **checked.refused_lists}[1].status == status
    # As a field that an Example does not know, all but what overruns may stand there.
    both = example(b=ints(1)) + payload
    (read,) = read_outcomes([both], ["b"])
    assert (read == expect_outcomes({"b": ("int64", [1])})) == (status != OVERRUN or field == "a")
