"""The text of a filter cut into words, signs and values.

In: `age < 3 and breed == "siamese"`. Out: tokens, each with its place in the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from penstock.errors import OptionError
from penstock.foundation.wording import show

Value: TypeAlias = int | float | bool | bytes

_TOKEN = re.compile(
    r"""(?P<number>(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<string>b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*")
    |(?P<quoted>`[^`]*`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|==|!=|&&|\|\||<>|\*\*|//|\S)""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_KEYWORDS = {"and", "or", "not", "in", "is", "None"}
_TRUTHS = {"True": True, "False": False}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "0": "\0"}

_ADVICE = {
    "=": "Write == to compare.",
    "<>": "Write != for what is not equal.",
    "&": "Write and.",
    "&&": "Write and.",
    "|": "Write or.",
    "||": "Write or.",
    "!": "Write not.",
    "~": "Write not.",
    "'": "A string ends with the quote that it begins with.",
    '"': "A string ends with the quote that it begins with.",
    "`": "A name in backticks ends with one.",
    ".": "A name that has such signs stands in backticks.",
    "None": "Write `is None` or `is not None`.",
}


class Token(NamedTuple):
    """A piece of the text.

    Attributes:
        kind: "value", "name", "keyword", "sign" or "end".
        text: The piece; a name that stands in backticks, without them.
        at: Where it begins.
        value: What it stands for. Strings are the bytes that a record would hold.
    """

    kind: str
    text: str
    at: int
    value: Value = 0


def cut(text: str) -> list[Token]:
    """Cut a text into tokens, the last of which is its end.

    Raises:
        OptionError: A string in it cannot be read.
    """
    tokens = []
    at = _pass_space(text, 0)
    while (found := _TOKEN.match(text, at)) is not None:
        kind, piece = found.lastgroup, found.group()
        if kind == "number":
            tokens.append(Token("value", piece, at, _read_number(piece)))
        elif kind == "string":
            tokens.append(Token("value", piece, at, _read_string(text, piece, at)))
        elif kind == "quoted":
            tokens.append(Token("name", piece[1:-1], at))
        elif kind == "word" and piece in _TRUTHS:
            tokens.append(Token("value", piece, at, _TRUTHS[piece]))
        elif kind == "word":
            tokens.append(Token("keyword" if piece in _KEYWORDS else "name", piece, at))
        else:
            tokens.append(Token("sign", piece, at))
        at = _pass_space(text, found.end())
    return [*tokens, Token("end", "", len(text))]


def refuse_at(text: str, at: int, *, expected: str, got: str, advice: str = "") -> OptionError:
    """Make the error for a place in the text of a filter."""
    where = f"filter {show(text)} at character {at + 1}"
    return OptionError(where, expected=expected, got=got, advice=advice)


def refuse_token(text: str, token: Token, expected: str) -> OptionError:
    """Make the error for a token that stands where another should."""
    got = "the end" if token.kind == "end" else show(token.text)
    advice = "" if token.kind in ("value", "name") else _ADVICE.get(token.text, "")
    return refuse_at(text, token.at, expected=expected, got=got, advice=advice)


def _pass_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _read_number(piece: str) -> int | float:
    try:
        return int(piece)
    except ValueError:  # a fraction; or more digits than Python reads as a whole number
        return float(piece)


def _read_string(text: str, piece: str, at: int) -> bytes:
    is_bytes = piece.startswith("b")
    begin = 2 if is_bytes else 1

    def unescape(found: re.Match[str]) -> str:
        escape = found.group(1)
        if escape in _ESCAPED:
            return _ESCAPED[escape]
        if len(escape) > 1 and (escape[0] == "x" or not is_bytes) and int(escape[1:], 16) <= 0x10FFFF:
            return chr(int(escape[1:], 16))
        advice = "A backslash that is meant is written twice."
        place = at + begin + found.start()
        raise refuse_at(text, place, expected="an escape", got=show(found.group()), advice=advice)

    value = _ESCAPE.sub(unescape, piece[begin:-1])
    try:
        return value.encode("latin-1" if is_bytes else "utf-8")
    except UnicodeEncodeError:
        expected = "bytes up to \\xff" if is_bytes else "a string that UTF-8 can write"
        raise refuse_at(text, at, expected=expected, got=show(piece)) from None
