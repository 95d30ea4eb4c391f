"""A table that Python's csv module writes is read back the same, whatever its delimiter and quoting."""

import csv
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.encode.column import encode_column
from penstock.jobs.convert.convert import plan_conversion
from penstock.plan.planner import PlanOverrides
from penstock.plan.styled_texts import FORMATS
from penstock.schema.declaration import ColumnDeclaration
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import StoredImages, TextFiles
from penstock.source.opening import open_source

CELLS = st.text(alphabet='ab,;|\t"\n 1.é', max_size=8).filter(lambda cell: not cell.startswith(" "))
TABLES = st.integers(2, 5).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=6)
)


@settings(max_examples=200)
@given(
    TABLES,
    st.sampled_from(",;|\t"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_written_table_reads_back_equal(tmp_path_factory, rows, delimiter, quoting, line_end):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=line_end)
    names = [f"n{number}" for number in range(len(rows[0]))]
    writer.writerows([names, *rows])
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    path.write_bytes(text.getvalue().encode())
    blocks = list(open_source(path, TextFiles()).blocks())
    found = [dict(zip(names, row, strict=True)) for row in zip(*(b for b in _columns(blocks)), strict=True)]
    missing = None if quoting == csv.QUOTE_MINIMAL else ""  # only quotes distinguish an empty text
    assert found == [{name: cell or missing for name, cell in zip(names, row, strict=True)} for row in rows]


@settings(max_examples=100)
@given(
    st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 100), min_size=1, max_size=30),
    st.sampled_from(FORMATS),
    st.sampled_from(";|\t"),
    st.booleans(),
)
def test_written_numbers_read_back_equal(tmp_path_factory, numbers, style, delimiter, is_declared):
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["n", "x"])
        writer.writerows(enumerate(_write(number, style) for number in numbers))
    declared = {"decimal": style.decimal, "thousands": style.thousands} if is_declared else {}
    options = ConvertOptions(**declared)
    plan = plan_conversion(path, PlanOverrides(types={"x": _DOUBLE}), options)
    (block,) = open_source(path, TextFiles()).blocks()
    column = next(each for each in plan if each.column == "x")
    encoded, faults = encode_column(column, block.columns["x"], block, StoredImages())
    assert (encoded.values.tolist(), faults) == (numbers, [])


_DOUBLE = ColumnDeclaration("number", {"dtype": "float64"})


def _write(number: float, style) -> str:
    """Return a number with two decimals, which no other format can be mistaken for."""
    text = f"{number:,.2f}".replace(",", "T").replace(".", style.decimal)
    return text.replace("T", style.thousands)


def _columns(blocks):
    return [
        [cell for block in blocks for cell in block.columns[name].to_pylist()] for name in blocks[0].columns
    ]
