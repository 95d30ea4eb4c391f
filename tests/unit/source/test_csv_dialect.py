"""Detected properties of a CSV file: the delimiter, spaces after it, and whether there is a header."""

import pytest

import penstock as ps
from penstock.errors import OptionError, SourceError
from penstock.settings.groups import TextFiles
from penstock.source.csv_dialect import find_dialect, skip_comments, skip_spaces
from penstock.source.opening import open_source
from penstock.source.row_location import locate_row
from penstock.source.text_file import TextFile
from raising import containing, raises_with


@pytest.fixture
def detect(tmp_path):
    """Return the dialect of a text."""

    def detect(text: str, name: str = "pets.csv", **options):
        path = tmp_path / name
        path.write_bytes(text.encode())
        given = TextFiles(**options)
        return find_dialect(TextFile(path, given.encoding), given)

    return detect


@pytest.fixture
def notes(tmp_path):
    """Return the notes of a source."""

    def notes(text: str, **options):
        path = tmp_path / "pets.csv"
        path.write_bytes(text.encode())
        return open_source(path, TextFiles(**options)).notes

    return notes


@pytest.fixture
def cells(tmp_path, read):
    """Return the cells of a text by column."""

    def cells(text: str, name: str = "pets.csv", **options):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return read(path, **options)

    return cells


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n3,25;4\n", ";"),  # decimal commas
        ("id;text\n1;a, b, c\n2;d, e\n", ";"),  # commas in texts
        ("id;text\n1;a, b\n2;d, e\n", ";"),
        ("id,text\n1,a; b\n2,c; d\n", ","),
        ('id,text\n1,"a;b;c"\n2,"d;e;f"\n', ","),
        ('"a;b","c"\n"1;2","3"\n', ","),  # quoted delimiters in the header
        ("a|b|c\n1|2|3\n", "|"),
        ("a\tb\n1\t2,3\n", "\t"),
        ("text\nhello; world\nbye\n", ","),  # one column
        ("a;b\n", ";"),
        ("a;b;c\n1;2;3\n1;2\n1;2;3\n", ";"),  # a short row is a separate error
        ('a; b\n1; "x; y"\n2; "z"\n', ";"),
        ("a,b\n1;2\n", ","),
    ],
)
def test_delimiter_is_detected_from_rows(detect, text, delimiter):
    assert detect(text).delimiter == delimiter.encode()


def test_delimiter_that_two_fit_is_the_usual_one_with_a_note(detect, notes):
    text = "a,b;c\n1,2;3\n4,5;6\n"
    assert detect(text).delimiter == b","
    assert detect(text, "pets.tsv").delimiter == b"\t"
    (note,) = notes(text)
    assert note == containing("pets.csv", "','", "delimiter=';'")


def test_delimiter_declared_is_never_overruled(detect):
    dialect = detect("a;b\n1;2\n", delimiter=",")
    assert (dialect.delimiter, dialect.notes) == (b",", ())


def test_delimiter_of_the_suffix_has_no_note(notes, detect):
    assert notes("a,b\n1,2\n") == ()
    assert detect("a\tb\n1\t2\n", "pets.tsv").notes == ()


def test_delimiter_is_detected_from_a_bounded_sample(detect):
    rows = "".join(f"{i};{i},5\n" for i in range(200_000))
    assert detect("a;b\n" + rows).delimiter == b";"
    assert detect(",".join(f"c{i}" for i in range(100_000)) + "\n").delimiter == b","


def test_delimiter_of_several_files_is_detected_for_each(tmp_path, read):
    (tmp_path / "a.csv").write_text("x;y\n1;2\n")
    (tmp_path / "b.csv").write_text("x,y\n3,4\n")
    assert read([tmp_path / "a.csv", tmp_path / "b.csv"]) == {"x": ["1", "3"], "y": ["2", "4"]}
    for name in "cdef":
        (tmp_path / f"{name}.csv").write_text("x;y\n1;2\n")
    source = open_source([tmp_path / f"{name}.csv" for name in "acdef"], TextFiles())
    assert source.notes == ("a.csv and 4 more: read with delimiter ';'.",)


def test_spaces_after_delimiters_belong_to_no_value(cells, notes):
    text = 'a, b, "c, d"\n1, "x, ""y""", z\n2, , "  w"\n'
    assert cells(text) == {"a": ["1", "2"], "b": ['x, "y"', None], "c, d": ["z", "  w"]}
    assert notes(text) == (containing("spaces after the delimiter ','", "values and column names"),)


def test_spaces_in_the_header_alone_belong_to_no_name(cells):
    assert cells("a, b\n1,2\n") == {"a": ["1"], "b": ["2"]}


def test_spaces_that_not_all_rows_have_are_kept(cells, notes):
    assert cells("a,b\n1, x\n2,y\n") == {"a": ["1", "2"], "b": [" x", "y"]}
    assert notes("a,b\n1, x\n2,y\n") == ()


