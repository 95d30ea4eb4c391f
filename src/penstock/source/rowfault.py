"""What is wrong with a CSV file, and on which line: asked when pyarrow has refused it.

In: the text of a file. Out: the error for its first fault.
"""

from __future__ import annotations

from penstock.errors import SourceError
from penstock.source.scanner import MAX_ROW_BYTES, ScannedRow, count_lines, scan_rows, split_cells
from penstock.source.stream import TextFile


def find_fault(
    text: TextFile, delimiter: bytes, num_columns: int, *, fills_short: bool
) -> SourceError | None:
    """Return the error for the first row that is not sound, or None; a header is row 0."""
    for row, scanned in enumerate(scan_rows(text.chunks(), delimiter)):
        if fault := check_text(text, row or None, scanned):
            return fault
        num_cells = len(split_cells(scanned.text, delimiter))
        if num_cells > num_columns or (num_cells < num_columns and not fills_short):
            return _wrong_count(text, delimiter, row, scanned, (num_columns, num_cells))
    return None


def check_text(text: TextFile, row: int | None, scanned: ScannedRow) -> SourceError | None:
    """Return the error for a row that ends inside a quote, is too long, or is no UTF-8; or None."""
    content = scanned.text
    if scanned.unclosed is not None:
        shown = content[scanned.unclosed :][:20].decode(errors="replace")
        return SourceError(
            "a quote opens and is never closed",
            path=text.path,
            row=row,
            line=scanned.line + count_lines(content[: scanned.unclosed]),
            advice=f"Close it, or double it if it is part of the text: {shown!r}.",
        )
    if not scanned.is_whole:
        return SourceError(
            "length of the row",
            path=text.path,
            row=row,
            line=scanned.line,
            expected=f"at most {MAX_ROW_BYTES >> 20} MiB",
            got="more",
            advice="Check the line ends.",
        )
    try:
        content.decode()
    except UnicodeDecodeError as error:
        got = content[error.start : error.start + 4]
        return text.encoding_error(scanned.offset + error.start, got, row, scanned.line)
    return None


def _wrong_count(
    text: TextFile, delimiter: bytes, row: int, scanned: ScannedRow, counts: tuple[int, int]
) -> SourceError:
    expected, got = counts
    advice = f"Quote cells that hold the delimiter {delimiter.decode()!r}."
    if got < expected:
        advice = "Complete it, or take the rest as missing: short_rows='fill' (--short-rows fill)."
    if more := count_lines(scanned.text):
        advice = f"The row goes on to line {scanned.line + more}: a quote may be open. {advice}"
    return SourceError(
        "number of cells",
        path=text.path,
        row=row,
        line=scanned.line,
        expected=expected,
        got=got,
        advice=advice,
    )
