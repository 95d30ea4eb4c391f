"""CSV files as they really are, C1–C16 of the fault table: what the source stage makes of them."""

import gzip
import resource
import time

import pyarrow as pa
import pytest

from penstock.errors import SourceError
from penstock.settings.groups import TextFiles
from penstock.source.block import BLOCK_ROWS
from penstock.source.opening import open_source
from penstock.source.row_location import locate_row
from raising import containing, raises_with


@pytest.fixture(params=["plain", "gzip"])
def write(request, tmp_path):
    """Write a CSV, as it is or compressed: every fault shows the same in both."""

    def write(data: bytes, name: str = "pets.csv"):
        path = tmp_path / (name if request.param == "plain" else f"{name}.gz")
        path.write_bytes(data if request.param == "plain" else gzip.compress(data, mtime=0))
        return path

    return write


def read(path, **options):
    """Return the rows of a file as lists of cells by column, and the blocks."""
    blocks = list(open_source(path, TextFiles(**options)).blocks())
    for block in blocks:
        assert all(pa.types.is_string(column.type) for column in block.columns.values())
    names = list(blocks[0].columns)
    return {name: [cell for block in blocks for cell in block.columns[name].to_pylist()] for name in names}


def refusal(path, **options) -> SourceError:
    with pytest.raises(SourceError) as caught:
        list(open_source(path, TextFiles(**options)).blocks())
    assert caught.value.path == str(path)
    return caught.value


def test_c01_byte_order_mark_is_stripped(write):
    assert read(write(b"\xef\xbb\xbfa,b\n1,2\n")) == {"a": ["1"], "b": ["2"]}
    assert read(write(b'\xef\xbb\xbf"a",b\n1,2\n')) == {"a": ["1"], "b": ["2"]}


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_c02_any_line_end_is_one(write, end):
    path = write(end.join([b"a,b", b"1,2", b"3,4", b""]))
    assert read(path) == {"a": ["1", "3"], "b": ["2", "4"]}
    block = next(open_source(path, TextFiles()).blocks())
    assert locate_row(block, 1, TextFiles()) == (2, 3)


def test_c03_line_end_in_quotes_is_part_of_the_cell(write):
    path = write(b'a,b\n1,"x\ny"\n2,"""z"""\r\n\n3,w\n')
    assert read(path) == {"a": ["1", "2", "3"], "b": ["x\ny", '"z"', "w"]}
    block = next(open_source(path, TextFiles()).blocks())
    assert [locate_row(block, row, TextFiles()) for row in (2, 0, 1)] == [(3, 6), (1, 2), (2, 4)]


@pytest.mark.parametrize(
    ("data", "row", "line"),
    [
        (b'a,b\n1,2\n3,"x\ny\n', 2, 3),
        (b'a,b\n1,2\n3,"x', 2, 3),
        (b'a,b\n1,2\n"3,4\n5,6\n', 2, 3),
        (b'a,b\n1,2\n"3\n","x ""y""\n', 2, 4),
        (b'a,"b\n1,2\n', None, 1),
    ],
)
def test_c04_quote_that_is_never_closed_is_refused_with_the_line_where_it_opens(write, data, row, line):
    error = refusal(write(data))
    assert (error.row, error.line) == (row, line)
    assert error.what == containing("quote")
    assert f"line {line}" in str(error)


def test_c04_quotes_that_only_look_open_at_the_end_are_read(write):
    assert read(write(b'a,b\n1,5" pipe')) == {"a": ["1"], "b": ['5" pipe']}
    assert read(write(b'a,b\n1,"x\n"\n')) == {"a": ["1"], "b": ["x\n"]}
    assert read(write(b'a,b\n1,"x"""')) == {"a": ["1"], "b": ['x"']}
    assert read(write(b'a,b\n1,x"y')) == {"a": ["1"], "b": ['x"y']}
    assert read(write(b'a,b\n1,""')) == {"a": ["1"], "b": [""]}


def test_c05_short_row_is_refused_with_its_line(write):
    path = write(b'a,b,c\n1,"x\ny",3\n\n4,5\n6,7,8\n')
    error = refusal(path)
    assert (error.row, error.line, error.expected, error.got) == (2, 5, 3, 2)
    assert error.advice == containing("short_rows='fill'")


