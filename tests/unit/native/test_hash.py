"""Hashes by the core: equal to the plain form, free of collisions, well mixed, and strict about arguments."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import core_reference as plain
from penstock import _native
from penstock import fields as f
from penstock.columns import Bytes, Dense, Ragged
from penstock.encode.records import RecordEncoder
from penstock.schema.schema import Schema

ROWS = 100_000
INT64 = st.integers(-(2**63), 2**63 - 1)


def strings(*values: bytes) -> Bytes:
    offsets = np.cumsum([0, *map(len, values)])
    return Bytes.from_offsets(np.frombuffer(b"".join(values), np.uint8), offsets)


@settings(max_examples=200)
@given(st.binary(max_size=70))
def test_hash_bytes_equals_the_plain_form(data):
    assert _native.hash_bytes(data) == plain.hash_bytes(data)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_hash_bytes_takes_all_that_has_bytes(form):
    data = bytes(range(100))
    assert _native.hash_bytes(form(data)) == plain.hash_bytes(data)


def test_hash_bytes_of_zeros_of_every_length_differ():
    hashes = {_native.hash_bytes(bytes(size)) for size in range(200)}
    assert len(hashes) == 200


def test_hash_bytes_changes_half_of_its_bits_with_every_bit_of_its_input():
    data = bytes(range(37))
    whole = int.from_bytes(data, "little")
    flips = [
        (_native.hash_bytes((whole ^ 1 << bit).to_bytes(37, "little")) ^ _native.hash_bytes(data)).bit_count()
        for bit in range(8 * 37)
    ]
    # Of 64 fair coins 32 ± 4 come up; the least of 296 throws stays above 14 but once in 10^4 tries.
    assert 30 < np.mean(flips) < 34
    assert min(flips) > 14


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=40), max_size=6))
def test_hash_strings_equals_the_hash_of_each_string(values):
    column = strings(*values)
    hashes = _native.hash_strings(column.arena, column.starts, column.stops)
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [plain.hash_bytes(value) for value in values]


@settings(max_examples=100)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 20), st.integers(0, 10))
def test_mixed_rows_equal_the_plain_form(seed, first, count):
    keys = _native.mix_rows(seed, first, count)
    assert keys.dtype == np.uint64
    assert keys.tolist() == [plain.mix_row(seed, first + i) for i in range(count)]
    rows = np.arange(count, dtype=np.uint64) + np.uint64(first)
    assert _native.mix_hashes(seed, rows).tolist() == keys.tolist()


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_mixed_rows_are_a_permutation_without_pattern(seed):
    count = 1_000_000
    keys = _native.mix_rows(seed, 0, count)
    assert len(np.unique(keys)) == count
    for shift in (54, 32, 0):  # its upper, middle and lower bits
        seen = np.bincount(((keys >> np.uint64(shift)) & np.uint64(1023)).astype(np.int64), minlength=1024)
        chi_square = float(((seen - count / 1024) ** 2 / (count / 1024)).sum())
        assert abs(chi_square - 1023) < 6 * np.sqrt(2 * 1023)
    places = keys / 2.0**64
    for lag in (1, 2, 1024):
        assert abs(np.corrcoef(places[:-lag], places[lag:])[0, 1]) < 6 / np.sqrt(count)
    assert abs(np.corrcoef(places, np.arange(count))[0, 1]) < 6 / np.sqrt(count)


def test_mixed_rows_of_neighbouring_seeds_have_nothing_in_common():
    first, second = (_native.mix_rows(seed, 0, ROWS) / 2.0**64 for seed in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(ROWS)
    assert abs(np.mean((first < 0.5) == (second < 0.5)) - 0.5) < 0.01


def hash_one(field: f.Field, column: Dense | Bytes | Ragged, name: str = "x") -> list[int]:
    encoder = RecordEncoder(Schema({name: field}))
    return encoder.prepare({name: column}, len(column)).hash_rows([name]).tolist()


@settings(max_examples=200)
@given(INT64)
@example(2**63 - 1)
@example(-(2**63))
@example(2**53 + 1)
@example(0)
def test_an_int_has_the_hash_of_the_float_that_equals_it(value):
    (as_int,) = hash_one(f.Number("int64"), Dense(np.array([value])))
    assert as_int == plain.hash_field("x", plain.word_of(value))
    (as_double,) = hash_one(f.Number("float64"), Dense(np.array([float(value)])))
    (as_float,) = hash_one(f.Number("float32"), Dense(np.array([value], np.float32)))
    assert (as_int == as_double) == (int(float(value)) == value)
    assert (as_int == as_float) == (int(np.float32(value)) == value)


@settings(max_examples=100)
@given(st.floats())
def test_a_float_has_the_hash_of_the_plain_form(value):
    (hashed,) = hash_one(f.Number("float64"), Dense(np.array([value])))
    assert hashed == plain.hash_field("x", plain.word_of(value))


def test_zeros_of_both_signs_and_all_nans_have_one_hash():
    zeros = Dense(np.array([0.0, -0.0], np.float32))
    assert set(hash_one(f.Number(), zeros)) == set(hash_one(f.Number("int64"), Dense(np.array([0]))))
    nans = Dense(np.array([0x7FC00000, 0x7F800001, 0xFFC12345], np.uint32).view(np.float32))
    assert len(set(hash_one(f.Number(), nans))) == 1


def test_lists_of_strings_have_the_hash_of_the_plain_form():
    rows = [[], [b""], [b"a", b"b"], [b"ab", b""], [b"b", b"a"]]
    flat = strings(*(value for row in rows for value in row))
    column = Ragged(flat, np.cumsum([0, *map(len, rows)]))
    expected = [plain.hash_field("x", plain.hash_list(row)) for row in rows]
    assert hash_one(f.Sequence("bytes"), column) == expected
    assert len(set(expected)) == len(rows)


def test_names_of_fields_count_unless_that_is_not_wanted():
    encoder = RecordEncoder(Schema({"a": f.Number("int64"), "b": f.Number("int64")}))
    columns = {"a": Dense(np.array([1, 2])), "b": Dense(np.array([2, 1]))}
    named = encoder.prepare(columns, 2).hash_rows(["a", "b"])
    assert named[0] != named[1]
    unnamed = [encoder.prepare(columns, 2).hash_rows([name], is_named=False).tolist() for name in "ab"]
    assert unnamed[0] == unnamed[1][::-1]


def test_a_field_that_a_row_lacks_adds_nothing():
    present = np.array([True, False])
    columns = {"a": Dense(np.array([1, 1])), "b": Dense(np.array([5, 5]), present)}
    encoder = RecordEncoder(Schema({"a": f.Number("int64"), "b": f.Number("int64", optional=True)}))
    hashes = encoder.prepare(columns, 2).hash_rows(["a", "b"])
    alone = encoder.prepare(columns, 2).hash_rows(["a"])
    assert hashes[1] == alone[1]
    assert hashes[0] != alone[0]
    assert encoder.prepare(columns, 2).hash_rows([]).tolist() == [0, 0]


def test_hashes_of_many_rows_do_not_collide_and_lie_evenly():
    rng = np.random.default_rng(0)
    numbers = np.arange(ROWS)  # close to each other, as ids are
    words = strings(*(b"%d" % value for value in rng.permutation(ROWS)))
    columns = {"n": Dense(numbers), "x": Dense(rng.normal(size=ROWS).astype(np.float32)), "w": words}
    encoder = RecordEncoder(Schema({"n": f.Number("int64"), "x": f.Number(), "w": f.Text()}))
    for names in (["n"], ["w"], ["n", "x", "w"]):
        hashes = encoder.prepare(columns, ROWS).hash_rows(names)
        assert len(np.unique(hashes)) == ROWS
        seen = np.bincount((hashes >> np.uint64(56)).astype(np.int64), minlength=256)
        assert abs(float(((seen - ROWS / 256) ** 2 / (ROWS / 256)).sum()) - 255) < 6 * np.sqrt(2 * 255)


BAD_CALLS = {
    "hash_bytes of text": (TypeError, lambda: _native.hash_bytes("text")),
    "hash_bytes of None": (TypeError, lambda: _native.hash_bytes(None)),
    "hash_bytes with gaps": (BufferError, lambda: _native.hash_bytes(memoryview(b"abcd")[::2])),
    "hash_strings with fewer stops": (ValueError, lambda: hash_strings([0, 1], [1])),
    "hash_strings that goes back": (ValueError, lambda: hash_strings([2], [1])),
    "hash_strings before the arena": (ValueError, lambda: hash_strings([-1], [1])),
    "hash_strings past the arena": (ValueError, lambda: hash_strings([0], [5])),
    "hash_strings with int32": (TypeError, lambda: hash_strings([0], [1], np.int32)),
    "hash_strings with floats": (TypeError, lambda: hash_strings([0], [1], np.float64)),
    "hash_strings without starts": (TypeError, lambda: _native.hash_strings(ARENA, None, PLACES)),
    "hash_strings with gaps": (TypeError, lambda: _native.hash_strings(ARENA[::2], PLACES, PLACES)),
    "hash_strings of 2-D": (TypeError, lambda: _native.hash_strings(ARENA, PLACES[:, None], PLACES)),
    "mix_rows with a negative seed": (TypeError, lambda: _native.mix_rows(-1, 0, 1)),
    "mix_rows of a negative count": (TypeError, lambda: _native.mix_rows(0, 0, -1)),
    "mix_rows of too many": (ValueError, lambda: _native.mix_rows(0, 0, 2**62)),
    "mix_rows with a seed too large": (TypeError, lambda: _native.mix_rows(2**64, 0, 1)),
    "mix_hashes of int64": (TypeError, lambda: _native.mix_hashes(0, PLACES)),
    "mix_hashes of None": (TypeError, lambda: _native.mix_hashes(0, None)),
    "mix_hashes with gaps": (TypeError, lambda: _native.mix_hashes(0, np.zeros(4, np.uint64)[::2])),
}
ARENA = np.zeros(4, np.uint8)
PLACES = np.zeros(2, np.int64)


def hash_strings(starts: list[int], stops: list[int], dtype: type = np.int64) -> None:
    _native.hash_strings(ARENA, np.array(starts, dtype), np.array(stops, dtype))


@pytest.mark.parametrize("case", BAD_CALLS)
def test_hashes_refuse_arguments_that_do_not_fit(case):
    error, call = BAD_CALLS[case]
    with pytest.raises(error):
        call()
