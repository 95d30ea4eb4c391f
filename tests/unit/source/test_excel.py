"""Sheets of Excel and OpenDocument files."""

import datetime
import sys
import zipfile

import openpyxl
import pandas as pd
import pytest

from penstock.errors import MissingPackageError, OptionError, SourceError
from penstock.settings.groups import TextFiles
from penstock.source import excel
from penstock.source.opening import open_source
from raising import containing, raises_with

FRAME = pd.DataFrame(
    {
        "name": ["Rex", None, "Tom"],
        "age": [3, 4, None],
        "weight": [1.5, 2.0, 3.25],
        "code": ["7", 8, "x"],
        "born": [datetime.datetime(2020, 1, 2, 3)] * 3,
        "is_cat": [True, False, True],
    }
)


@pytest.fixture
def book(tmp_path):
    """Write a file with two sheets."""
    path = tmp_path / "pets.xlsx"
    with pd.ExcelWriter(path) as writer:
        FRAME.to_excel(writer, sheet_name="pets", index=False)
        pd.DataFrame({"x": [1]}).to_excel(writer, sheet_name="more", index=False)
    return path


def test_first_sheet_is_read_with_a_note(book, read):
    found = read(book)
    assert found["name"] == ["Rex", None, "Tom"]
    assert found["age"] == [3, 4, None]
    assert found["weight"] == [1.5, 2.0, 3.25]
    assert found["code"] == ["7", "8", "x"]  # of several types: text
    assert found["born"][0] == datetime.datetime(2020, 1, 2, 3)
    assert found["is_cat"] == [True, False, True]
    (note,) = open_source(book, TextFiles()).notes
    assert note == containing("'pets'", "'more'", "sheet=NAME")


def test_sheet_that_is_named_is_read(book, read):
    assert read(book, sheet="more") == {"x": [1]}
    assert open_source(book, TextFiles(sheet="more")).notes == ()
    with raises_with(OptionError, what="sheet", expected=containing("'pets'", "'more'"), got="'cats'"):
        open_source(book, TextFiles(sheet="cats"))


def test_sheet_without_a_header_is_read(tmp_path, read):
    FRAME[["name", "weight"]].to_excel(tmp_path / "a.xlsx", index=False, header=False)
    found = read(tmp_path / "a.xlsx", header="none")
    assert found == {"column_1": ["Rex", None, "Tom"], "column_2": [1.5, 2.0, 3.25]}


def test_blank_rows_and_columns_are_skipped_and_formulas_have_their_saved_value(tmp_path, read):
    made = openpyxl.Workbook()
    sheet = made.active
    for row in ([None, None], ["a", None, "b", None], [1, None, "=1+1", None], [None], [2, None, 5]):
        sheet.append(row)
    made.save(tmp_path / "a.xlsx")
    assert read(tmp_path / "a.xlsx") == {"a": [1, 2], "b": [None, 5]}  # openpyxl saves no values of formulas


def test_columns_without_a_name_are_noted(tmp_path, read):
    made = openpyxl.Workbook()
    for row in (["pets of 2020", None], ["age", "name"], [3, "Rex"]):
        made.active.append(row)
    made.save(tmp_path / "a.xlsx")
    assert read(tmp_path / "a.xlsx") == {"pets of 2020": ["age", "3"], "column_2": ["name", "Rex"]}
    (note,) = open_source(tmp_path / "a.xlsx", TextFiles()).notes
    assert note == "a.xlsx: column 2 has no name in the first row and is named 'column_2'."


@pytest.mark.parametrize(("first", "is_noted"), [([5.5, "Rex"], True), (["age", "name"], False)])
def test_first_row_that_looks_like_data_is_noted(tmp_path, first, is_noted):
    pd.DataFrame([first, [3, "Tom"], [4.5, "Kim"]]).to_excel(tmp_path / "a.xlsx", index=False, header=False)
    notes = open_source(tmp_path / "a.xlsx", TextFiles()).notes
    assert [containing("header='none'", "'5.5'") == note for note in notes] == [True] * is_noted
    assert open_source(tmp_path / "a.xlsx", TextFiles(header="none")).notes == ()


def test_open_document_sheet_is_read(tmp_path, read):
    FRAME[["name", "weight"]].to_excel(tmp_path / "a.ods", index=False)
    assert read(tmp_path / "a.ods") == {"name": ["Rex", None, "Tom"], "weight": [1.5, 2.0, 3.25]}


def test_equal_names_empty_sheets_and_damaged_files_are_refused(tmp_path):
    pd.DataFrame([["a", "a"], [1, 2]]).to_excel(tmp_path / "a.xlsx", index=False, header=False)
    with raises_with(SourceError, field="a"):
        open_source(tmp_path / "a.xlsx", TextFiles())
    pd.DataFrame().to_excel(tmp_path / "b.xlsx", index=False)
    with raises_with(SourceError, what=containing("empty")):
        open_source(tmp_path / "b.xlsx", TextFiles())
    (tmp_path / "c.xlsx").write_bytes(b"PK\x03\x04 no archive")
    with raises_with(SourceError, what=containing("spreadsheet")):
        open_source(tmp_path / "c.xlsx", TextFiles())


@pytest.mark.parametrize("number", ["1e999", "abc"])
def test_sheet_with_a_number_that_is_none_is_refused(tmp_path, number):
    made = openpyxl.Workbook()
    for row in (["age"], [77]):
        made.active.append(row)
    made.save(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<v>77</v>", f"<v>{number}</v>".encode()))
    with raises_with(SourceError, what=containing("spreadsheet"), advice=containing("damaged")):
        open_source(tmp_path / "b.xlsx", TextFiles())


def test_file_whose_list_of_members_is_damaged_is_refused(book):
    content = book.read_bytes()
    start = content.rfind(b"PK\x01\x02")
    book.write_bytes(content[:start] + b"none" + content[start + 4 :])
    with raises_with(SourceError, what=containing("spreadsheet")):
        open_source(book, TextFiles())


def test_file_that_expands_too_much_is_refused(book, monkeypatch):
    monkeypatch.setattr(excel, "MAX_RATIO", 10)
    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/zeros.xml", bytes(80 << 20))
    with raises_with(SourceError, what=containing("expands")):
        open_source(book, TextFiles())


def test_missing_package_is_named(book, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with raises_with(MissingPackageError, advice=containing("penstock[excel]")):
        open_source(book, TextFiles())
    monkeypatch.undo()
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with raises_with(MissingPackageError, what=containing("xlrd")):
        open_source(tmp_path / "a.xls", TextFiles())
