"""Digests by the core: BLAKE2b as the standard library has it, and one digest per row of its values."""

import hashlib
import threading

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from each_case import each_case
from penstock import _native
from penstock import fields as f
from penstock.columns import Bytes, Dense, Ragged
from penstock.encode.records import RecordEncoder
from penstock.schema.schema import Schema
from penstock.storage.deferred import Deferred

TREE_BYTES = 4096


def expected(data: bytes) -> bytes:
    """Return BLAKE2b of a short string, and the root of a tree of four leaves for a long one."""
    if len(data) < TREE_BYTES:
        return hashlib.blake2b(data, digest_size=16).digest()
    leaves = [b"".join(data[at : at + 128] for at in range(128 * i, len(data), 512)) for i in range(4)]
    tree = {"fanout": 4, "depth": 2, "inner_size": 64}
    digests = [
        hashlib.blake2b(leaf, node_offset=i, last_node=i == 3, **tree).digest()
        for i, leaf in enumerate(leaves)
    ]
    joined = b"".join(digests)
    return hashlib.blake2b(joined, digest_size=16, node_depth=1, last_node=True, **tree).digest()


@each_case(
    "size",
    [0, 1, 7, 64, 127, 128, 129, 255, 256, 257, 1000, 4095, *range(4096, 5300, 43), 5120, 5121, 1 << 20],
)
def test_digest_bytes_equals_blake2b_of_the_standard_library(size):
    data = np.random.default_rng(size).bytes(size)
    assert _native.digest_bytes(data) == expected(data)


@settings(max_examples=200)
@given(st.binary(max_size=600))
@example(b"\0" * 128)
@example(b"\0" * 256)
def test_digest_bytes_of_any_bytes_equals_blake2b(data):
    assert _native.digest_bytes(data) == expected(data)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_digest_bytes_takes_every_kind_of_buffer(form):
    data = bytes(range(100))
    assert _native.digest_bytes(form(data)) == expected(data)


def test_digest_bytes_in_many_threads_gives_the_same_digests():
    data = [bytes([number]) * 100_000 for number in range(8)]
    found: dict[int, bytes] = {}
    threads = [
        threading.Thread(
            target=lambda number=number: found.update({number: _native.digest_bytes(data[number])})
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(8)] == list(map(expected, data))


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [0],
        [40_960] * 7,
        [5000, 1 << 20, 4096, 7, 4097, 300_000, 0, 4608],
        list(range(4000, 6000, 37)),
    ],
)
def test_fingerprint_gives_the_hash_and_digest_of_each_value_by_itself(sizes):
    values = [np.random.default_rng(number).bytes(size) for number, size in enumerate(sizes)]
    hashes, digests = _native.fingerprint(values)
    assert hashes.tolist() == list(map(_native.hash_bytes, values))
    assert digests.tobytes() == b"".join(map(expected, values))


def strings(*values: bytes, present: list[bool] | None = None) -> Bytes:
    offsets = np.cumsum([0, *map(len, values)])
    mask = None if present is None else np.array(present)
    return Bytes.from_offsets(np.frombuffer(b"".join(values), np.uint8), offsets, mask)


def digest(schema, columns, names=None, *, is_named=True):
    """Return one digest per row, as tuples of two numbers."""
    num_rows = len(next(iter(columns.values())))
    encoder = RecordEncoder(Schema(schema))
    words = encoder.digest_rows(columns, num_rows, names or list(schema), is_named=is_named)
    assert words.dtype == np.uint64
    assert words.shape == (num_rows, 2)
    return list(map(tuple, words.tolist()))


def test_strings_that_collide_in_the_row_hash_have_different_digests():
    values = [b"%08x`8i0Xf<o" % number + b"z" * 50 for number in range(1000)]
    columns = {"text": strings(*values)}
    encoder = RecordEncoder(Schema({"text": f.Text()}))
    assert len(set(encoder.prepare(columns, 1000).hash_rows(["text"]).tolist())) == 1
    assert len(set(digest({"text": f.Text()}, columns))) == 1000


def test_digest_does_not_depend_on_the_order_of_fields():
    columns = {"a": Dense(np.array([1, 2])), "b": strings(b"x", b"y"), "c": Dense(np.float32([0.5, 1.5]))}
    schema = {"a": f.Number("int64"), "b": f.Text(), "c": f.Number()}
    backwards = dict(reversed(schema.items()))
    wanted = digest(schema, columns)
    assert digest(backwards, columns) == wanted
    assert digest(schema, columns, ["c", "a", "b"]) == wanted
    assert wanted[0] != wanted[1]


