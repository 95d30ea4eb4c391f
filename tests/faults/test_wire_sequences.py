"""W30, Y7: SequenceExamples: steps that differ, are none, are unset; lists that differ; shared keys."""

import pytest

import penstock as ps
from core_reading import check_payloads
from oracle_protobuf import RefusedError, protobuf_sequence_example
from penstock.columns import Bytes, Ragged
from penstock.errors import FieldError, MissingFieldError
from penstock.schema.schema import Schema
from raising import containing, mentions, raises_with
from record_files import open_split, write_plain
from sequence_rows import STEPS, open_each_way, record, steps_of
from wire.example import Feature
from wire.fields import write_delimited as delimited
from wire_rows import example, floats, ints, strings

UNSET = Feature(None, [])


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
    with raises_with(MissingFieldError, path=str(path), record=2, field="a"):
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
    what = containing("values", "step")
    with raises_with(FieldError, what=what, record=1, field="a", expected=count, got=0):
        split[1]


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
    split = open_split(
        path, fields={"a": ps.fields.Sequence("int64", (2,), "feature_list")}, on_error="collect"
    )
    assert steps_of(split, "a") == [[[1, 2]], [[3, 4]]]
    (error,) = split.rejected
    assert (error.record, error.field, error.expected, error.got) == (1, "a", 2, len(values))
    assert error.what == containing("'a'", "values", "step")


def test_w30_steps_of_strings_are_read(tmp_path):
    rows = [[[b"a", b""], []], [[b"\xff" * 300]], []]
    path = write_plain(tmp_path / "s.tfrecord", [record(a=[strings(*step) for step in row]) for row in rows])
    split = open_split(path, fields={"a": ps.fields.Sequence("bytes", None, "feature_list")})
    assert [sample["a"] for sample in split] == rows
    one = open_split(write_plain(tmp_path / "one.tfrecord", [record(a=[strings(b"x"), strings(b"yz")])]))
    column = one.columns()["a"]
    assert isinstance(column.values, Bytes)
    assert column.values.tolist() == [b"x", b"yz"]


def test_w30_steps_of_two_kinds_are_left_out_and_are_an_error_if_declared(tmp_path):
    path = write_plain(tmp_path / "mixed.tfrecord", [record(a=[ints(1), floats(0)], b=[ints(1)])])
    assert list(ps.open(path).schema) == ["b"]
    with raises_with(FieldError, record=0, field="a", expected="int64", got="float"):
        open_split(path, fields={"a": STEPS})[0]


def test_w30_a_context_feature_and_a_list_may_share_a_key(tmp_path):
    path = write_plain(tmp_path / "both.tfrecord", [record({"a": ints(7)}, a=[ints(1), ints(2)])])
    split = open_split(path)
    assert sorted(split[0]) == ["a", "context/a"]
    assert split[0]["a"].tolist() == [1, 2]
    assert split[0]["context/a"] == 7


def test_w30_elwc_bytes_parse_by_accident_and_give_no_values(tmp_path):
    # ExampleListWithContext { repeated Example examples = 1; Example context = 2; }: the features of each
    # Example are taken for a map entry whose key is the bytes of the first entry.
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


@pytest.mark.parametrize("fields", [None, {"label": ps.fields.Category("int64")}])
def test_y07_list_named_as_the_target_of_the_others_does_not_rename_the_target(tmp_path, caplog, fields):
    payloads = [record({"label": ints(row % 2), "x": floats(row)}, steps=[ints(row)]) for row in range(20)]
    payloads[7] = record({"x": floats(7)}, label=[ints(1), ints(0)], steps=[ints(7)])
    path = write_plain(tmp_path / "mixed.tfrecord", payloads)
    dataset = ps.open(path, target="label", fields=fields)
    assert {name: field.role for name, field in dataset.schema.items()} == {
        "label": "target",
        "x": "input",
        "list/label": "input",
        "steps": "input",
    }
    (warning,) = [each for each in caplog.messages if "list/label" in each]
    assert mentions(warning, "'list/label' 'label' 1 record 19")
    values = dataset["all"].columns(fields=["label", "list/label"])
    assert values["label"].present.tolist() == [row != 7 for row in range(20)]
    assert values["list/label"].present.tolist() == [row == 7 for row in range(20)]


def test_y07_feature_named_as_a_list_of_the_others_is_reported_with_the_count(tmp_path, caplog):
    payloads = [record({"x": floats(row)}, steps=[ints(row)]) for row in range(20)]
    payloads[3] = record({"x": floats(3), "steps": ints(3)}, steps=[ints(3)])
    dataset = ps.open(write_plain(tmp_path / "mixed.tfrecord", payloads))
    assert sorted(dataset.schema) == ["context/steps", "steps", "x"]
    (warning,) = [each for each in caplog.messages if "context/steps" in each]
    assert mentions(warning, "'context/steps' 'steps' 1 record 20")