def test_c05_short_row_is_filled_where_asked(write):
    path = write(b'a,b,c\n1\n2,"x,\ny"\n3,,""\n\n4,5,6')
    assert read(path, short_rows="fill") == {
        "a": ["1", "2", "3", "4"],
        "b": [None, "x,\ny", None, "5"],
        "c": [None, None, "", "6"],
    }
    assert refusal(write(b"a,b\n1\n1,2,3\n"), short_rows="fill").line == 3
    assert refusal(write(b'a,b\n1\n1,"2\n'), short_rows="fill").line == 3


def test_c06_long_row_is_refused_with_its_line(write):
    error = refusal(write(b"a,b\n1,2\n3,4,5\n"))
    assert (error.row, error.line, error.expected, error.got) == (2, 3, 2, 3)
    assert error.advice == containing("delimiter ','")


def test_c06_long_row_over_several_lines_hints_at_the_quote(write):
    error = refusal(write(b'a,b\n1,"2\n3,4\n5",6\n'))
    assert (error.row, error.line, error.got) == (1, 2, 3)
    assert error.advice == containing("line 4", "quote")


def test_c06_fault_far_into_the_file_is_located(write):
    good = b"1,%b\n" % (b"x" * 96) * 100_000  # more than two pieces of the parser
    path = write(b"a,b\n" + good + b"1,2,3\n")
    source = open_source(path, TextFiles()).blocks()
    assert next(source).num_rows == BLOCK_ROWS
    with pytest.raises(SourceError) as caught:
        list(source)
    assert (caught.value.row, caught.value.line) == (100_001, 100_002)


def test_c07_duplicate_header_is_refused(write):
    error = refusal(write(b"a,b,a\n1,2,3\n"))
    assert (error.field, error.what, error.got) == ("a", containing(3), containing("'a'", 1))


def test_c08_only_an_empty_cell_without_quotes_is_missing(write):
    path = write(b'a,b\n,""\n1,x\n ,"NA"\n')
    assert read(path) == {"a": [None, "1", " "], "b": ["", "x", "NA"]}


def test_c09_leading_zeros_stay(write):
    assert read(write(b"zip\n00501\n501\n")) == {"zip": ["00501", "501"]}


def test_c10_integers_of_any_size_stay_text(write):
    cells = ["9223372036854775808", "1", "-0", "1e3", "0x10", "1.0", "inf"]
    assert read(write("\n".join(["n", *cells]).encode())) == {"n": cells}


def test_c11_words_for_nothing_are_text_unless_declared(write):
    path = write(b'name,n\nNA,1\nnull,2\nNone,3\n"NA",4\nnan,\n')
    assert read(path)["name"] == ["NA", "null", "None", "NA", "nan"]
    declared = read(path, missing=("", "NA", "null"))
    assert declared["name"] == [None, None, "None", "NA", "nan"]
    assert declared["n"] == ["1", "2", "3", "4", None]


def test_c12_bytes_that_are_no_utf8_are_refused_with_their_offset(write):
    path = write(b"id,name\n1,Rex\n2,caf\xe9\n")
    error = refusal(path)
    assert (error.row, error.line, error.offset) == (2, 3, 19)
    assert (error.expected, error.got) == ("UTF-8", "0xe9")
    assert error.advice == containing("encoding='latin-1'")
    assert read(path, encoding="latin-1")["name"] == ["Rex", "café"]


def test_c12_header_and_other_encodings(write):
    assert refusal(write(b"id,caf\xe9\n1,2\n")).offset == 6
    text = "id,name\n1,Zoë\n"
    assert read(write(text.encode("utf-16")), encoding="utf-16") == {"id": ["1"], "name": ["Zoë"]}
    assert "encoding='utf-16'" in refusal(write(text.encode("utf-16"))).advice
    error = refusal(write(b"id\n" + b"x" * 2_000_000 + b"\n\x81\n"), encoding="cp1252")
    assert (error.offset, error.expected, error.got) == (2_000_004, "CP1252", containing("0x81"))