def test_digest_depends_on_names_unless_it_is_unnamed():
    column = Dense(np.array([1, 2]))
    first, second = ({name: f.Number("int64")} for name in "ab")
    assert digest(first, {"a": column}) != digest(second, {"b": column})
    assert digest(first, {"a": column}, is_named=False) == digest(second, {"b": column}, is_named=False)


def test_field_that_a_row_lacks_is_left_out():
    schema = {"a": f.Number("int64", optional=True), "b": f.Number("int64")}
    columns = {
        "a": Dense(np.array([7, 0, 0]), np.array([True, False, True])),
        "b": Dense(np.array([1, 1, 1])),
    }
    found = digest(schema, columns)
    assert len(set(found)) == 3
    assert digest({"b": f.Number("int64")}, {"b": columns["b"]})[1] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_of_both_signs_are_equal_and_so_is_every_nan(dtype):
    bits = np.uint32 if dtype == "float32" else np.uint64
    values = np.array([0.0, -0.0, np.nan, np.nan, 1.0], dtype)
    values.view(bits)[3] ^= bits(1)
    found = digest({"a": f.Number(dtype)}, {"a": Dense(values)})
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found)) == 3


def test_values_of_neighbouring_fields_do_not_run_into_each_other():
    schema = {"a": f.Text(), "b": f.Text()}
    found = digest(schema, {"a": strings(b"xy", b"x", b""), "b": strings(b"z", b"yz", b"xyz")})
    assert len(set(found)) == 3


def test_lists_of_strings_do_not_run_into_each_other():
    schema = {"a": f.Sequence("string")}
    rows = [[b"ab", b"c"], [b"a", b"bc"], [b"abc"], [b"abc", b""], []]
    offsets = np.cumsum([0, *map(len, rows)])
    column = Ragged(strings(*(value for row in rows for value in row)), offsets)
    assert len(set(digest(schema, {"a": column}))) == len(rows)


def test_lists_of_numbers_of_different_lengths_differ():
    column = Ragged(np.zeros(6, np.int64), np.array([0, 0, 1, 3, 6]))
    assert len(set(digest({"a": f.Sequence("int64")}, {"a": column}))) == 4


@pytest.mark.parametrize("field", [f.Image(), f.Bytes()])
def test_deferred_value_has_the_digest_of_the_same_value_in_memory(field):
    values = [b"", b"short", b"x" * 5000]
    sizes = np.array([len(value) for value in values])
    hashes = np.array([_native.hash_bytes(value) for value in values], np.uint64)
    digests = np.array([np.frombuffer(_native.digest_bytes(value), np.uint64) for value in values])
    deferred = Deferred(sizes, hashes, digests, values=list(values))
    assert digest({"a": field}, {"a": deferred}) == digest({"a": field}, {"a": strings(*values)})


def test_row_digest_of_one_unnamed_number_is_stable():
    # Digests place rows whose hashes collide: they must not change from version to version.
    layout = expected(b"i")
    wanted = expected(layout + np.int64(5).tobytes())
    found = digest({"a": f.Number("int64")}, {"a": Dense(np.array([5]))}, is_named=False)
    assert np.array(found[0], np.uint64).tobytes() == wanted


@pytest.mark.parametrize(
    "lengths",
    [
        [3],
        [0, 1, 2],
        np.random.default_rng(1).integers(0, 70, 20_000).tolist(),  # of one block and of several
        [20_000, 5, 0, *[40_000] * 30, 1, 150_000, *range(300)],
    ],
)
def test_row_digests_of_many_lists_equal_digests_of_each_list_by_itself(lengths):
    offsets = np.cumsum([0, *lengths])
    values = np.random.default_rng(len(lengths)).integers(-(2**60), 2**60, int(offsets[-1]))
    found = digest({"a": f.Sequence("int64")}, {"a": Ragged(values, offsets)}, is_named=False)
    layout = hashlib.blake2b(b"I", digest_size=16).digest()
    for row, words in enumerate(found):
        part = values[offsets[row] : offsets[row + 1]]
        message = layout + np.int64(len(part)).tobytes() + part.tobytes()
        assert np.array(words, np.uint64).tobytes() == hashlib.blake2b(message, digest_size=16).digest()


def test_digest_of_a_deferred_column_without_digests_is_refused():
    encoder = _native.Encoder([("a", 4, False)], False)
    column = (np.zeros(3, np.uint64), None, None, None, None, 1, None)
    with pytest.raises(ValueError, match="digests"):
        encoder.digest_rows([column], 3, [(0, True)], True)
    with pytest.raises(ValueError, match="length"):
        encoder.digest_rows([(column[0], np.zeros(5, np.uint64), *column[2:])], 3, [(0, True)], True)
    with pytest.raises(ValueError, match="no such field"):
        encoder.digest_rows([column], 3, [(1, True)], True)
