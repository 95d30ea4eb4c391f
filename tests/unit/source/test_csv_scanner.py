"""The CSV scanner against pyarrow's own reader."""

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.source import csv_scanner
from penstock.source.csv_scanner import count_lines, scan_rows, split_cells


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


@settings(max_examples=400)
@given(st.text(alphabet='",\n\rab', max_size=40), st.integers(1, 50))
def test_rows_and_cells_equal_pyarrow(text, chunk_size):
    data = b"h,i,j\n" + text.encode()
    refused = []

    def note(row):
        refused.append(row.actual_columns)
        return "skip"

    names = ["x", "y", "z"]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, column_names=names),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary())),
    )
    cells = [split_cells(row.text, b",") for row in scan_rows(cut(data, chunk_size), b",")]
    assert [row for row in cells if len(row) == 3] == [list(row.values()) for row in table.to_pylist()]
    assert [len(row) for row in cells if len(row) != 3] == refused


def test_row_knows_its_line_and_its_byte_whatever_the_chunks():
    data = b'\xef\xbb\xbfa,b\r\n\r\n"x\r\ny",2\r3,"4\n"\n'
    for size in range(1, len(data) + 1):
        rows = list(scan_rows(cut(data, size), b","))
        assert [(row.text, row.line, row.offset) for row in rows] == [
            (b"a,b", 1, 3),
            (b'"x\r\ny",2', 3, 10),
            (b'3,"4\n"', 5, 19),
        ]
        assert [row.unclosed for row in rows] == [None, None, None]


def test_quote_that_is_never_closed_is_located():
    *_, row = scan_rows([b'a,b\n1,"x""\n2,3\n'], b",")
    assert (row.line, row.unclosed, row.text) == (2, 2, b'1,"x""\n2,3\n')


def test_row_that_is_too_long_ends_the_scan_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(csv_scanner, "MAX_ROW_BYTES", 1000)
    taken = 0

    def chunks():
        nonlocal taken
        yield b'a,b\n1,"'
        while True:
            taken += 1
            yield b"x" * 100

    *_, row = scan_rows(chunks(), b",")
    assert (row.line, row.is_whole, row.unclosed) == (2, False, 2)
    assert taken < 100


MANY = 5_000  # beyond what one match of the scanner's patterns takes


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (b",".join([b"x"] * MANY), [b"x"] * MANY),
        (b",".join([b'"x,\n"'] * MANY), [b"x,\n"] * MANY),
        (b'"' + b'x""' * MANY + b'",y', [b'x"' * MANY, b"y"]),
        (b'x"' * MANY + b",y", [b'x"' * MANY, b"y"]),
        (b'"a"' + b'x"' * MANY + b',"y"', [b"a" + b'x"' * MANY, b"y"]),
    ],
    ids=["cells", "quoted cells", "doubled quotes", "quotes as characters", "quotes after a quoted cell"],
)
def test_row_with_thousands_of_cells_or_quotes_is_one_row(row, cells):
    rows = list(scan_rows(cut(b"a\r\n" + row + b"\nlast\n", 1 << 20), b","))
    assert [each.text for each in rows] == [b"a", row, b"last"]
    assert [each.line for each in rows] == [1, 2, 3 + row.count(b"\n")]
    assert split_cells(row, b",") == cells


@pytest.mark.parametrize("before", [b'"x",', b'x"y,', b'"x""y",'])
def test_quote_that_is_never_closed_is_located_after_thousands_of_others(before):
    row = before * MANY + b'"' + b'""' * MANY + b"\n1,2\n"
    *_, last = scan_rows([b"a\n" + row], b",")
    assert (last.line, last.unclosed, last.text) == (2, len(before) * MANY, row)


@pytest.mark.parametrize(("text", "lines"), [(b"", 0), (b"a\r\nb\rc\n", 3), (b"\n\r", 2), (b"\r\r\n", 2)])
def test_line_ends_are_counted(text, lines):
    assert count_lines(text) == lines


def test_cells_between_any_delimiter():
    assert split_cells(b'a|"b|c"|', b"|") == [b"a", b"b|c", b""]
    assert split_cells(b"a^b", b"^") == [b"a", b"b"]
    assert split_cells(b'"x""y"z]"]', b"]") == [b'x"yz', b"]"]
