"""W: the keys of a record and their values: twice, missing, empty, of another kind than declared."""

import numpy as np
import pytest

import penstock as ps
from core_reading import check_payloads
from oracle_protobuf import RefusedError, protobuf_example
from penstock.errors import CorruptRecordError, FieldError, MissingFieldError
from penstock.schema.schema import Schema
from raising import containing, raises_with
from record_files import open_split, write_plain
from wire.example import write_feature
from wire.fields import write_delimited as delimited
from wire_rows import (
    DUPLICATE,
    OVERRUN,
    SOUND,
    check_read,
    check_refused,
    entry,
    example,
    features,
    floats,
    ints,
    named,
    strings,
)

ONE, TWO = write_feature(ints(1)), write_feature(ints(2, 3))
HALF = write_feature(floats(0x3F000000))
LONG = "k" * 40

DUPLICATES = {
    "next to each other": features(entry("a", ONE), entry("a", TWO)),
    "others between": features(entry("a", ONE), entry("b", ONE), entry(LONG, ONE), entry("a", TWO)),
    "of another kind before": features(entry("a", HALF), entry("a", TWO)),
    "in a second map": features(entry("a", ONE), entry("b", ONE)) + features(entry("a", TWO)),
    "value first": features(entry("a", ONE), delimited(2, TWO) + delimited(1, b"a")),
    "three times": features(*(entry("a", each) for each in (ONE, HALF, TWO))),
}


@pytest.mark.parametrize("payload", named(DUPLICATES))
def test_w05_of_a_key_that_stands_there_twice_the_last_entry_counts(tmp_path, payload):
    expected = {"a": ("int64", [2, 3])}
    expected |= {key: ("int64", [1]) for key in ("b", LONG) if key.encode() in payload}
    assert protobuf_example(payload) == expected
    check_read(tmp_path, [example(a=TWO), payload], [{"a": ("int64", [2, 3])}, expected])


@pytest.mark.parametrize("payload", named(DUPLICATES))
def test_w05_key_that_occurs_twice_is_refused_if_strict(tmp_path, payload):
    check_refused(tmp_path, payload, DUPLICATE, in_check=False, strict=True)


def test_w05_a_second_map_is_refused_if_strict_though_no_key_is_in_both(tmp_path):
    payload = features(entry("a", ONE)) + features(entry("b", ONE))
    check_read(tmp_path, [payload], [{"a": ("int64", [1]), "b": ("int64", [1])}])
    check_refused(tmp_path, payload, DUPLICATE, in_check=False, strict=True)


def test_w05_entry_that_is_replaced_must_be_well_formed(tmp_path):
    broken = b"\x1a\x05\x0a\x01\x01"
    payload = features(entry("a", broken), entry("a", ONE))
    with pytest.raises(RefusedError):
        protobuf_example(payload)
    check_refused(tmp_path, payload, OVERRUN)


MISSING = {
    "no value": features(delimited(1, b"a")),
    "no kind": features(entry("a", b"")),
    "unknown fields for a kind": features(entry("a", b"\x20\x01\x2a\x01x")),
    "unset by the last entry": features(entry("a", ONE), entry("a", b"")),
}


@pytest.mark.parametrize("payload", named(MISSING))
def test_w06_w10_a_key_without_a_kind_is_missing(tmp_path, payload):
    assert protobuf_example(payload) == {"a": (None, [])}
    check_read(
        tmp_path, [SOUND, payload, SOUND], [{"a": ("int64", [1])}, {"a": (None, [])}, {"a": ("int64", [1])}]
    )


DEFAULTS = {
    "number": (ps.fields.Number("int64", default=-7), -7),
    "category": (ps.fields.Category("int64", default=9), 9),
    "tensor": (ps.fields.Tensor((1,), "int64", default=[5]), [5]),
    "sequence": (ps.fields.Sequence("int64", default=(4, 5, 6)), [4, 5, 6]),
}


@pytest.mark.parametrize("payload", named({**MISSING, "no key": features(), "no bytes": b""}))
@pytest.mark.parametrize(("field", "default"), named(DEFAULTS))
def test_w10_the_default_applies_to_a_missing_field(tmp_path, payload, field, default):
    path = write_plain(tmp_path / "a.tfrecord", [SOUND, payload])
    for declared in ({"fields": {"a": field}}, {"schema": Schema({"a": field})}):
        split = open_split(path, **declared)
        column = split.columns()["a"]
        assert column.present.tolist() == [True, False]
        got = split[1]["a"]
        assert (got if isinstance(got, int) else got.tolist()) == default


LIST_DEFAULTS = {
    "one value a step": (ps.fields.Sequence("int64", (), "feature_list", default=(4, 5)), [4, 5]),
    "any values a step": (
        ps.fields.Sequence("int64", None, "feature_list", default=((4, 5), (6,))),
        [[4, 5], [6]],
    ),
}


@pytest.mark.parametrize(("field", "default"), named(LIST_DEFAULTS))
def test_w10_the_default_applies_to_a_missing_feature_list(tmp_path, field, default):
    lists = delimited(2, delimited(1, entry("a", delimited(1, ONE))))
    split = open_split(write_plain(tmp_path / "a.tfrecord", [lists, features()]), schema=Schema({"a": field}))
    assert [np.asarray(step).tolist() for step in split[1]["a"]] == default


def test_w07_an_entry_without_a_key_has_the_key_of_no_letters(tmp_path):
    payloads = [features(delimited(2, ONE)), features(entry("", ONE), entry("a", ONE)), features(b"")]
    assert [set(protobuf_example(payload)) for payload in payloads] == [{""}, {"", "a"}, {""}]
    check_read(
        tmp_path,
        payloads,
        [{"": ("int64", [1])}, {"": ("int64", [1]), "a": ("int64", [1])}, {"": (None, [])}],
    )


