"""JSON documents with many rows: an array of objects, or an object with one such array.

In: chunks of a text. Out: where the rows are, and each row as one line of JSON. The text is scanned for
brackets and strings alone and never parsed as a whole, so that memory use does not grow with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import SourceError
from penstock.foundation.wording import list_texts, show
from penstock.source.text_file import BYTE_ORDER_MARK

MAX_ITEM_BYTES: Final = 256 << 20
"""Maximum size of a row."""

_LINES_BYTES: Final = 1 << 20
_BRACKETS: Final = re.compile(rb'["\[\]{}]')
_TOKENS: Final = re.compile(rb'["\[\]{},:]|[^\s"\[\]{},:]+')
# The repeated group is bounded, because `re` keeps some 100 bytes of memory for each repetition.
_INSIDE: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,1000}', re.DOTALL)
_MAX_KEY_BYTES: Final = 1000
_KINDS: Final = {b"[": "an array", b'"': "a string", b"n": "null", b"t": "true", b"f": "false"}


class JsonLayout(NamedTuple):
    """Where the rows of a JSON file are.

    Attributes:
        start: Offset of the bracket that opens the array of rows; None if each line is a row.
        stop: Offset after the bracket that closes it; None for the end of the text.
        note: Note about parts of the document that are not read; empty if there are none.
    """

    start: int | None = None
    stop: int | None = None
    note: str = ""


class _Token(NamedTuple):
    """A bracket, string, separator or other word; `depth` counts the brackets around it."""

    text: bytes
    depth: int
    offset: int

    @property
    def is_array(self) -> bool:
        return self.text == b"["


def find_layout(chunks: Iterable[bytes], path: Path) -> JsonLayout:
    """Return where the rows are: lines, an array, or the only array of objects of an object.

    Lines are recognized by their first object, after which another follows.
    """
    scanner = _Scanner()
    tokens = scanner.tokens(chunks)
    first = next(tokens, None)
    if first is None or first.text not in (b"{", b"["):
        return JsonLayout()
    if first.is_array:
        return JsonLayout(first.offset)
    keys: list[str] = []
    arrays: list[tuple[str, JsonLayout]] = []
    empty: list[tuple[str, JsonLayout]] = []
    key, start, is_row, before = "", 0, False, first
    for token in tokens:
        if token.depth == 0 and token.text != b"}":
            return JsonLayout()  # another object follows
        if token.depth == 1 and token.text == b":":
            key = _decode(before.text)
            keys.append(key)
        elif token.depth == 1 and token.is_array:
            start, is_row = token.offset, False
        elif token.depth == 2 and token.text == b"{" and before.is_array and before.depth == 1:
            is_row = True
        elif token.depth == 1 and token.text == b"]" and (is_row or token.offset == start + 1):
            (arrays if is_row else empty).append((key, JsonLayout(start, token.offset + 1)))
        before = token
    if not arrays and len(keys) == 1:
        arrays = empty  # an empty list of rows
    if len(arrays) == 1:
        ((key, layout),) = arrays
        others = [name for name in keys if name != key]
        note = f"the rows are those of {show(key)}; not read: {list_texts(others[:5])}" if others else ""
        return layout._replace(note=note)
    if not arrays and (before.depth or not scanner.num_lines):
        return JsonLayout()  # one row, or not valid JSON, which parsing it reports
    return _refuse(path, [key for key, _ in arrays])


def _refuse(path: Path, arrays: list[str]) -> JsonLayout:
    raise SourceError(
        "the file is one JSON object",
        path=path,
        expected="an array of objects, an object with one such array, or one object per line",
        got=f"several arrays of objects: {list_texts(arrays)}" if arrays else "no array of objects",
        advice="Write the rows as an array: [{…}, {…}]; in Python, pass them as a list of dicts.",
    )


def _decode(key: bytes) -> str:
    try:
        return str(json.loads(key))
    except ValueError:
        return key.decode(errors="replace")


def split_rows(chunks: Iterable[bytes], layout: JsonLayout, path: Path) -> Iterator[bytes]:
    """Yield the rows of an array as lines of JSON, about a megabyte of them at a time."""
    lines: list[bytes] = []
    num_bytes = 0
    for item in _list_items(_cut(chunks, layout), path):
        line = _join_lines(item) if b"\n" in item or b"\r" in item else item
        lines += [line, b"\n"]
        num_bytes += len(line)
        if num_bytes > _LINES_BYTES:
            yield b"".join(lines)
            lines, num_bytes = [], 0
    yield b"".join(lines)


def _join_lines(item: bytes) -> bytes:
    """Return an object on one line; one that is not valid JSON is returned as it is."""
    try:
        json.loads(
            item, parse_int=str
        )  # a line end inside a string is not valid, and must not become a space
    except (ValueError, RecursionError):
        return item
    return item.replace(b"\n", b" ").replace(b"\r", b" ")


def _cut(chunks: Iterable[bytes], layout: JsonLayout) -> Iterator[bytes]:
    offset = 0
    for chunk in chunks:
        start = max(0, (layout.start or 0) - offset)
        stop = len(chunk) if layout.stop is None else max(0, layout.stop - offset)
        if start < stop:
            yield chunk[start:stop]
        offset += len(chunk)


def _skip_string(window: bytes, position: int) -> tuple[int, bool]:
    """Return the position after the string around `position`, or where to continue, and whether it ends."""
    while True:
        match = _INSIDE.match(window, position)
        end = position if match is None else match.end()
        if window[end : end + 1] == b'"':
            return end + 1, True
        if end >= len(window) - 1:  # the end, or a backslash whose character follows in the next chunk
            return end, False
        position = end


def _list_items(  # noqa: PLR0912 - one branch per kind of token
    chunks: Iterable[bytes], path: Path
) -> Iterator[bytes]:
    """Yield the objects of an array, whose bracket is the first byte."""
    window, position, start, depth, number = b"", 0, None, 0, 0
    is_ended, needs_comma, is_inside = False, False, False
    for chunk in _with_end(chunks):
        window += chunk
        if is_inside:
            position, is_closed = _skip_string(window, position)
            is_inside = not is_closed
        while not is_inside and (match := (_BRACKETS if depth > 1 else _TOKENS).search(window, position)):
            token = match[0]
            if match.end() == len(window) and chunk:
                break  # it may continue in the next chunk
            position = match.end()
            if depth > 1 and token == b'"':
                position, is_closed = _skip_string(window, position)
                is_inside = not is_closed
                continue
            if is_ended:
                raise _broken(path, number, "the end of the file", "more text")
            if depth == 1 and token == b"," and needs_comma:
                needs_comma = False
            elif token in (b"{", b"["):
                if depth == 1:
                    number += 1
                    if token == b"[" or needs_comma:
                        raise _broken(path, number, *_contrast(token, needs_comma=needs_comma))
                    start = match.start()
                depth += 1
            elif token in (b"}", b"]"):
                depth -= 1
                is_ended = depth == 0
                if depth == 1 and start is not None:
                    yield window[start:position]
                    start, needs_comma = None, True
            elif depth == 1:
                raise _broken(path, number + 1, *_contrast(token, needs_comma=needs_comma))
        kept = position if start is None else start
        window, position = window[kept:], position - kept
        start = None if start is None else 0
        if len(window) > MAX_ITEM_BYTES:
            raise _broken(path, number, f"at most {MAX_ITEM_BYTES >> 20} MiB", "more")
    if not is_ended:
        raise _broken(path, number, "a bracket that closes the array", "the end of the file")


def _contrast(token: bytes, *, needs_comma: bool) -> tuple[str, str]:
    if needs_comma:
        return "a comma before the item", repr(token[:20].decode(errors="replace"))
    return "an object", _KINDS.get(token[:1], "a number" if token[:1] not in b",:]}" else "none")


def _broken(path: Path, number: int, expected: str, got: str) -> SourceError:
    return SourceError(
        f"item {number} of the JSON array" if number else "the JSON array",
        path=path,
        row=number or None,
        expected=expected,
        got=got,
        advice="Write the rows as an array of objects: [{…}, {…}].",
    )


class _Scanner:
    """Scans a text for tokens outside of all brackets, and inside one or two of them.

    Attributes:
        num_lines: Number of line ends between the tokens so far.
    """

    def __init__(self) -> None:
        self.num_lines = 0

    def tokens(self, chunks: Iterable[bytes]) -> Iterator[_Token]:
        """Yield the tokens; at depth 2, only brackets."""
        window, position, offset, depth = b"", 0, 0, 0
        key: bytes | None = None  # the beginning of a string that is not closed yet
        for chunk in _with_end(chunks):
            window += chunk
            while True:
                if key is not None:
                    end, is_closed = _skip_string(window, position)
                    key = (key + window[position:end])[:_MAX_KEY_BYTES]
                    position = end
                    if not is_closed:
                        break
                    if depth < 2:
                        yield _Token(key, depth, offset + position - 1)
                    key = None
                match = (_BRACKETS if depth > 1 else _TOKENS).search(window, position)
                if match is None:
                    break
                token = match[0]
                if match.end() == len(window) and chunk:
                    break  # it may continue in the next chunk
                if offset or position:
                    self.num_lines += window.count(b"\n", position, match.start())
                position = match.end()
                if token == b'"':
                    key = token
                    continue
                depth -= token in (b"}", b"]")
                text = token.removeprefix(BYTE_ORDER_MARK)
                if text and (depth < 2 or token in (b"{", b"[")) and depth < 3:
                    yield _Token(text, depth, offset + match.start())
                depth += token in (b"{", b"[")
            offset += position
            window, position = window[position:], 0


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield from (chunk for chunk in chunks if chunk)
    yield b""