def test_spaces_before_a_row_with_an_error_do_not_move_its_line(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text('a, b\n1, "x\ny"\n2, 3, 4\n')
    with raises_with(SourceError, row=2, line=4, expected=2, got=3):
        list(open_source(path, TextFiles()).blocks())
    path.write_text('a, b\n1, "x\ny"\n2, 3\n')
    (block,) = open_source(path, TextFiles()).blocks()
    assert locate_row(block, 1, TextFiles()) == (2, 4)


def test_spaces_before_an_unclosed_quote_are_found(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text('a, b\n1, 2\n3, "x\n4, 5\n')
    with raises_with(SourceError, what=containing("never closed"), line=3):
        list(open_source(path, TextFiles()).blocks())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_skipping_spaces_does_not_depend_on_chunks(size):
    text = b'  a,  b,"c, d", "e, ""f"" ", g h \r\n, "x\n y", z\n'
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    assert b"".join(skip_spaces(chunks, b",")) == b'a,b,"c, d","e, ""f"" ",g h \r\n,"x\n y",z\n'


@pytest.mark.parametrize("header", ["none", None])
def test_header_none_names_columns_by_number(cells, header):
    assert cells("5.1,3.5,x\n4.9,3.0,y", header=header) == {
        "column_1": ["5.1", "4.9"],
        "column_2": ["3.5", "3.0"],
        "column_3": ["x", "y"],
    }


def test_header_none_keeps_byte_order_marks_and_equal_cells_out_of_the_way(cells):
    assert cells("\ufeff5,5\n", header="none") == {"column_1": ["5"], "column_2": ["5"]}


def test_header_none_counts_rows_and_lines_from_the_first(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text("1,2\n3,4\n5\n")
    with raises_with(SourceError, row=3, line=3, got=1):
        list(open_source(path, TextFiles(header="none")).blocks())
    filled = TextFiles(header="none", short_rows="fill")
    (block,) = open_source(path, filled).blocks()
    assert block.columns["column_2"].to_pylist() == ["2", "4", None]
    assert locate_row(block, 2, filled) == (3, 3)


@pytest.mark.parametrize(
    ("text", "is_data"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", True),
        ("1,2\n3,4\n", True),
        ("Anna,3\nBob,4\n", True),
        ("1;0,5\n2;1,5\n", True),
        ("name,age\nAnna,3\n", False),
        ("country,2019,2020\nfr,1,2\nde,3,4\n", False),
        ("0,1,2\n5,6,7\n", False),
        ("a,b\nx,y\n", False),
        ("a,1\n2,3\n", False),
    ],
)
def test_header_that_looks_like_data_is_suggested_to_be_none(detect, text, is_data):
    dialect = detect(text)
    assert dialect.is_data_first == is_data
    assert any("header='none'" in note for note in dialect.notes) == is_data
    assert not detect(text, header="none").notes or "delimiter" in detect(text, header="none").notes[0]


def test_header_of_equal_numbers_is_refused_with_the_option(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text("5,5\n3,4\n")
    with raises_with(SourceError, advice=containing("header='none'")):
        open_source(path, TextFiles())


def test_header_of_another_kind_is_refused():
    with raises_with(OptionError, what=containing("header"), got=containing("second")):
        TextFiles(header="second")


@pytest.mark.parametrize("first", ["sep=;", "\ufeffsep=,", "sep=\t"])
def test_line_that_names_the_delimiter_for_excel_is_refused(notes, first):
    with raises_with(SourceError, line=1, got=containing("sep=", "Excel"), advice=containing("Remove")):
        notes(f"{first}\r\na;b\r\n1;2\r\n")


COMMENTED = (
    b'# made by "a, b" at 5"\n#\n"id","note"\r\n'
    b'1,"# no comment\n# nor this"\n#x,"y\n2,a # b\n\n3,5" # z\n # c,d\n#end'
)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_lines_that_begin_with_a_comment_character_are_empty(size) -> None:
    chunks = [COMMENTED[i : i + size] for i in range(0, len(COMMENTED), size)]
    assert b"".join(skip_comments(chunks, b"#")) == (
        b'\n\n"id","note"\r\n1,"# no comment\n# nor this"\n\n2,a # b\n\n3,5" # z\n # c,d\n'
    )


def test_comments_of_a_file_are_left_out_and_lines_keep_their_numbers(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeff# exported\n# a;b;c\nid, name\n1, x\n# 9, z\n2, y\n", encoding="utf-8")
    found = ps.convert(path, tmp_path / "out", comment="#", split={"all": 1.0}, shuffle=False)
    assert [(row["id"], row["name"]) for row in found["all"]] == [(1, "x"), (2, "y")]
    path.write_text("# exported\nid,name\n1,x\n# 9\n2,y,z\n")
    with pytest.raises(SourceError, match="line 5"):
        ps.convert(path, tmp_path / "wrong", comment="#")


@pytest.mark.parametrize("value", ["", "##", '"', "\n", " ", "é", 3])
def test_comment_is_one_character(value) -> None:
    with pytest.raises(OptionError, match=r"^comment: expected one ASCII character"):
        TextFiles(comment=value)
    with pytest.raises(OptionError, match="another character than the delimiter"):
        TextFiles(comment=";", delimiter=";")
