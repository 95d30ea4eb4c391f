"""Files of raw data that are damaged or ambiguous: Y6, Y8, Y11 and Y12 of the fault table."""

import bz2
import gzip
import io
import lzma
import zipfile

import openpyxl
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock.cli.main import main
from penstock.errors import SourceError
from penstock.jobs.predict.predict import predict
from penstock.settings.groups import TextFiles
from penstock.source import excel, spreadsheet
from penstock.source.opening import open_source
from raising import containing, raises_with


def read(path, **options):
    """Return the rows of a file as lists of cells by column."""
    blocks = list(open_source(path, TextFiles(**options)).blocks())
    names = list(blocks[0].columns)
    return {name: [cell for block in blocks for cell in block.columns[name].to_pylist()] for name in names}


STREAMS = {".bz2": (bz2.compress, "0x425a68"), ".xz": (lzma.compress, "0xfd377a585a00")}
LONG = b"".join(b"%d,%d\n" % (row, row * row) for row in range(20_000))


@pytest.mark.parametrize("suffix", STREAMS)
def test_y06_later_streams_that_do_not_begin_rightly_are_refused(suffix, tmp_path):
    compress, magic = STREAMS[suffix]
    first, second = compress(b"a,b\n1,2\n"), compress(b"3,4\n")
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(first + second)
    assert read(path) == {"a": ["1", "3"], "b": ["2", "4"]}
    for wrong in (b"X" + second[1:], second[1:], b"garbage", b"\n", first[:1]):
        path.write_bytes(first + wrong)
        with raises_with(
            SourceError,
            path=str(path),
            what=containing(f"byte {len(first)}"),
            expected=containing(magic, "end of the file"),
        ):
            open_source(path, TextFiles())


@pytest.mark.parametrize("suffix", STREAMS)
def test_y06_damage_anywhere_in_a_later_stream_is_refused(suffix, tmp_path):
    compress = STREAMS[suffix][0]
    first, second = compress(b"a,b\n" + LONG), bytearray(compress(LONG))
    path = tmp_path / f"a.csv{suffix}"
    for place in (4, 13, len(second) // 2, len(second) - 5):
        damaged = bytearray(second)
        damaged[place] ^= 0x40
        path.write_bytes(first + damaged)
        with raises_with(SourceError, path=str(path)):
            open_source(path, TextFiles())
    for size in (1, 6, 20, len(second) - 1):
        path.write_bytes(first + second[:size])
        with raises_with(SourceError, path=str(path)):
            open_source(path, TextFiles())


def test_y06_padding_of_xz_streams_is_not_damage(tmp_path):
    first, second = lzma.compress(b"a,b\n1,2\n"), lzma.compress(b"3,4\n")
    path = tmp_path / "a.csv.xz"
    path.write_bytes(first + bytes(8) + second + bytes(4))
    assert read(path) == {"a": ["1", "3"], "b": ["2", "4"]}
    path.write_bytes(first + bytes(3) + second)
    with raises_with(SourceError, path=str(path), got="3 zero bytes"):
        open_source(path, TextFiles())


def test_y06_standard_input_and_archives_refuse_such_streams(tmp_path, monkeypatch, capsys):
    wrong = bz2.compress(b"a,b\n1,2\n") + b"X" + bz2.compress(b"3,4\n")[1:]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(wrong)))
    assert main(["convert", "-", str(tmp_path / "out")]) == 1
    assert containing("bzip2", "0x425a68", "-:") == capsys.readouterr().err
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv.bz2", wrong)
    with pytest.raises(ValueError, match="bz2"):
        open_source(path, TextFiles())


