"""A terminal for tests: it shows what a person would see of the text and escape codes that it receives."""

import io
import os
import re

_PART = re.compile(r"\x1b\[(\??\d*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


class Screen(io.StringIO):
    """A stream that says it is a terminal.

    Args:
        columns: Width of the terminal.
        rows: Height of the terminal.
        encoding: Encoding of the stream.
    """

    encoding = "utf-8"

    def __init__(self, columns: int = 120, rows: int = 24, encoding: str = "utf-8") -> None:
        super().__init__()
        self.columns = columns
        self.rows = rows
        self.encoding = encoding
        self.is_cursor_shown = True

    def isatty(self) -> bool:
        return True

    def size(self) -> os.terminal_size:
        return os.terminal_size((self.columns, self.rows))

    @property
    def lines(self) -> list[str]:
        """The lines that are visible now, without empty ones at the end."""
        lines, row, column = [""], 0, 0
        for number, code, is_return, is_newline, text in _PART.findall(self.getvalue()):
            if is_return:
                column = 0
            elif is_newline:
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif text:
                text.encode(self.encoding)  # as the stream of a terminal would
                lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
                column += len(text)
            elif code == "A":
                row -= int(number)
                assert row >= 0, "the cursor left the screen"
            elif code in "KJ":
                lines[row] = lines[row][:column]
                if code == "J":
                    del lines[row + 1 :]
            elif code in "hl":
                self.is_cursor_shown = code == "h"
            else:
                assert code == "m", f"unknown escape code {code!r}"
        while lines and not lines[-1]:
            lines.pop()
        return lines
