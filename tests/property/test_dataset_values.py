"""Values are read as they were written: random records by `wire`, opened without a declared schema."""

import gzip
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.columns import Dense, Ragged
from wire.example import Feature, SequenceExample, write_example, write_sequence_example
from wire.frame import write_records

KEYS = st.one_of(st.sampled_from(["a", "b", "image/encoded", "label"]), st.text(max_size=8))
INT64 = st.integers(-(2**63), 2**63 - 1)
BYTES = st.one_of(st.binary(max_size=12), st.text(max_size=6).map(str.encode))
VALUES = {"int64": INT64, "float": st.floats(width=32), "bytes": BYTES}
LENGTHS = {"one": (1, 1), "three": (3, 3), "any": (0, 5)}
FORMS = st.tuples(st.sampled_from(sorted(VALUES)), st.sampled_from(sorted(LENGTHS)))


def features(form: tuple[str, str]) -> st.SearchStrategy[Feature]:
    kind, length = form
    low, high = LENGTHS[length]
    return st.lists(VALUES[kind], min_size=low, max_size=high).map(lambda values: Feature(kind, values))


@st.composite
def examples(draw) -> list[dict[str, Feature]]:
    """Draw records that share keys, each of one kind; any may be missing, or have no kind."""
    forms = draw(st.dictionaries(KEYS, FORMS, max_size=5))
    unset = st.just(Feature(None, []))
    records = []
    for _ in range(draw(st.integers(0, 8))):
        record = {}
        for key, form in forms.items():
            if draw(st.integers(0, 5)):
                record[key] = draw(st.one_of(features(form), features(form), features(form), unset))
        records.append(record)
    return records


@st.composite
def sequence_examples(draw) -> list[SequenceExample]:
    forms = draw(st.dictionaries(KEYS, FORMS, min_size=1, max_size=3))
    records = []
    for context in draw(examples()):
        lists = {}
        for key, form in forms.items():
            if draw(st.integers(0, 5)):
                lists[key] = draw(st.lists(features(form), max_size=4))
        records.append(SequenceExample(context, lists))
    return records


def open_all(payloads: list[bytes], compress: bool, folder: str) -> ps.Dataset:
    path = Path(folder) / "data.tfrecord"
    data = write_records(payloads)
    path.write_bytes(gzip.compress(data) if compress else data)
    return ps.open(path)


def bits(value: object) -> object:
    """Return a value in a form in which equal means the same bits."""
    return struct.pack("<f", value) if isinstance(value, float) else value


def stored(feature: Feature) -> list[object]:
    """Return the values of a feature; a NaN may lose its payload on the way through a Python float."""
    return [bits(value) for value in feature.values]


def flat(value: object) -> list[object]:
    """Return what a sample holds as the list of values that was stored."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    values = value if isinstance(value, list) else [value]
    return [each.encode() if isinstance(each, str) else bits(each) for each in values]


def row_bytes(column: Dense | Ragged, row: int) -> bytes:
    """Return the memory of one row of numbers."""
    return (column.values[row] if isinstance(column, Dense) else column[row]).tobytes()


SETTINGS = settings(max_examples=100)


@SETTINGS
@given(examples(), st.booleans())
def test_samples_of_random_examples_equal_the_written_values(records, compress):
    with TemporaryDirectory() as folder:
        dataset = open_all([write_example(record) for record in records], compress, folder)
        split = dataset["all"]
        # A key whose kind no record sets has no type, and is no field.
        known = {key for record in records for key, feature in record.items() if feature.kind is not None}
        assert set(dataset.schema) == known
        expected = [
            {key: stored(feature) for key, feature in record.items() if feature.kind is not None}
            for record in records
        ]
        got = [{name: flat(value) for name, value in sample.items()} for sample in split]
        assert got == expected
        assert [
            {name: flat(value) for name, value in split[i].items()} for i in range(len(split))
        ] == expected


@SETTINGS
@given(examples())
def test_columns_of_random_examples_hold_their_bits(records):
    with TemporaryDirectory() as folder:
        split = open_all([write_example(record) for record in records], False, folder)["all"]
        columns = split.columns()
        for name, column in columns.items():
            assert len(column) == len(records)
            for row, record in enumerate(records):
                feature = record.get(name, Feature(None, []))
                present = True if column.present is None else bool(column.present[row])
                assert present == (feature.kind is not None)
                if not present:
                    continue
                if feature.kind == "bytes":
                    values = column[row]
                    assert ([values] if isinstance(values, bytes) else values) == feature.values
                else:
                    dtype = "<i8" if feature.kind == "int64" else "<f4"
                    assert row_bytes(column, row) == np.array(feature.values, dtype).tobytes()


@SETTINGS
@given(sequence_examples(), st.booleans())
def test_samples_of_random_sequence_examples_equal_the_written_values(records, compress):
    with TemporaryDirectory() as folder:
        dataset = open_all([write_sequence_example(record) for record in records], compress, folder)
        lists = {key for record in records for key in record.feature_lists}
        typed = {
            key
            for record in records
            for key, steps in record.feature_lists.items()
            if any(s.kind for s in steps)
        }
        contexts = {key for record in records for key in record.context}
        fields = dataset.schema.items()
        assert {field.wire_key(name) for name, field in fields if field.is_feature_list} == typed
        for record, sample in zip(records, dataset["all"], strict=True):
            got_context, got_lists = {}, {}
            for name, value in sample.items():
                field = dataset.schema[name]
                key = field.wire_key(name)
                if field.is_feature_list:
                    got_lists[key] = [flat(step) for step in value]
                else:
                    got_context[key] = flat(value)
                assert name == key or key in lists & contexts
            assert got_context == {
                key: stored(feature) for key, feature in record.context.items() if feature.kind is not None
            }
            assert got_lists == {
                key: [stored(step) for step in steps]
                for key, steps in record.feature_lists.items()
                if key in typed
            }
