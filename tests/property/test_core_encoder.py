"""Encoding is undone by decoding, for every type of field: by the core, by protobuf, by the plain reader."""

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core_reading import check_payloads
from encoded_rows import bits, cell_at, column_of, encode_frames, features_of, frames_of, value_of
from oracle_protobuf import protobuf_example, protobuf_sequence_example
from penstock import _native
from penstock import fields as f
from penstock.decode.plan import DecodePlan
from penstock.encode.records import RecordEncoder
from penstock.schema.schema import Schema
from penstock.storage.deferred import Deferred
from random_tables import FEATURE_LISTS, FEATURES, KEYS, STRINGS, Table, tables
from wire.example import (
    SequenceExample,
    read_example,
    read_sequence_example,
    write_example,
    write_sequence_example,
)
from wire.frame import read_records, write_records


def check_decoded(table: Table, segment: Any) -> None:
    decoded, faults = DecodePlan(table.schema, strict=True).decode([segment])
    assert faults == []
    for name, field in table.schema.items():
        got = [bits(cell_at(field, decoded[name], row)) for row in range(table.num_rows)]
        assert got == [bits(cell) for cell in table.cells[name]]


@settings(max_examples=120)
@given(tables())
@example(Table(Schema({}), {}, {}, 3))
def test_examples_are_decoded_to_the_encoded_values(table):
    frames = encode_frames(table.schema, table.columns, table.num_rows)
    assert list(read_records(frames.data)) == frames.payloads
    check_decoded(table, frames.segment)
    for row, payload in enumerate(frames.payloads):
        expected = features_of(table.schema, table.cells, row)
        assert payload == (write_example(expected) or b"\x0a\x00")
        assert read_example(payload, strict=True) == expected
        assert protobuf_example(payload) == {key: value_of(each) for key, each in expected.items()}


@settings(max_examples=100)
@given(tables(st.one_of(FEATURES, FEATURE_LISTS, FEATURE_LISTS), 1))
def test_sequence_examples_are_decoded_to_the_encoded_values(table):
    frames = encode_frames(table.schema, table.columns, table.num_rows)
    assert list(read_records(frames.data)) == frames.payloads
    check_decoded(table, frames.segment)
    if not RecordEncoder(table.schema).is_sequence:
        return
    for row, payload in enumerate(frames.payloads):
        context = features_of(table.schema, table.cells, row)
        steps = features_of(table.schema, table.cells, row, in_lists=True)
        assert read_sequence_example(payload, strict=True) == SequenceExample(context, steps)
        if context and steps:
            assert payload == write_sequence_example(SequenceExample(context, steps))
        assert protobuf_sequence_example(payload) == (
            {key: value_of(each) for key, each in context.items()},
            {key: [value_of(step) for step in each] for key, each in steps.items()},
        )


