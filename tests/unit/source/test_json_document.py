"""JSON documents: an array of objects, and an object with one such array."""

import gzip
import json

import pytest

from penstock.errors import SourceError
from penstock.settings.groups import TextFiles
from penstock.source import json_document
from penstock.source.json_document import JsonLayout, find_layout, split_rows
from penstock.source.opening import open_source
from penstock.source.row_location import locate_row
from raising import containing, raises_with

ROWS = [
    {"a": 1, "s": 'x, "y" ]}\\', "n": {"k": [{"z": 2}]}},
    {"a": 2.5, "s": "[{", "n": {"k": []}},
    {"a": 3, "s": "é\n", "n": None},
]
READ = {"a": [1.0, 2.5, 3.0], "s": [row["s"] for row in ROWS]}


@pytest.fixture
def write(tmp_path):
    """Write a text."""

    def write(text: str, name: str = "pets.json"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def refusal(path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        list(open_source(path, TextFiles()).blocks())
    return caught.value


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["pets.json", "pets.jsonl"])
def test_array_is_read_as_its_objects(write, read, indent, name):
    found = read(write(json.dumps(ROWS, indent=indent), name))
    assert {name: found[name] for name in READ} == READ
    assert found["n"][2] is None


def test_array_with_a_byte_order_mark_or_gzip_is_read(write, read, tmp_path):
    assert read(write("\ufeff " + json.dumps(ROWS)))["a"] == READ["a"]
    (tmp_path / "pets.json.gz").write_bytes(gzip.compress(json.dumps(ROWS, indent=1).encode()))
    assert read(tmp_path / "pets.json.gz")["a"] == READ["a"]


@pytest.mark.parametrize("indent", [None, 2])
def test_object_with_one_array_of_objects_is_read_with_a_note(write, read, indent):
    document = {"meta": {"rows": [1, 2]}, "data": ROWS, "empty": [], "tags": ["a"]}
    path = write(json.dumps(document, indent=indent))
    assert read(path)["s"] == READ["s"]
    (note,) = open_source(path, TextFiles()).notes
    assert note == containing("pets.json", "'data'", "'meta'", "'empty'", "'tags'")
    alone = write(json.dumps({"data": ROWS}, indent=indent))
    assert open_source(alone, TextFiles()).notes == ()


def test_object_with_several_arrays_of_objects_is_refused(write):
    error = refusal(write(json.dumps({"cats": ROWS, "dogs": ROWS})))
    assert error.got == containing("'cats'", "'dogs'")


def test_object_with_two_arrays_of_one_name_is_refused(write):
    error = refusal(write('{"data": [{"a": 1}], "data": [{"a": 2}]}'))
    assert error.got == "several arrays of objects: 'data' and 'data'"


def test_object_with_an_empty_array_alone_has_no_rows(write, read):
    error = refusal(write('{"data": []}'))
    assert (error.expected, error.got) == ("at least one row", "none")
    assert read(write('{"data": [1, 2]}')) == {"data": [[1, 2]]}
    assert read(write('{"data": [[1]]}')) == {"data": [[[1]]]}


def test_object_without_rows_is_refused(write, read):
    error = refusal(write(json.dumps({"a": [1, 2], "b": [3, 4]}, indent=2)))
    assert error.expected == containing("array of objects")
    assert read(write('{"a": 1}')) == {"a": [1]}  # one line is one row


def test_lines_with_arrays_of_objects_stay_lines(write, read):
    rows = [{"id": 1, "boxes": [{"x": 1}]}, {"id": 2, "boxes": []}]
    path = write("".join(json.dumps(row) + "\n" for row in rows))
    assert read(path) == {"id": [1, 2], "boxes": [[{"x": 1}], []]}
    assert open_source(write('{"id": 1, "boxes": [{"x": 1}]}\n', "a.jsonl"), TextFiles()).notes == ()


@pytest.mark.parametrize(
    ("text", "row", "facts"),
    [
        ("[1]", 1, "an object a number"),
        ('[{"a": 1}, "x"]', 2, "an object a string"),
        ('[{"a": 1}, [2]]', 2, "an object an array"),
        ('[{"a": 1} {"a": 2}]', 2, "comma"),
        ('[{"a": 1}, {"a": 2}', 2, "bracket the end of the file"),
        ('[{"a": 1}, {"a": "x}', 2, "bracket the end of the file"),
        ('[{"a": 1}]]', 1, "the end of the file more text"),
        ('[{"a": 1}, {"a": "x"}]', 2, "'a'"),
        ('[{"a": 1}, {"a": }]', 2, "JSON"),
        ('[{"a": "x\ny"}]', None, "JSON"),
        ('[{"a": 1}, {"a": 9223372036854775808}]', 2, "9223372036854775808"),
        ("[]", None, "rows"),
        ("[", None, "bracket"),
    ],
)
def test_bad_item_is_refused_with_its_number(write, text, row, facts):
    error = refusal(write(text))
    assert error.row == row or row is None
    assert str(error) == containing(*facts.split(" "))


def test_row_of_an_array_has_no_line(write):
    path = write(json.dumps(ROWS, indent=1))
    block = next(open_source(path, TextFiles()).blocks())
    assert locate_row(block, 1, TextFiles()) == (2, None)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_rows_do_not_depend_on_chunks(size, tmp_path):
    for document in (ROWS, {"x": {"data": [{}]}, "data": ROWS, "y": 1}):
        text = json.dumps(document, indent=1).encode()
        chunks = [text[i : i + size] for i in range(0, len(text), size)]
        layout = find_layout(chunks, tmp_path)
        assert layout.start is not None
        lines = b"".join(split_rows(chunks, layout, tmp_path)).splitlines()
        assert list(map(json.loads, lines)) == ROWS


def test_item_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_document, "MAX_ITEM_BYTES", 1000)
    chunks = [b'[{"a": "', *([b"x" * 100] * 100), b'"}]']
    with raises_with(SourceError, row=1, got="more"):
        list(split_rows(chunks, JsonLayout(0), tmp_path))


def test_strings_of_many_escapes_over_many_chunks_are_read(tmp_path):
    text = json.dumps({"\\" * 3000: 1, "data": [{"a": '\\"\n' * 200_000}, {"a": "]}"}]}).encode()
    chunks = [text[i : i + 65_537] for i in range(0, len(text), 65_537)]
    lines = b"".join(split_rows(chunks, find_layout(chunks, tmp_path), tmp_path)).splitlines()
    assert [json.loads(line)["a"] for line in lines] == ['\\"\n' * 200_000, "]}"]
