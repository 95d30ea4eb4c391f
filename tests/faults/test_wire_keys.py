"""W: what a key may be: any UTF-8, of any length, in any number."""

from pathlib import Path

import pytest

from core_reading import check_payloads
from oracle_protobuf import RefusedError, protobuf_example
from penstock.errors import CorruptRecordError
from record_files import open_split, write_plain
from wire.example import write_feature
from wire.fields import write_delimited as delimited
from wire_rows import NOT_UTF8, SOUND, check_read, check_refused, entry, features, ints, named

ONE = write_feature(ints(1))

NOT_TEXT = {
    "no such byte": b"\xff",
    "continued without a beginning": b"a\x80",
    "cut": b"key\xc3",
    "overlong": b"\xc0\x80",
    "overlong of three bytes": b"\xe0\x80\x80",
    "a surrogate": b"\xed\xa0\x80",
    "above the last": b"\xf4\x90\x80\x80",
    "long": b"k" * 100 + b"\xfe",
}


@pytest.mark.parametrize("key", named(NOT_TEXT))
def test_w26_a_key_that_is_no_utf8_is_refused(tmp_path, key):
    for payload in (
        features(entry("a", ONE), entry(key, ONE)),
        features(entry(key, b""), entry("a", ONE)),
        features(delimited(2, ONE) + delimited(1, key) + delimited(1, b"a")),
    ):
        with pytest.raises(RefusedError):
            protobuf_example(payload)
        check_refused(tmp_path, payload, NOT_UTF8, detail=repr(key[:64]))


@pytest.mark.parametrize("key", named(NOT_TEXT))
def test_w26_the_error_shows_the_bytes_of_the_key_escaped(tmp_path, key):
    path = write_plain(tmp_path / "a.tfrecord", [SOUND, features(entry(key, ONE))])
    with pytest.raises(CorruptRecordError) as caught:
        open_split(path)[1]
    assert repr(key[:32])[2:-1] in str(caught.value)


ODD = [
    "\0",
    "a\0b",
    "/",
    "a/b",
    "a:b",
    "../../etc/passwd",
    "C:\\x",
    " ",
    "ключ",
    "\U0010ffff",
    "%s",
    "{}",
    "a.b",
]


def test_w27_odd_keys_are_read_and_lead_to_no_path(tmp_path):
    payload = features(*(entry(key, write_feature(ints(n))) for n, key in enumerate(ODD)))
    expected = {key: ("int64", [n]) for n, key in enumerate(ODD)}
    assert protobuf_example(payload) == expected
    before = sorted(Path(tmp_path).rglob("*"))
    check_read(tmp_path, [payload], [expected])
    assert sorted(Path(tmp_path).rglob("*")) == [*before, tmp_path / "sound.tfrecord"]


@pytest.mark.parametrize("size", [16_383, 65_536, 1_000_000])
def test_w27_a_long_key_is_read(tmp_path, size):
    key = "k" * size
    payload = features(entry("a", ONE), entry(key, write_feature(ints(5))), entry("b", ONE))
    check_read(tmp_path, [payload], [{"a": ("int64", [1]), key: ("int64", [5]), "b": ("int64", [1])}])


@pytest.mark.parametrize("form", ["{}", "{:08}/encoded", "image/{:06}"])
def test_w27_120_keys_are_read(tmp_path, form):
    keys = [form.format(n) for n in range(120)]
    payloads = [
        features(*(entry(key, write_feature(ints(n))) for n, key in enumerate(order)))
        for order in (keys, keys[::-1])
    ]
    check_read(
        tmp_path,
        payloads,
        [{key: ("int64", [n]) for n, key in enumerate(order)} for order in (keys, keys[::-1])],
    )


def test_w27_a_hundred_thousand_keys_are_read_in_time(tmp_path):
    keys = [form.format(n) for form in ("{}", "feature_{:06}/of/image") for n in range(50_000)]
    payload = features(*(entry(key, write_feature(ints(n))) for n, key in enumerate(keys)))
    path = write_plain(tmp_path / "wide.tfrecord", [payload, payload])
    split = open_split(path)
    assert split[1] == {key: n for n, key in enumerate(keys)}
    assert split.columns(fields=keys[-1:])[keys[-1]].values.tolist() == [99_999, 99_999]
    assert not check_payloads([payload]).refused


def test_w27_keys_that_are_not_read_and_that_look_alike_are_passed_over_in_time(tmp_path):
    others = [entry(f"feature_{n:05}/encoded", ONE) for n in range(2000)]
    path = write_plain(tmp_path / "wide.tfrecord", [features(*others, entry("a", ONE))] * 2)
    split = open_split(path)
    assert split.columns(fields=["a"])["a"].values.tolist() == [1, 1]
