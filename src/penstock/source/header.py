"""The header of a CSV file: the names of its columns.

In: the text of a file. Out: a `Header`, or an error that says what is wrong with it.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import SourceError
from penstock.source.arrowtype import check_names
from penstock.source.rowfault import check_text
from penstock.source.scanner import ScannedRow, scan_rows, split_cells
from penstock.source.stream import TextFile

MAX_COLUMNS = 200_000
"""Each column is a field of the schema; what is wider is a matrix, and belongs into one tensor."""

_DELIMITERS = (";", "\t", "|", ",")


class Header(NamedTuple):
    """The first line of a CSV that is not blank.

    Attributes:
        cells: What it says.
        names: What the columns are called: those without a name by their number.
        num_bytes: How long it is.
        notes: Which columns had no name, and whether the delimiter seems to be another.
        is_alone: Whether no row follows.
    """

    cells: tuple[str, ...]
    names: tuple[str, ...]
    num_bytes: int
    notes: tuple[str, ...]
    is_alone: bool


def read_header(text: TextFile, delimiter: bytes, *, is_told: bool) -> Header:
    """Read the header; whether the delimiter was told decides what one column with a `;` in it means.

    Raises:
        SourceError: There is none, it is no text, two columns have one name, or the delimiter is another.
    """
    rows = scan_rows(text.chunks(), delimiter)
    row = next(rows, None)
    if row is None:
        raise SourceError(
            "the file is empty",
            path=text.path,
            expected="a header and rows",
            got="no line that holds anything",
        )
    if fault := check_text(text, None, row):
        raise fault
    cells = tuple(cell.decode() for cell in split_cells(row.text, delimiter))
    if len(cells) > MAX_COLUMNS:
        raise SourceError(
            "number of columns",
            path=text.path,
            line=row.line,
            expected=f"at most {MAX_COLUMNS}",
            got=len(cells),
            advice="Put them into one tensor: pass a dict of NumPy arrays, {'values': array}.",
        )
    if len(cells) == 1 and not is_told:
        _check_delimiter(text, row, cells[0], delimiter)
    # What pandas writes of an index has no name.
    names = [cell or f"column_{number}" for number, cell in enumerate(cells, 1)]
    notes = tuple(
        f"{text.path.name}: column {number} has no name in the header, and is called 'column_{number}'."
        for number, cell in enumerate(cells, 1)
        if not cell
    )
    if len(cells) == 1 and (other := _find_other(cells[0])):
        name = f"the header is the one name {cells[0][:80]!r} with the delimiter {delimiter.decode()!r}"
        notes += (f"{text.path.name}: {name}. Is it {other!r}?",)
    is_alone = next(rows, None) is None
    return Header(cells, check_names(names, str(text.path)), len(row.text), notes, is_alone)


def _check_delimiter(text: TextFile, row: ScannedRow, cell: str, delimiter: bytes) -> None:
    other = _find_other(cell)
    if other is None:
        return
    raise SourceError(
        "header",
        path=text.path,
        line=row.line,
        expected=f"names between {delimiter.decode()!r}",
        got=f"the one name {cell[:80]!r}",
        advice=f"Name the delimiter: delimiter={other!r} (--delimiter {other!r}).",
    )


def _find_other(cell: str) -> str | None:
    """Return what may stand between the names in a header that was not split."""
    return next((other for other in _DELIMITERS if other in cell), None)
