"""CSV files in ranges: the same rows, blocks and errors as a reader of the whole file gives."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import _native
from penstock.errors import PenstockError
from penstock.settings.groups import TextFiles
from penstock.source import csv, csv_ranges, cutter, files
from penstock.source.csv_scanner import scan_rows
from penstock.source.opening import open_source

PIECES = st.sampled_from(
    [
        b"a",
        b"1",
        b",",
        b",",
        b'"',
        b'"',
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"\xff",
        b" ",
        b'""',
        b"\0",
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map(b"".join)


def cut(data, sizes, num_rows):
    """Return the ends of ranges of a text that comes in pieces of some sizes, and the cutter."""
    rows, ends, position = _native.RowCutter(ord(","), num_rows, 0), [], 0
    for size in [*sizes, len(data)]:
        ends += rows.scan(data[position : position + size])
        position += size
    return ends, rows


@settings(max_examples=800)
@given(TEXTS, st.lists(st.integers(0, 9), max_size=12), st.integers(1, 4))
def test_ranges_have_the_rows_of_the_scanner(data, sizes, num_rows):
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith(b"\xef\xbb\xbf"):
        data = b"x" + data
    ends, rows = cut(data, sizes, num_rows)
    found = list(scan_rows([data], b","))
    assert rows.is_quoted == any(row.unclosed is not None for row in found)
    if not rows.is_quoted:
        assert num_rows * len(ends) + rows.num_rows == len(found)
        assert rows.longest_row == max((len(row.text) for row in found), default=0)
    row_ends = [row.offset + len(row.text) for row in found]
    assert ends == [end + 1 for end in row_ends[num_rows - 1 :: num_rows] if end < len(data)]


def read(path, options):
    """Return the blocks of a file with its rows, and its error."""
    blocks = []
    try:
        source = open_source(path, options)
        source.defer_columns()
        for block in source.blocks():
            cells = {name: column.to_pylist() for name, column in block.columns.items()}
            blocks.append((block.first_row, block.num_rows, cells))
        return blocks, [{**each, "num": None} for each in source.provenance()]
    except PenstockError as error:
        return blocks, (type(error), str(error))


@settings(max_examples=400)
@example(b"a,b\n1,2\n3,4\n" + b"5,6\n" * 9, {}, 3, 5)
@example(b"\xef\xbb\xbfa,b\r1,2\r\n\r\n3,4\r\xef\xbb\xbf5,6", {}, 1, 1)
@example(b'a,b\n1,"x\n"\n1,"y', {}, 1, 3)
@given(
    TEXTS,
    st.sampled_from(
        [{}, {"header": "none"}, {"short_rows": "fill"}, {"missing": ("1",)}, {"delimiter": ";"}]
    ),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_file_in_ranges_has_the_blocks_and_errors_of_a_file_that_is_read_as_a_whole(
    tmp_path_factory, data, options, num_rows, num_bytes
):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(data)
    given_options = TextFiles(**options)
    with pytest.MonkeyPatch.context() as patch:
        for module in (cutter, csv_ranges):
            patch.setattr(module, "BLOCK_ROWS", num_rows)
        patch.setattr(csv_ranges, "_READ_BYTES", num_bytes)
        patch.setattr(files, "_READ_AHEAD", 20)
        in_ranges, end = read(path, given_options)
        patch.setattr(csv.CsvFile, "ranges", lambda file: iter((None,)))
        whole, expected_end = read(path, given_options)
    assert end == expected_end
    assert in_ranges == whole if isinstance(end, list) else in_ranges[: len(whole)] == whole[: len(in_ranges)]


@pytest.mark.parametrize("limit", [3000, 9000, 60_000])
def test_blocks_of_rows_that_are_too_large_are_cut_as_ever(tmp_path, monkeypatch, limit):
    path = tmp_path / "a.csv"
    lines = (f"{row},{'x' * (row % 50 if row < 900 else 40 + row % 500)}\n" for row in range(1500))
    path.write_text("a,b\n" + "".join(lines))
    for module in (cutter, csv_ranges):
        monkeypatch.setattr(module, "BLOCK_ROWS", 64)
        monkeypatch.setattr(module, "BLOCK_BYTES", limit)
    monkeypatch.setattr(csv_ranges, "_READ_BYTES", 1000)
    in_ranges, end = read(path, TextFiles())
    asked = []
    monkeypatch.setattr(csv.CsvFile, "ranges", lambda file: (asked.append(file), iter((None,)))[1])
    assert read(path, TextFiles()) == (in_ranges, end)
    assert asked
    assert sum(num_rows for _, num_rows, _ in in_ranges) == 1500