@settings(max_examples=40)
@given(st.lists(tables(), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_records_of_any_arenas_in_any_order_are_sound_frames(parts, rng):
    arenas, rows, payloads = [], [], []
    for number, table in enumerate(parts):
        arena, offsets = RecordEncoder(table.schema).encode(table.columns, table.num_rows)
        arenas.append(arena)
        payloads.append(encode_frames(table.schema, table.columns, table.num_rows).payloads)
        rows += [(number, row, offsets[row], offsets[row + 1]) for row in range(table.num_rows)]
    rng.shuffle(rows)
    rows += rows[:1]  # a row may be taken twice
    places = np.array(rows, np.int64).reshape(-1, 4)
    begins, ends = places[:, 2].copy(), places[:, 3]
    frames = frames_of(
        *_native.compose(arenas, places[:, 0].astype(np.uint32), begins, ends - begins, [], False)
    )
    expected = [payloads[number][row] for number, row, *_ in rows]
    assert frames.data == write_records(expected)
    checked = check_payloads(frames.payloads)
    assert (checked.refused, checked.refused_lists) == ({}, {})


LATE = st.lists(st.none() | STRINGS, min_size=1, max_size=6)


@settings(max_examples=60)
@given(LATE, LATE, KEYS, st.randoms(use_true_random=False))
def test_late_values_come_before_the_others_and_are_decoded(first, second, key, rng):
    num_rows = min(len(first), len(second))
    cells_of = {
        key + "1": first[:num_rows],
        "n": [np.int64(row) for row in range(num_rows)],
        key + "2": second[:num_rows],
    }
    schema = Schema({name: f.Number("int64") if name == "n" else f.Bytes(optional=True) for name in cells_of})
    deferred = Deferred(
        np.zeros(num_rows, np.int64), np.zeros(num_rows, np.uint64), np.zeros((num_rows, 2), np.uint64)
    )
    numbers = column_of(schema["n"], cells_of["n"])
    arena, offsets = RecordEncoder(schema).encode({**dict.fromkeys(schema, deferred), "n": numbers}, num_rows)
    order = rng.sample(range(num_rows), num_rows)
    late = [(name, [wrap(cells_of[name][row], rng) for row in order]) for name in schema if name != "n"]
    frames = frames_of(
        *_native.compose(
            [arena], np.zeros(num_rows, np.uint32), offsets[order], np.diff(offsets)[order], late, False
        )
    )
    for row, payload in zip(order, frames.payloads, strict=True):
        found = features_of(schema, cells_of, row)
        expected = {name: found[name] for name in (key + "1", key + "2", "n") if name in found}
        assert payload == write_example(expected)
    moved = {name: [values[row] for row in order] for name, values in cells_of.items()}
    check_decoded(Table(schema, moved, {}, num_rows), frames.segment)


def wrap(value: bytes | None, rng: Any) -> Any:
    """Return a value as some object that has its bytes."""
    return None if value is None else rng.choice([bytes, bytearray, memoryview])(value)


@settings(max_examples=60)
@given(tables(min_fields=1), st.randoms(use_true_random=False))
def test_hashes_of_rows_do_not_depend_on_the_order_of_fields_nor_on_neighbours(table, rng):
    names = list(table.schema)
    encoder = RecordEncoder(table.schema)
    hashes = encoder.prepare(table.columns, table.num_rows).hash_rows(names)
    shuffled = Schema({name: table.schema[name] for name in rng.sample(names, len(names))})
    other = (
        RecordEncoder(shuffled)
        .prepare(table.columns, table.num_rows)
        .hash_rows(rng.sample(names, len(names)))
    )
    assert other.tolist() == hashes.tolist()
    each = [encoder.prepare(table.columns, table.num_rows).hash_rows([name]) for name in names]
    assert np.sum(each, axis=0, dtype=np.uint64).tolist() == hashes.tolist()
    order = rng.sample(range(table.num_rows), table.num_rows)
    columns = {
        name: column_of(field, [table.cells[name][row] for row in order])
        for name, field in table.schema.items()
    }
    assert encoder.prepare(columns, table.num_rows).hash_rows(names).tolist() == hashes[order].tolist()


@settings(max_examples=60)
@given(tables(min_fields=1))
def test_hashes_of_rows_differ_when_their_values_differ(table):
    names = list(table.schema)
    hashes = RecordEncoder(table.schema).prepare(table.columns, table.num_rows).hash_rows(names).tolist()
    rows = [
        tuple(hashed_form(table.schema[name], table.cells[name][row]) for name in names)
        for row in range(table.num_rows)
    ]
    assert len(set(hashes)) == len(set(rows))
    assert len(set(zip(hashes, rows, strict=True))) == len(set(rows))


def hashed_form(field: f.Field, cell: Any) -> Any:
    """Return what of a cell counts in its hash: of a single number its value, of all others the bits."""
    is_number = field.num_values == 1 and (field.kind != "bytes" or isinstance(field, f.Number))
    if cell is None or not is_number:
        return repr(bits(cell))
    number = cell.item()
    return "nan" if np.isnan(number) else number
