"""W30: SequenceExamples: steps that differ, that are none, that are unset; lists of different lengths; ELWC."""

import numpy as np
import pytest

import penstock as ps
from core_reading import check_payloads, expect_outcomes, read_outcomes
from oracle_protobuf import RefusedError, protobuf_sequence_example
from penstock.errors import CorruptRecordError, FieldError, MissingFieldError
from penstock.schema.schema import Schema
from penstock.types import Bytes, Ragged
from penstock.wire.feature import Feature, write_feature
from penstock.wire.field import write_delimited as delimited
from penstock.wire.sequence import SequenceExample, write_sequence_example
from record_files import open_split, write_plain
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
    strings,
)

UNSET = Feature(None, [])
STEPS = ps.fields.Sequence("int64", None, "feature_list")


def record(context=None, **lists: list[Feature]) -> bytes:
    return write_sequence_example(SequenceExample(context or {}, lists))


def feature_lists(*entries: bytes) -> bytes:
    """Return field 2 of a SequenceExample with these map entries."""
    return delimited(2, b"".join(delimited(1, each) for each in entries))


def steps_of(split, name: str) -> list[list[list]]:
    return [[np.asarray(step).tolist() for step in sample[name]] for sample in split]


def open_each_way(path, **told):
    """Yield the split as it is inferred, as its fields are told, and as its whole schema is."""
    yield open_split(path)
    yield open_split(path, fields=told)
    yield open_split(path, schema=Schema(told))


def test_w30_ragged_steps_are_read(tmp_path):
    rows = [[[1], [2, 3], []], [[4, 5, 6]], [[], [], [-1]]]
    payloads = [record(a=[ints(*step) for step in row]) for row in rows]
    path = write_plain(tmp_path / "ragged.tfrecord", payloads)
    assert ps.open(path).payload == "sequence_example"
    for split in open_each_way(path, a=STEPS):
        assert steps_of(split, "a") == rows
        column = split.columns()["a"]
        assert column.offsets.tolist() == [0, 3, 4, 7]
        assert isinstance(column.values, Ragged)
        assert column.values.offsets.tolist() == [0, 1, 3, 3, 6, 6, 6, 7]
        assert column.values.values.tolist() == [1, 2, 3, 4, 5, 6, -1]
    assert not check_payloads(payloads).refused_lists


def test_w30_lists_of_no_steps_are_there_and_absent_ones_are_not(tmp_path):
    payloads = [record(a=[], b=[ints(1)]), record(a=[ints(1)], b=[]), record({"c": ints(1)})]
    path = write_plain(tmp_path / "none.tfrecord", payloads)
    split = open_split(path)
    columns = split.columns(fields=["a", "b"])
    assert [column.present.tolist() for column in columns.values()] == [[True, True, False]] * 2
    assert [column.offsets.tolist() for column in columns.values()] == [[0, 0, 1, 1], [0, 1, 1, 1]]
    assert [sorted(sample) for sample in split] == [["a", "b"], ["a", "b"], ["c"]]
    one = ps.fields.Sequence("int64", (), "feature_list")
    with pytest.raises(MissingFieldError, match=r"field 'a' is missing of record 2 .*expected a value, got none"):
        open_split(path, schema=Schema({"a": one}))[2]


def test_w30_an_unset_step_is_a_step_of_no_values(tmp_path):
    payload = record(a=[ints(1), UNSET, ints(2, 3)])
    assert protobuf_sequence_example(payload)[1]["a"][1] == (None, [])
    path = write_plain(tmp_path / "unset.tfrecord", [payload, record(a=[UNSET])])
    for split in open_each_way(path, a=STEPS):
        assert steps_of(split, "a") == [[[1], [], [2, 3]], [[]]]


@pytest.mark.parametrize("shape", [(), (2,)])
def test_w30_an_unset_step_is_an_error_where_steps_have_a_number_of_values(tmp_path, shape):
    count = 2 if shape else 1
    sound = [ints(*range(count))]
    path = write_plain(tmp_path / "unset.tfrecord", [record(a=sound), record(a=[*sound, UNSET])])
    split = open_split(path, fields={"a": ps.fields.Sequence("int64", shape, "feature_list")})
    with pytest.raises(FieldError, match=f"number of values in a step of record 1 .*expected {count}, got 0") as caught:
        split[1]
    assert (caught.value.field, caught.value.expected, caught.value.got) == ("a", count, 0)


def test_w30_lists_may_differ_in_their_numbers_of_steps(tmp_path):
    payloads = [
        record(a=[ints(n) for n in range(num_a)], b=[floats(n) for n in range(num_b)])
        for num_a, num_b in ((0, 3), (2, 1), (5, 0), (1, 1))
    ]
    path = write_plain(tmp_path / "differ.tfrecord", payloads)
    columns = open_split(path).columns()
    assert columns["a"].offsets.tolist() == [0, 0, 2, 7, 8]
    assert columns["b"].offsets.tolist() == [0, 3, 4, 4, 5]
    assert columns["a"].values.tolist() == [0, 1, 0, 1, 2, 3, 4, 0]
    assert columns["b"].values.view("u4").tolist() == [0, 1, 2, 0, 0]


