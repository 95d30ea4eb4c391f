"""Filters over a split: a bitmap that does not depend on threads, files or compression."""

import numpy as np
import pytest

from local_threads import local_threads
from penstock.decode.losses import Losses
from penstock.errors import CorruptRecordError, FieldError, MissingFieldError, TooManySkippedError
from penstock.fields import Category, Number, Text
from penstock.filter import scan as scan_module
from penstock.filter.expression import parse_expression
from penstock.filter.scan import filter_rows
from penstock.read.opened_files import open_files
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from raising import raises_with
from record_files import example, flip, write_gzip, write_plain, write_zlib
from wire.frame import write_record

NUM_ROWS = 500
SCHEMA = Schema(
    {"row": Number("int64"), "age": Number("int64", optional=True), "breed": Category(), "note": Text()}
)


def payload_of(row: int) -> bytes:
    facts = {"row": row, "breed": ("siamese", "manx", "persian")[row % 3], "note": "n" * (row % 7)}
    return example(**facts if row % 5 == 0 else {**facts, "age": row % 11})


PAYLOADS = [payload_of(row) for row in range(NUM_ROWS)]


def is_wanted(row: int) -> bool:
    return row % 5 != 0 and row % 11 < 3 and row % 3 == 0


def open_rows(path, on_error="raise"):
    (rows,) = open_files(path, ReadOptions(), on_error).splits.values()
    return rows


def chosen(rows, text='age < 3 and breed == "siamese"', losses=None, **options):
    expression = parse_expression(text, SCHEMA)
    losses = Losses("raise", 0) if losses is None else losses
    bitmap = filter_rows(rows, SCHEMA, expression, losses, **options)
    assert bitmap.num_rows == len(rows)
    return np.flatnonzero(bitmap.to_mask()).tolist()


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(scan_module, "_BLOCK_ROWS", 7)


@pytest.fixture(params=[write_plain, write_gzip, write_zlib])
def folder(request, tmp_path):
    """A folder of three files, with rows in order."""
    for i, cut in enumerate(((0, 200), (200, 201), (201, NUM_ROWS))):
        request.param(tmp_path / f"data-{i:05}-of-00003.tfrecord", PAYLOADS[slice(*cut)])
    return tmp_path


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_filter_takes_the_same_rows_whatever_the_threads_and_files(folder, num_threads):
    expected = [row for row in range(NUM_ROWS) if is_wanted(row)]
    assert chosen(open_rows(folder), num_threads=num_threads) == expected
    assert local_threads() == []


def test_filter_in_blocks_of_the_usual_size_takes_the_same_rows(folder):
    assert chosen(open_rows(folder)) == [row for row in range(NUM_ROWS) if is_wanted(row)]


@pytest.mark.usefixtures("small_blocks")
def test_compressed_files_are_inflated_once_and_not_into_the_cache(tmp_path, cache):
    write_gzip(tmp_path / "data.tfrecord", PAYLOADS)
    assert len(chosen(open_rows(tmp_path / "data.tfrecord"), num_threads=3)) > 10
    assert not list(cache.glob("inflated/**/*"))


def test_filter_reads_only_the_fields_that_it_names(tmp_path):
    # Field `breed` is a number here, which is a fault of those alone who read it.
    write_plain(
        tmp_path / "data.tfrecord", [example(row=row, age=row, breed=3, note=1.5) for row in range(9)]
    )
    rows = open_rows(tmp_path / "data.tfrecord")
    assert chosen(rows, "row >= 7") == [7, 8]
    with raises_with(FieldError, "0", field="breed", record=0):
        chosen(rows, "breed == 'manx'")


@pytest.fixture
def damaged(tmp_path):
    """Rows 3, 4 and 100 are bad: a payload, a length, and a field that is missing."""
    frames = [write_record(payload) for payload in PAYLOADS[:200]]
    frames[3] = flip(frames[3], 20)
    frames[4] = flip(frames[4], 0)
    frames[100] = write_record(example(row=100, age=0))
    path = tmp_path / "data.tfrecord"
    path.write_bytes(b"".join(frames))
    return path


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("num_threads", [1, 4])
def test_bad_records_that_are_skipped_are_not_chosen_and_move_no_other(damaged, num_threads):
    rows = open_rows(damaged, "collect")
    losses = Losses("collect", 10)
    expected = [row for row in range(200) if is_wanted(row) and row not in (3, 4, 100)]
    assert chosen(rows, losses=losses, num_threads=num_threads) == expected
    kinds = [(type(error), error.record) for error in losses.errors()]
    assert kinds == [(CorruptRecordError, 3), (CorruptRecordError, 4), (MissingFieldError, 100)]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("num_threads", [1, 4])
def test_first_bad_record_is_raised_whatever_the_threads(damaged, num_threads):
    rows = open_rows(damaged, "collect")
    with raises_with(CorruptRecordError, field="payload", record=3):
        chosen(rows, num_threads=num_threads)
    with raises_with(TooManySkippedError, record=100):
        chosen(rows, losses=Losses("collect", 2), num_threads=num_threads)
    assert local_threads() == []


def test_expression_that_fails_raises_its_error_and_leaves_no_thread(tmp_path, monkeypatch):
    write_plain(tmp_path / "data.tfrecord", PAYLOADS)
    monkeypatch.setattr(scan_module, "_BLOCK_ROWS", 7)

    def fail(*_):
        raise ArithmeticError("no")

    monkeypatch.setattr("penstock.filter.expression.Expression.evaluate", fail)
    with pytest.raises(ArithmeticError, match="no"):
        chosen(open_rows(tmp_path / "data.tfrecord"), num_threads=3)
    assert local_threads() == []


def test_filter_of_an_empty_file_takes_nothing(tmp_path):
    write_plain(tmp_path / "data.tfrecord", [])
    assert chosen(open_rows(tmp_path / "data.tfrecord")) == []
