"""Cells of spreadsheets whose formats differ: texts, times and types of OpenDocument, and old Excel files."""

import datetime
import sys
import types
import zipfile

import pytest

from penstock.errors import SourceError
from penstock.source.spreadsheet import LostValue, open_book
from raising import containing, raises_with

SPACES = "".join(
    f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "table", "text")
)


def write(path, *tables):
    body = "".join(f'<table:table table:name="{name}">{rows}</table:table>' for name, rows in tables)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "content.xml",
            f"<office:document-content{SPACES}><office:body><office:spreadsheet>{body}"
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return path


def read_cell(tmp_path, cell):
    """Return the value of a cell of an OpenDocument file; None if its row is blank."""
    row = f"<table:table-row>{cell}</table:table-row>"
    book = open_book(write(tmp_path / "a.ods", ("other", ""), ("pets", row)))
    assert book.names == ["other", "pets"]
    rows = list(book.rows("pets"))
    book.close()
    return rows[0][0] if rows else None


@pytest.mark.parametrize(
    ("attributes", "content", "expected"),
    [
        ('office:value-type="float" office:value="3"', "<text:p>3.00</text:p>", 3),
        ('office:value-type="percentage" office:value="0.5"', "<text:p>50 %</text:p>", 0.5),
        ('office:value-type="currency" office:value="2.5"', "<text:p>2.50 €</text:p>", 2.5),
        ('office:value-type="boolean" office:boolean-value="true"', "<text:p>WAHR</text:p>", True),
        ('office:value-type="date" office:date-value="2020-01-02"', "", datetime.datetime(2020, 1, 2)),
        (
            'office:value-type="date" office:date-value="2020-01-02T03:04:05"',
            "",
            datetime.datetime(2020, 1, 2, 3, 4, 5),
        ),
        ('office:value-type="time" office:time-value="PT03H04M05S"', "", datetime.time(3, 4, 5)),
        ('office:value-type="time" office:time-value="PT30H00M00S"', "", datetime.timedelta(hours=30)),
        ('office:value-type="string"', '<text:p>a<text:s text:c="2"/></text:p><text:p>c</text:p>', "a  \nc"),
        (
            'office:value-type="string"',
            "<text:p>a<text:span>b</text:span>c</text:p><office:annotation><text:p>x</text:p>"
            "</office:annotation>",
            "abc",
        ),
        ('office:value-type="string" office:string-value="a"', "", "a"),
        ('office:value-type="string" table:formula="of:=A1" office:string-value=""', "<text:p/>", None),
        ('office:value-type="string"', "<text:p>#DIV/0!</text:p>", "#DIV/0!"),  # typed, without a formula
        ('office:value-type="string" table:formula="x"', "<text:p>#REF!</text:p>", LostValue("#REF!")),
        ('office:value-type="float" table:formula="x"', "<text:p>Err:502</text:p>", LostValue("Err:502")),
        ('table:formula="of:=1"', "", LostValue()),
        ("", "", None),
    ],
)
def test_cell_of_an_open_document_has_the_value_of_its_type(tmp_path, attributes, content, expected):
    found = read_cell(tmp_path, f"<table:table-cell {attributes}>{content}</table:table-cell>")
    assert (found, type(found)) == (expected, type(expected))


def test_rows_of_groups_and_headers_are_read_in_order_and_covered_cells_are_empty(tmp_path):
    row = (
        '<table:table-row><table:table-cell office:value-type="float" office:value="{}"/>{}</table:table-row>'
    )
    covered = (
        '<table:covered-table-cell office:value-type="string"><text:p>x</text:p></table:covered-table-cell>'
    )
    rows = (
        f"<table:table-header-rows>{row.format(1, '')}</table:table-header-rows>"
        f"<table:table-row-group>{row.format(2, covered)}</table:table-row-group>{row.format(3, '')}"
    )
    book = open_book(write(tmp_path / "a.ods", ("pets", rows), ("more", row.format(4, ""))))
    assert list(book.rows("pets")) == [[1], [2], [3]]
    assert list(book.rows("more")) == [[4]]
    book.close()


def test_format_follows_the_content(tmp_path):
    path = tmp_path / "page.xls"
    path.write_text("<html><table></table></html>")
    with raises_with(SourceError, path=str(path), got=containing("HTML")):
        open_book(path)


def test_cells_of_old_files_have_their_types(tmp_path, monkeypatch):
    """Without xlrd, which the tests do not install: the calls that it documents."""
    kinds = dict(zip(("EMPTY", "TEXT", "NUMBER", "DATE", "BOOLEAN", "ERROR", "BLANK"), range(7), strict=True))
    cells = [
        (0, ""),
        (1, "Rex"),
        (2, 3.0),
        (2, 2.5),
        (3, 43832.5),
        (3, 0.25),
        (4, 0),
        (5, 42),
        (6, ""),
        (2, 0.0),
    ]
    sheet = types.SimpleNamespace(
        nrows=1,
        row_types=lambda _: [each[0] for each in cells],
        row_values=lambda _: [each[1] for each in cells],
    )
    book = types.SimpleNamespace(
        sheet_names=lambda: ["pets"],
        sheet_by_name=lambda _: sheet,
        release_resources=lambda: None,
        datemode=0,
    )
    origin = datetime.datetime(1899, 12, 30)
    fake = types.SimpleNamespace(
        open_workbook=lambda *_, **__: book,
        xldate_as_datetime=lambda value, _: origin + datetime.timedelta(days=value),
        error_text_from_code={42: "#N/A"},
        **{f"XL_CELL_{name}": number for name, number in kinds.items()},
    )
    monkeypatch.setitem(sys.modules, "xlrd", fake)
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    opened = open_book(tmp_path / "a.xls")
    (row,) = opened.rows("pets")
    noon, six = datetime.datetime(2020, 1, 2, 12), datetime.time(6)
    assert row == [None, "Rex", 3, 2.5, noon, six, False, LostValue("#N/A"), None, 0]