KEYS = {
    "short": "a",
    "of 22 bytes": "k" * 22,
    "of 27 bytes": "k" * 27,
    "of 128 bytes": "k" * 128,
}


@pytest.mark.parametrize("key", named(KEYS))
def test_w08_the_value_may_come_before_the_key(tmp_path, key):
    name = delimited(1, key.encode())
    payloads = [
        features(entry(key, ONE)),
        features(delimited(2, ONE) + name),
        features(name + delimited(2, ONE) + delimited(1, b"") + name),
        features(delimited(1, b"other") + delimited(2, ONE) + name),
        features(delimited(2, ONE) + name + delimited(2, TWO)),
    ]
    values = [[1], [1], [1], [1], [1, 2, 3]]
    assert [protobuf_example(payload) for payload in payloads] == [{key: ("int64", each)} for each in values]
    check_read(tmp_path, payloads, [{key: ("int64", each)} for each in values])


@pytest.mark.parametrize("kind", ["int64", "float", "bytes"])
def test_w11_the_default_does_not_apply_to_an_empty_list(tmp_path, kind):
    number = {"bytes": 1, "float": 2, "int64": 3}[kind]
    sound = {"int64": ints(1), "float": floats(0), "bytes": strings(b"x")}[kind]
    dtype = {"int64": "int64", "float": "float32", "bytes": "bytes"}[kind]
    path = write_plain(tmp_path / "a.tfrecord", [example(a=sound), example(a=delimited(number, b""))])
    sequence = ps.fields.Sequence(dtype, default={"bytes": (b"d",)}.get(kind, (9,)))
    split = open_split(path, fields={"a": sequence})
    assert list(split[1]["a"]) == []
    assert split.columns()["a"].present.tolist() == [True, True]
    scalar = ps.fields.Bytes(default=b"d") if kind == "bytes" else ps.fields.Number(dtype, default=9)
    with raises_with(FieldError, path=str(path), record=1, field="a", expected=1, got=0):
        open_split(path, fields={"a": scalar})[1]


REQUIRED = {
    "number": ps.fields.Number("int64"),
    "tensor": ps.fields.Tensor((1,), "int64"),
    "sequence": ps.fields.Sequence("int64"),
}


@pytest.mark.parametrize("payload", named({**MISSING, "no key": features(entry("b", ONE)), "no bytes": b""}))
@pytest.mark.parametrize("field", named(REQUIRED))
def test_w12_a_required_field_that_is_missing_is_named(tmp_path, payload, field):
    path = write_plain(tmp_path / "a.tfrecord", [SOUND, payload])
    split = open_split(path, schema=Schema({"a": field}))
    with pytest.raises(MissingFieldError) as caught:
        split[1]
    error = caught.value
    assert (error.path, error.record, error.offset, error.field) == (str(path), 1, len(SOUND) + 16, "a")
    assert error.what == containing("'a'")
    assert error.advice == containing("default", "optional=True")


MISFITS = {
    "kind of a number": (ps.fields.Number("int64"), floats(0), ("kind", "int64", "float")),
    "kind of a list": (ps.fields.Sequence("int64"), strings(b"x"), ("kind", "int64", "bytes")),
    "kind of a tensor": (ps.fields.Tensor((1,), "int64"), floats(0), ("kind", "int64", "float")),
    "two for a number": (ps.fields.Number("int64"), ints(1, 2), ("values", 1, 2)),
    "none for a number": (ps.fields.Number("int64"), ints(), ("values", 1, 0)),
    "two for a tensor": (ps.fields.Tensor((1,), "int64"), ints(1, 2), ("values", 1, 2)),
}


@pytest.mark.parametrize(("field", "feature", "fault"), named(MISFITS))
@pytest.mark.parametrize("way", ["fields", "schema"])
def test_w13_a_wrong_kind_or_count_names_file_record_and_actual_value(tmp_path, field, feature, fault, way):
    path = write_plain(tmp_path / "a.tfrecord", [SOUND, example(b=ints(1), a=feature)])
    split = open_split(path, **{way: Schema({"a": field})})
    with pytest.raises(FieldError) as caught:
        split[1]
    error = caught.value
    what, expected, got = fault
    assert (error.path, error.record, error.offset, error.field) == (str(path), 1, len(SOUND) + 16, "a")
    assert (error.expected, error.got) == (expected, got)
    assert error.what == containing("'a'", what)
    assert not check_payloads([example(a=feature)]).refused


def test_w13_a_raw_tensor_of_another_size_names_both_sizes(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(a=strings(b"1234")), example(a=strings(b"123"))])
    split = open_split(path, fields={"a": ps.fields.Tensor((4,), "uint8", "raw")})
    what = containing("'a'", "bytes")
    with raises_with(FieldError, what=what, record=1, field="a", expected=4, got=3):
        split[1]


def test_w13_two_faults_name_the_first_field_of_the_schema(tmp_path):
    payload = features(entry("b", b"\x1a\x03\x0a\x01\x80"), entry("a", HALF))
    path = write_plain(tmp_path / "a.tfrecord", [example(a=ints(1), b=ints(1)), payload])
    for names, kind in ((["a", "b"], FieldError), (["b", "a"], CorruptRecordError)):
        split = open_split(path, schema=Schema(dict.fromkeys(names, ps.fields.Number("int64"))))
        with raises_with(kind, what=containing(repr(names[0])), record=1, field=names[0]):
            split[1]
