"""Options for reading raw data, validated when they are made."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from penstock.errors import OptionError
from penstock.foundation.option_checks import OptionChecks
from penstock.foundation.wording import show
from penstock.storage.store_path import is_store_path, parse_store_path

ShortRows: TypeAlias = Literal["raise", "fill"]
HeaderLine: TypeAlias = Literal["first", "none"]


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options for raw data, most of them for text files: CSV, TSV and JSON lines.

    Attributes:
        delimiter: Character between the cells of a CSV file; None: detected from the first rows of each file
            among comma, semicolon, tab and `|`. A backslash followed by t, as a shell passes it, means a tab.
        header: Whether the "first" line of a CSV file or the first row of a sheet has the names of the
            columns; "none" (or None): there are no names, and columns are named column_1, column_2, ….
        encoding: Encoding of the text. A UTF-8 byte order mark is always removed.
        missing: Texts of unquoted CSV cells that mark a missing value. By default only the empty cell,
            because "NA" and "null" are names of people and places too. A quoted cell is always a value. In
            other sources: texts that mark a missing value; the empty text is a value there.
        short_rows: Handling of CSV rows with too few cells: "raise" an error, or "fill" them with missing
            values.
        sheet: Name of the sheet of an Excel or OpenDocument file; None for the first one.
        files_from: Folders and URLs whose files cells of tables may name. Always allowed are the folder of a
            table, and local files for a local table or one in memory.

    Example:
        >>> SourceOptions(delimiter=";", missing=("", "NA")).missing
        ('', 'NA')
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("",)
    short_rows: ShortRows = "raise"
    header: HeaderLine | None = "first"
    sheet: str | None = None
    files_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", "\t" if self.delimiter == r"\t" else self.delimiter)
            self._check_delimiter(self.delimiter)
        self._check_encoding()
        given = self.missing
        if not isinstance(given, (tuple, list)) or not all(isinstance(text, str) for text in given):
            advice = "Write several as ('', 'NA')."
            raise OptionError("missing", expected="a tuple of str", got=show(given), advice=advice)
        object.__setattr__(self, "missing", tuple(given))
        OptionChecks(self).choice("short_rows", get_args(ShortRows))
        object.__setattr__(self, "header", "none" if self.header is None else self.header)
        OptionChecks(self).choice("header", get_args(HeaderLine))
        OptionChecks(self).instance("sheet", str, "the name of a sheet")
        for folder in self.files_from:
            if is_store_path(folder):
                parse_store_path(folder)  # refuses credentials, and protocols that are not supported

    def _check_delimiter(self, delimiter: object) -> None:
        is_valid = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
        if not is_valid or delimiter in ("\0", '"', "\r", "\n"):
            raise OptionError(
                "delimiter",
                expected=r"one ASCII character that is not a quote or a line end, or '\t' for a tab",
                got=show(delimiter),
                advice="By default it is detected.",
            )

    def _check_encoding(self) -> None:
        try:
            name = codecs.lookup(self.encoding).name
            "".encode(name)  # codecs such as base64 are not text encodings
        except (LookupError, TypeError):
            raise OptionError(
                "encoding",
                expected="the name of a text encoding",
                got=show(self.encoding),
                advice="Usual ones are 'utf-8', 'latin-1', 'cp1252' and 'utf-16'.",
            ) from None
        object.__setattr__(self, "encoding", name)
