"""Ranges of a CSV file whose columns are read late: when errors are raised, and which files have ranges."""

import gzip

import pytest

from penstock.errors import ChangedFileError, SourceError
from penstock.settings.groups import TextFiles
from penstock.source import csv_ranges, cutter
from penstock.source.block import LazyColumns
from penstock.source.csv import CsvFile
from penstock.source.opening import open_source
from raising import raises_with


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (cutter, csv_ranges):
        monkeypatch.setattr(module, "BLOCK_ROWS", 10)


def open_deferred(path, **options):
    source = open_source(path, TextFiles(**options))
    source.defer_columns()
    return source


def write(path, text):
    path.write_bytes(text.encode())
    return path


ROWS = "a,b\n" + "".join(f"{row},x\n" for row in range(35))


def test_range_with_a_fault_is_refused_with_its_line_by_the_thread_that_reads_it(tmp_path):
    path = write(tmp_path / "a.csv", ROWS + "1,2,3\n")
    first, *_, last = open_deferred(path).blocks()
    assert first.columns["a"].to_pylist() == [str(row) for row in range(10)]
    for _ in range(2):
        with raises_with(SourceError, path=str(path), row=36, line=37, expected=2, got=3):
            last.columns["a"]


def test_file_that_changes_before_a_range_is_read_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", ROWS)
    blocks = list(open_deferred(path).blocks())
    assert blocks[0].columns["b"].to_pylist() == ["x"] * 10
    write(path, ROWS.replace("x", "y"))
    with raises_with(ChangedFileError, path=str(path)):
        blocks[1].columns["b"]


def test_blocks_are_read_at_once_unless_that_is_deferred(tmp_path):
    path = write(tmp_path / "a.csv", ROWS + "1,2,3\n")
    with raises_with(SourceError, row=36):
        list(open_source(path, TextFiles()).blocks())


@pytest.mark.parametrize(
    ("data", "options", "num_ranges", "is_whole"),
    [
        (ROWS, {}, 4, True),
        (ROWS, {"header": "none"}, 4, True),
        ("\ufeff" + ROWS.replace("\n", "\r"), {}, 4, True),
        (ROWS + '1,"x', {}, 3, False),
        (ROWS + "1," + "x" * 2_000_000, {}, 0, False),
        (ROWS, {"short_rows": "fill"}, 0, False),
        (ROWS, {"comment": "#"}, 0, False),
        (ROWS, {"encoding": "latin-1"}, 0, False),
        (ROWS.replace(",", ", "), {}, 0, False),
        (gzip.compress(ROWS.encode()), {}, 0, False),
        ("a,b", {}, 0, True),
    ],
    ids=range(11),
)
def test_plain_files_have_ranges_as_far_as_their_blocks_are_certain(
    tmp_path, data, options, num_ranges, is_whole
):
    path = tmp_path / "a.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    ranges = list(CsvFile(path, TextFiles(**options)).ranges())
    assert (ranges[-1:] != [None]) == is_whole
    assert sum(each is not None for each in ranges) == num_ranges


def test_columns_are_read_once(tmp_path):
    calls = []
    columns = LazyColumns(["a"], lambda: calls.append(1) or {"a": 1})
    assert (list(columns), len(columns), columns["a"], dict(columns), len(calls)) == (
        ["a"],
        1,
        1,
        {"a": 1},
        1,
    )