def write_sheet(path, rows):
    """Write a sheet of an Excel file; openpyxl saves formulas without their values."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


SHEET = [
    ["price", "count", "name"],
    [1.5, 3, "Rex"],
    ["#N/A", "=A2*2", "Tom"],
    ["#DIV/0!", "=A2*3", "#REF!"],
    [None, None, None],
    ["#N/A", "#N/A", "#N/A"],
    [2.5, 5, "Kim"],
]


def write_open_document(path, *rows):
    """Write a sheet of an OpenDocument file from the XML of its rows."""
    spaces = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    calc = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f'<office:document-content{spaces} xmlns:calcext="{calc}"><office:body><office:spreadsheet>'
            f'<table:table table:name="pets">{"".join(rows)}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return path


def cells(*values, repeated=1):
    """Return the XML of a row of texts, numbers, and cells given as XML."""
    kinds = {
        str: lambda value: (
            value
            if value.startswith("<")
            else f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        ),
        int: '<table:table-cell office:value-type="float" office:value="{}"/>'.format,
    }
    written = "".join(kinds[type(value)](value) for value in values)
    return f'<table:table-row table:number-rows-repeated="{repeated}">{written}</table:table-row>'


ERROR = (
    '<table:table-cell table:formula="of:=1/0" office:value-type="string" office:string-value="" '
    'calcext:value-type="error"><text:p>#DIV/0!</text:p></table:table-cell>'
)
UNSAVED = '<table:table-cell table:formula="of:=1+1"/>'


def test_y08_cells_with_errors_and_formulas_without_values_are_counted_and_their_rows_kept(tmp_path):
    path = write_sheet(tmp_path / "a.xlsx", SHEET)
    assert read(path) == {
        "price": [1.5, None, None, None, 2.5],
        "count": [3, None, None, None, 5],
        "name": ["Rex", "Tom", None, None, "Kim"],
    }
    errors, formulas = open_source(path, TextFiles()).notes
    assert errors == containing("a.xlsx: 6 cells", "4 #N/A", "1 #DIV/0!", "3 in 'price'", "2 in 'name'")
    assert formulas == containing("a.xlsx: 2 formulas", "2 in 'count'", "saved")


def test_y08_formulas_with_saved_values_and_blank_cells_are_no_losses(tmp_path):
    path = write_sheet(tmp_path / "a.xlsx", [["a", "b"], ["=1+1", 2], ["=2", 3], [None, 4]])
    saved = tmp_path / "b.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(saved, "w") as new:
        for name in old.namelist():
            sheet = old.read(name).replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
            new.writestr(name, sheet.replace(b'"A3"><f>2</f><v />', b'"A3" t="str"><f>2</f><v></v>'))
    assert read(saved) == {"a": [2, None, None], "b": [2, 3, 4]}
    assert open_source(saved, TextFiles()).notes == ()


def test_y08_open_document_cells_are_counted_too(tmp_path):
    path = write_open_document(
        tmp_path / "a.ods", cells("a", "b"), cells(1, ERROR), cells(UNSAVED, ERROR, repeated=2), cells(3, 4)
    )
    assert read(path) == {"a": [1, None, None, 3], "b": [None, None, None, 4]}
    errors, formulas = open_source(path, TextFiles()).notes
    assert errors == containing("3 cells", "3 #DIV/0!", "3 in 'b'")
    assert formulas == containing("2 formulas", "2 in 'a'")


def test_y08_commands_print_the_counts(tmp_path, capsys):
    path = str(write_sheet(tmp_path / "a.xlsx", SHEET))
    for command in (["convert", path, str(tmp_path / "out")], ["inspect", path]):
        assert main([*command, "--quiet"]) == 0
        errors, formulas = capsys.readouterr().err.splitlines()[:2]
        assert errors == containing("warning: a.xlsx: 6 cells", "#N/A", "'price'")
        assert formulas == containing("warning: a.xlsx: 2 formulas")
    found = ps.open(tmp_path / "out")
    assert sum(len(found[name]) for name in found.splits) == 5


def test_y08_predictions_for_such_rows_are_cautioned(tmp_path):
    table = {"price": [1.5, None, 2.5, None] * 5, "sold": ["no", "yes"] * 10}
    run = fit_run(table, tmp_path / "out", target="sold")
    path = write_sheet(tmp_path / "new.xlsx", [["price"], [1.5], ["#N/A"], ["=A2"]])
    done = predict(run, path)
    assert done.num_rows == 3
    assert done.cautions == (containing("1 cell", "#N/A", "'price'"), containing("1 formula", "'price'"))


WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
TEXTS = {
    "a.csv": "name,age\nZoë,3\nTom,4\n",
    "cyrillic.csv": "Имя,Возраст\nИван,3\nОльга,4\n",
    "chinese.csv": "名前,値\n太郎,3\n花子,4\n",
    "quoted.tsv": 'a\tb\r\n"x\ny"\t2\r\n',
    "a.jsonl": '{"name": "Zoë", "age": 3}\n{"name": "Tom", "age": 4}\n',
    "a.json": '[{"name": "Zoë", "age": 3}, {"name": "Tom", "age": 4}]',
    "pets": "name;age\nZoë;3\nTom;4\n",
    "symbols.csv": "name,note\nZoë,\uf0b7 item\nTom,\U0001faea\x0c\n",
    "long.csv": f"{','.join(f'column_{i}' for i in range(600))}\n{','.join('0' * 600)}\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("declared", ["utf-8", "latin-1", "utf-16"])
def test_y11_wide_text_without_a_byte_order_mark_is_refused_with_its_encoding(name, declared, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name])
    expected = read(path)
    for wide in WIDE:
        path.write_bytes(TEXTS[name].encode(wide))
        with raises_with(SourceError, path=str(path), advice=containing(f"`encoding='{wide}'`")):
            open_source(path, TextFiles(encoding=declared))
        assert read(path, encoding=wide) == expected
        if name.endswith("v"):
            packed = path.with_name(f"{name}.gz")
            packed.write_bytes(gzip.compress(path.read_bytes()))
            with raises_with(SourceError, path=str(packed), advice=containing(f"'{wide}'")):
                open_source(packed, TextFiles(encoding=declared))
            assert read(packed, encoding=wide) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_y11_wide_text_with_a_byte_order_mark_is_refused_with_an_encoding_that_works(name, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name])
    expected = read(path)
    for wide in ("utf-16", "utf-32"):
        path.write_bytes(TEXTS[name].encode(wide))
        with raises_with(SourceError, path=str(path), advice=containing(f"'{wide}'")):
            open_source(path, TextFiles())
        assert read(path, encoding=wide) == expected


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_y11_standard_input_is_refused_with_the_encoding_and_read_with_it(
    name, tmp_path, monkeypatch, capsys
):
    data = TEXTS[name].encode("utf-16-le")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["inspect", "-"]) == 1
    assert containing("-:", "UTF-16-LE", "--encoding utf-16-le") == capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["inspect", "-", "--encoding", "utf-16-le"]) == 0
    assert "Zoë" in capsys.readouterr().out


@pytest.mark.parametrize("data", [b"a,b\n1,x\0y\n", b"a,b\n\0,1\n", b"a,b\n\0\0,\0\n1,2\n", b"a\0,b\n1,2\n"])
def test_y11_single_nul_characters_are_no_encoding(data, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    assert len(read(path)) == 2


def test_y12_rows_and_columns_beyond_the_limits_of_spreadsheets_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.ods"
    write_open_document(path, cells("a"), cells(1, repeated=26_000_000))
    with raises_with(SourceError, path=str(path), what=containing("rows"), expected=containing("1,048,576")):
        open_source(path, TextFiles())
    wide = '<table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="{}"/>'
    write_open_document(path, cells("a"), cells(wide.format(10**9)))
    with raises_with(SourceError, path=str(path), what=containing("columns"), expected=containing("16,384")):
        open_source(path, TextFiles())
    write_open_document(path, cells("a"), cells(wide.format(16_384), repeated=1_000_000))
    with raises_with(SourceError, path=str(path), what=containing("cells")):
        open_source(path, TextFiles())
    write_open_document(path, cells("a"), cells(1), cells(repeated=1_048_574))
    assert read(path) == {"a": [1]}
    for cell, what in (("XFE1", "columns"), ("A1048577", "rows")):
        other = write_xml_sheet(
            tmp_path / "a.xlsx", f'<row r="{cell.lstrip("XFEA")}"><c r="{cell}"><v>1</v></c></row>'
        )
        with raises_with(SourceError, path=str(other), what=containing(what)):
            open_source(other, TextFiles(header="none"))
    monkeypatch.setattr(spreadsheet, "MAX_ROWS", 2000)  # so that the file and its check are small
    many = write_xml_sheet(tmp_path / "b.xlsx", "<row><c><v>1</v></c></row>" * 40_000)
    with raises_with(SourceError, path=str(many), what=containing("rows")):
        open_source(many, TextFiles(header="none"))


@pytest.mark.parametrize("cell", ["<c/>", '<c r="A2"><v>1</v></c>', '<x:c xmlns:x="y"/>'])
def test_y12_cells_of_a_row_are_counted_before_openpyxl_reads_them(cell, tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheet, "_READ_BYTES", 1001)  # tags are cut between chunks
    monkeypatch.setattr(spreadsheet.ExcelBook, "_open", lambda *_, **__: pytest.fail("read before its check"))
    path = write_xml_sheet(tmp_path / "a.xlsx", f"<row>{cell * 16_384}</row><row>{cell * 16_385}</row>")
    with raises_with(SourceError, path=str(path), what=containing("columns"), expected=containing("16,384")):
        open_source(path, TextFiles())
    monkeypatch.setattr(spreadsheet, "MAX_CELLS", 3000)
    path = write_xml_sheet(tmp_path / "b.xlsx", f"<row>{cell * 2}</row>" * 1501)
    with raises_with(SourceError, path=str(path), what=containing("cells")):
        open_source(path, TextFiles())


def test_y12_cells_without_rows_are_not_counted(tmp_path):
    """The chain of formulas of a workbook has such elements, too."""
    path = write_xml_sheet(tmp_path / "a.xlsx", '<row r="1"><c r="A1"><v>7</v></c></row>')
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/calcChain.xml", "<calcChain>" + '<c r="A1" i="1"/>' * 20_000 + "</calcChain>")
    assert read(path, header="none") == {"column_1": [7]}


def test_y12_empty_cells_up_to_the_last_column_are_counted_as_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(excel, "MAX_CELLS", 100_000)
    far = '<row><c t="inlineStr"><is><t>a</t></is></c></row>' + '<row><c r="XFD{}"/></row>' * 10
    path = write_xml_sheet(tmp_path / "a.xlsx", far.format(*range(2, 12)))
    with raises_with(SourceError, path=str(path), what=containing("cells")):
        open_source(path, TextFiles()).schema  # noqa: B018 - the sheet is read for it


@pytest.mark.parametrize("tag", ["table-cell", "covered-table-cell", "table-column"])
def test_y12_cells_and_columns_of_open_documents_are_counted_before_they_are_read(tag, tmp_path):
    path = tmp_path / "a.ods"
    many = f"<table:{tag}/>" * 16_385
    row = many if tag == "table-column" else f"<table:table-row>{many}</table:table-row>"
    write_open_document(path, cells("a"), row)
    with raises_with(SourceError, path=str(path), what=containing("columns"), expected=containing("16,384")):
        spreadsheet.open_book(path)


def write_xml_sheet(path, rows):
    write_sheet(path, [[1]])
    members = {}
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        f"{rows}</sheetData></worksheet>"
    ).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path