def test_c13_nul_is_a_character_of_its_cell(write):
    assert read(write(b"a,b\n1,x\0y\n")) == {"a": ["1"], "b": ["x\0y"]}


def test_c14_cell_of_another_type_after_many_rows_keeps_its_text_and_its_line(write):
    path = write(b"n\n" + b"7\n" * 100_000 + b"seven\n")
    *_, last = open_source(path, TextFiles()).blocks()
    assert (last.first_row, last.num_rows) == (100_000 // BLOCK_ROWS * BLOCK_ROWS, 100_001 % BLOCK_ROWS)
    row = last.num_rows - 1
    assert last.columns["n"][row].as_py() == "seven"
    assert locate_row(last, row, TextFiles()) == (100001, 100002)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_c15_empty_file_is_refused(write, data):
    error = refusal(write(data))
    assert (error.row, error.line) == (None, None)
    assert (error.what, error.expected) == (containing("empty"), containing("header", "rows"))


@pytest.mark.parametrize("data", [b"a,b\n", b"a,b", b"a,b\n\n\n"])
def test_c15_header_without_rows_is_refused(write, data):
    error = refusal(write(data))
    assert (error.expected, error.got) == (containing("one row"), "none")
    assert str(error) == containing("'a', 'b'")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_c15_other_delimiter_is_detected_with_a_note(write, delimiter):
    path = write(delimiter.join("ab").encode() + b"\n" + delimiter.join("12").encode() + b"\n")
    source = open_source(path, TextFiles())
    (note,) = source.notes
    assert note == f"{path.name}: read with delimiter {delimiter!r}."
    assert read(path) == read(path, delimiter=delimiter) == {"a": ["1"], "b": ["2"]}


def test_c15_header_that_several_delimiters_divide_is_refused_with_advice(write):
    path = write(b"a\tb|c\n1\n2\n")
    error = refusal(path)
    assert error.advice == containing("delimiter='|'")
    spelt = str(refusal(write(b"a\tb\n1\n2\n"))).partition("delimiter='")[2].partition("'")[0]
    assert spelt == "\\t"  # what a shell passes for a tab
    assert TextFiles(delimiter=spelt) == TextFiles(delimiter="\t")


def test_c15_tab_is_the_delimiter_of_tsv_and_one_column_may_be_declared(write):
    assert read(write(b"a\tb,c\n1\t2,3\n", "pets.tsv")) == {"a": ["1"], "b,c": ["2,3"]}
    assert read(write(b"a,b\n1,2\n", "pets.tsv")) == {"a": ["1"], "b": ["2"]}
    assert read(write(b"a;b\n1;2\n"), delimiter=",") == {"a;b": ["1;2"]}


def test_c16_hundred_thousand_columns_are_read_in_bounded_time_and_memory(tmp_path):
    num_columns, num_rows = 100_000, 20
    path = tmp_path / "wide.csv"
    header = ",".join(f"c{i}" for i in range(num_columns))
    row = ",".join(str(i % 97) for i in range(num_columns))
    path.write_text(header + "\n" + (row + "\n") * num_rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    blocks = list(open_source(path, TextFiles()).blocks())
    assert time.process_time() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10
    assert sum(block.num_rows for block in blocks) == num_rows
    assert blocks[0].columns["c99999"].to_pylist()[:2] == [str(99_999 % 97)] * 2


def test_c16_million_columns_are_refused_at_once(tmp_path):
    path = tmp_path / "wider.csv"
    path.write_text(",".join(f"c{i}" for i in range(1_000_000)) + "\n")
    start = time.process_time()
    with raises_with(SourceError, expected=containing(200_000), got=1_000_000):
        open_source(path, TextFiles())
    assert time.process_time() - start < 10


def test_c15_given_delimiter_that_splits_nothing_is_noted(write):
    source = open_source(write(b"a,b\n1,2\n"), TextFiles(delimiter=";"))
    (note,) = source.notes
    assert note == containing("'a,b'", "';'", "','")
    assert open_source(write(b"a b\n1\n"), TextFiles(delimiter=";")).notes == ()
