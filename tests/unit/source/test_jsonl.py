"""JSONL files: one type a field over the whole file, faults with their line."""

import gzip
import json

import pyarrow as pa
import pytest

from penstock.errors import SourceError
from penstock.settings.groups import TextFiles
from penstock.source import jsonl
from penstock.source.opening import open_source
from penstock.source.row_location import locate_row
from raising import containing, mentions


@pytest.fixture
def write(tmp_path):
    def write(*lines, name="pets.jsonl"):
        path = tmp_path / name
        text = "".join(
            (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines
        ).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return write


@pytest.fixture
def pieces(request, monkeypatch):
    """Parse the file whole, or line by line as if it were large."""
    if request.param == "small":
        monkeypatch.setattr(jsonl, "_PIECE_BYTES", 1)
        monkeypatch.setattr("penstock.source.text_file.CHUNK_BYTES", 7)


in_pieces = pytest.mark.parametrize("pieces", ["whole", "small"], indirect=True)


def refusal(path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        list(open_source(path, TextFiles()).blocks())
    assert caught.value.path == str(path)
    return caught.value


@in_pieces
@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz"])
def test_lines_are_rows_and_fields_that_do_not_exist_are_missing(write, read, pieces, name):
    path = write({"a": 1, "s": "x"}, "", {"a": None, "new": [1, 2]}, {"s": "y"}, name=name)
    assert read(path) == {"a": [1, None, None], "s": ["x", None, "y"], "new": [None, [1, 2], None]}


@in_pieces
def test_ints_and_floats_of_one_field_are_floats_everywhere(write, read, pieces):
    path = write({"a": 1, "l": [1]}, {"a": 2.5, "l": []}, {"a": 3, "l": [0.5]})
    assert read(path) == {"a": [1.0, 2.5, 3.0], "l": [[1.0], [], [0.5]]}
    types = {block.columns["a"].type for block in open_source(path, TextFiles()).blocks()}
    assert types == {pa.float64()}


@in_pieces
def test_nested_values_survive(write, read, pieces):
    rows = [{"i": {"bytes": None, "path": "a.png"}, "m": [[1, 2], [3]]}, {"i": {"path": "b.png"}, "m": []}]
    assert read(write(*rows))["i"] == [{"bytes": None, "path": "a.png"}, {"bytes": None, "path": "b.png"}]
    assert read(write(*rows))["m"] == [[[1, 2], [3]], []]


@in_pieces
def test_dates_stay_text(write, read, pieces):
    rows = [{"d": "2020-01-01"}, {"d": "2020-01-01 10:00:00"}, {"d": "soon"}]
    assert read(write(*rows))["d"] == ["2020-01-01", "2020-01-01 10:00:00", "soon"]


@in_pieces
@pytest.mark.parametrize(
    ("bad", "facts"),
    [
        ('{"a": }', "JSON 4 JSON"),
        ('{"a": 1', "JSON 4"),
        ("[1]", "4 JSON object array"),
        ("7", "4 JSON object number"),
        ('{"a": "x"}', "'a' 4"),
        ('{"a": 1, "a": 2}', "Column(/a)"),
        ('{"a": 9223372036854775808}', "'a' 4 64 9223372036854775808"),
    ],
)
def test_bad_line_is_refused_with_its_number(write, pieces, bad, facts):
    error = refusal(write({"a": 1}, "", {"a": 2}, bad, {"a": 3}))
    assert mentions(error, facts)
    assert error.line == 4


@in_pieces
def test_bytes_that_are_no_utf8_are_refused_with_their_offset(tmp_path, pieces):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": "x"}\n{"a": "caf\xe9"}\n')
    error = refusal(path)
    assert (error.line, error.offset) == (2, 21)
    assert mentions(error, "UTF-8 0xe9227d0a")


def test_byte_order_mark_is_dropped_and_other_encodings_are_read(tmp_path, read):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n{"a": 2}')
    assert read(path) == {"a": [1, 2]}
    path.write_bytes('{"a": "Zoë"}\n'.encode("latin-1"))
    assert read(path, encoding="latin-1") == {"a": ["Zoë"]}


@pytest.mark.parametrize(("text", "facts"), [("", "rows"), ("\n \n", "rows"), ("{}\n{}\n", "columns")])
def test_file_without_rows_or_columns_is_refused(tmp_path, text, facts):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    assert mentions(str(refusal(path)), facts)


def test_row_after_blank_lines_is_located(write):
    path = write({"a": 1}, "", " ", {"a": 2})
    block = next(open_source(path, TextFiles()).blocks())
    assert locate_row(block, 1, TextFiles()) == (2, 4)


def test_several_files_share_their_fields(write, read):
    first, second = write({"a": 1}, name="1.jsonl"), write({"a": 0.5, "b": "x"}, name="2.jsonl")
    assert read([first, second]) == {"a": [1.0, 0.5], "b": [None, "x"]}


def nest(depth):
    return '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


@pytest.mark.parametrize("depth", [101, 500, 20_000])
def test_line_that_is_nested_too_deep_is_refused(write, depth):
    error = refusal(write({"a": []}, {"a": []}, nest(depth)))
    assert error.line == 3
    assert mentions(error, "depth 3 100")


@pytest.mark.parametrize("line", ['{"a":', '{"b":"]]]}}}","a":', '{"b":{},"a":['])
def test_value_that_goes_deep_over_many_lines_is_refused(write, line):
    error = refusal(write(*([line] * 50_000)))
    assert error.line == 1
    assert mentions(error, "JSON 1 JSON")


def test_array_of_any_depth_is_named_as_one(write):
    error = refusal(write(*(["["] * 50_000)))
    assert (error.row, error.line, error.got) == (1, None, containing("array"))


def test_depth_of_100_and_brackets_in_strings_are_read(write, read):
    cells = ["[" * 300, '\\"' + "[{" * 300, "]" * 9]
    assert read(write(*({"s": cell} for cell in cells))) == {"s": cells}
    many = [{"x": [i]} for i in range(150)]
    assert read(write({"m": many}, {"m": []}))["m"] == [many, []]
    assert len(read(write(nest(100)))["a"]) == 1


def test_lines_that_are_not_closed_are_named_before_their_depth(write):
    error = refusal(write({"a": 1}, *(['{"a": ['] * 200)))
    assert error.line == 2
    assert mentions(error, "JSON")