def test_w30_steps_of_a_fixed_number_of_values_are_an_array(tmp_path):
    path = write_plain(tmp_path / "fixed.tfrecord", [record(a=[floats(1, 2), floats(3, 4)]), record(a=[])])
    column = open_split(path).columns()["a"]
    assert column.values.shape == (2, 2)
    assert column.values.view("u4").tolist() == [[1, 2], [3, 4]]
    assert column.offsets.tolist() == [0, 2, 2]


@pytest.mark.parametrize("values", [(1,), (1, 2, 3), ()])
def test_w30_a_step_of_another_number_of_values_is_named(tmp_path, values):
    bad = record(a=[ints(1, 2), ints(*values)])
    path = write_plain(tmp_path / "count.tfrecord", [record(a=[ints(1, 2)]), bad, record(a=[ints(3, 4)])])
    split = open_split(path, fields={"a": ps.fields.Sequence("int64", (2,), "feature_list")}, on_error="collect")
    assert steps_of(split, "a") == [[[1, 2]], [[3, 4]]]
    (error,) = split.rejected
    assert (error.record, error.field, error.expected, error.got) == (1, "a", 2, len(values))
    assert "field 'a': number of values in a step of record 1" in str(error)


def test_w30_steps_of_strings_are_read(tmp_path):
    rows = [[[b"a", b""], []], [[b"\xff" * 300]], []]
    path = write_plain(tmp_path / "s.tfrecord", [record(a=[strings(*step) for step in row]) for row in rows])
    split = open_split(path, fields={"a": ps.fields.Sequence("bytes", None, "feature_list")})
    assert [sample["a"] for sample in split] == rows
    one = open_split(write_plain(tmp_path / "one.tfrecord", [record(a=[strings(b"x"), strings(b"yz")])]))
    column = one.columns()["a"]
    assert isinstance(column.values, Bytes)
    assert column.values.tolist() == [b"x", b"yz"]


def test_w30_steps_of_two_kinds_are_left_out_and_are_an_error_if_told(tmp_path):
    path = write_plain(tmp_path / "mixed.tfrecord", [record(a=[ints(1), floats(0)], b=[ints(1)])])
    assert list(ps.open(path).schema) == ["b"]
    with pytest.raises(FieldError, match="field 'a': kind of record 0 .*expected int64, got float"):
        open_split(path, fields={"a": STEPS})[0]


def test_w30_a_context_feature_and_a_list_may_share_a_key(tmp_path):
    path = write_plain(tmp_path / "both.tfrecord", [record({"a": ints(7)}, a=[ints(1), ints(2)])])
    split = open_split(path)
    assert sorted(split[0]) == ["a", "context/a"]
    assert split[0]["a"].tolist() == [1, 2]
    assert split[0]["context/a"] == 7


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
    "a step of two lists": feature_lists(entry("a", delimited(1, write_feature(floats(0)) + write_feature(ints(1))))),
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
    split = open_split(path, options=ps.ReadOptions(strict=True))
    with pytest.raises(CorruptRecordError, match="a key, or the map itself, stands there twice of record 1"):
        split[1]
    assert read_outcomes([ODD[name]], [], ["a"], strict=True)[0].status == DUPLICATE


BROKEN = {
    "lists as varint": (b"\x10\x01", WRONG_TYPE, "payload"),
    "entry as varint": (delimited(2, b"\x08\x01"), WRONG_TYPE, "payload"),
    "step as varint": (feature_lists(entry("a", b"\x08\x01")), WRONG_TYPE, "a"),
    "step that overruns": (feature_lists(entry("a", b"\x0a\x05\x1a")), OVERRUN, "a"),
    "integers cut": (feature_lists(entry("a", delimited(1, b"\x1a\x03\x0a\x01\x80"))), CUT, "a"),
    "floats of six bytes": (feature_lists(entry("a", delimited(1, b"\x12\x08\x0a\x06" + bytes(6)))), FLOAT_SIZE, "a"),
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


def test_w30_elwc_bytes_parse_by_accident_and_give_no_values(tmp_path):
    # ExampleListWithContext { repeated Example examples = 1; Example context = 2; }: each Example's features are taken
    # for a map entry whose key is the bytes of the first map entry.
    inner = example(query=strings(b"text"))
    elwc = delimited(1, example(rank=ints(1))) + delimited(1, example(rank=ints(2))) + delimited(2, inner)
    context, lists = protobuf_sequence_example(elwc)
    assert all(kind is None for kind, _ in context.values())
    path = write_plain(tmp_path / "elwc.tfrecord", [elwc] * 3)
    dataset = ps.open(path)
    assert dataset.payload == "sequence_example"
    assert set(dataset.schema) == set()
    assert list(dataset["all"].records()) == [elwc] * 3
    assert list(dataset["all"]) == [{}] * 3
    checked = check_payloads([elwc])
    assert checked.keys == set(context)
    assert checked.list_keys == set(lists)
    assert not checked.refused


def test_w30_elwc_bytes_that_do_not_parse_are_other_payloads(tmp_path):
    elwc = delimited(1, example(**{"k" * 200: ints(1)})) + delimited(2, example(q=ints(1)))
    with pytest.raises(RefusedError):
        protobuf_sequence_example(elwc)
    dataset = ps.open(write_plain(tmp_path / "elwc.tfrecord", [elwc] * 3))
    assert dataset.payload == "other"
    assert list(dataset["all"].records()) == [elwc] * 3
