"""The text of a filter as a syntax tree of Python.

In: `age < 3 and breed == "siamese"`. Out: a `Syntax`: the tree from `ast.parse`, which compiles and runs
nothing, and the tokens of the text, which give positions for errors.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias

from penstock.errors import OptionError
from penstock.foundation.wording import show

Value: TypeAlias = int | float | bool | bytes

# The limits are far below the limits of Python's parsers, which differ between versions. Sums and products
# count because each operator is one more level of the tree.
_MAX_CHARACTERS = 1_000_000
_MAX_DEPTH = 50
_MAX_ARITHMETIC = 1000

_TOKEN = re.compile(
    r"""(?P<number>(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<string>b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*")
    |(?P<quoted>`[^`]*`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|==|!=|&&|\|\||<>|\*\*|//|\S)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = {"and", "or", "not", "in", "is", "None"}
_TRUTHS = {"True": True, "False": False}
_ARITHMETIC = {"+", "-", "*", "/", "%"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_SIGNS = {"<", "<=", ">", ">=", "==", "!=", ",", *_ARITHMETIC, *_CLOSING, *_CLOSING.values()}
_QUOTES = {"'", '"', "`"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "0": "\0"}

# Endings that complete the beginning of an expression, and the description of what was expected there.
_ENDINGS = {"_": "a field or a value", "": "an operator or the end", "in _": "in"}
_EXPECTED_AFTER = {"in": "values in parentheses", "is": "None"}
_ADVICE = {
    "=": "Use == to compare.",
    "<>": "Use != for 'not equal'.",
    "&": "Use 'and'.",
    "&&": "Use 'and'.",
    "|": "Use 'or'.",
    "||": "Use 'or'.",
    "!": "Use 'not'.",
    "~": "Use 'not'.",
    "None": "Use 'is None' or 'is not None'.",
}
_QUOTE_NAMES = "Put names with characters other than letters, digits and '_' in backticks."


class Token(NamedTuple):
    """A part of the text.

    Attributes:
        kind: A name, a value, or a "sign": operators, brackets and keywords.
        text: The part as written; of a name in backticks, the name.
        start: Its first character.
        end: Its exclusive end.
        code: Its replacement in the text that Python parses.
        value: The value; strings are the bytes that a record would hold.
    """

    kind: Literal["name", "value", "sign"]
    text: str
    start: int
    end: int
    code: str
    value: Value = 0


class Syntax:
    """A parsed filter.

    Python parses a copy of the text in which `_N` stands for the name or value that is token N. So a field
    may have any name (`class`, or one in backticks), values follow the same rules in all versions of Python,
    and the tree has no constants but None.

    Attributes:
        text: The text.
        tokens: Its tokens.
        tree: The root of the tree.

    Raises:
        OptionError: The text is not an expression, is too long or nested too deeply.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _split(text)
        _check_limits(text, self.tokens)
        codes = [token.code for token in self.tokens]
        self._columns = [0, *accumulate(len(code) + 1 for code in codes)]
        try:
            self.tree = ast.parse(" ".join(codes), mode="eval").body
        except SyntaxError as error:
            index = _find_fault(codes, bisect_right(self._columns, (error.offset or 1) - 1) - 1)
            raise self._refuse_token(index, _expect_after(codes[:index]) or "an expression") from None

    def first_token(self, node: ast.expr) -> int:
        """Return the index of the first token of a node."""
        return bisect_right(self._columns, node.col_offset) - 1

    def start(self, node: ast.expr) -> int:
        """Return the position of a node in the text."""
        return self.tokens[self.first_token(node)].start

    def token(self, name: ast.Name) -> Token:
        """Return the token that a name of the tree stands for."""
        return self.tokens[int(name.id[1:])]

    def refuse(self, node: ast.expr, expected: str, advice: str = "") -> OptionError:
        """Make the error for a node that is valid in Python, but not here."""
        last = bisect_left(self._columns, node.end_col_offset or 0) - 1
        start = self.start(node)
        return refuse_at(
            self.text,
            start,
            expected=expected,
            got=show(self.text[start : self.tokens[last].end]),
            advice=advice,
        )

    def _refuse_token(self, index: int, expected: str) -> OptionError:
        if index == len(self.tokens):
            return refuse_at(self.text, len(self.text), expected=expected, got="the end")
        token = self.tokens[index]
        is_split_name = token.text == "." or (
            token.kind == "name" and index > 0 and self.tokens[index - 1].kind == "name"
        )
        advice = _ADVICE.get(token.text, "") if token.kind == "sign" else ""
        advice = _QUOTE_NAMES if is_split_name else advice
        return refuse_at(self.text, token.start, expected=expected, got=show(token.text), advice=advice)


def refuse_at(text: str, start: int, *, expected: str, got: str, advice: str = "") -> OptionError:
    """Make the error for a position in the text of a filter."""
    where = f"filter {show(text)} at character {start + 1}"
    return OptionError(where, expected=expected, got=got, advice=advice)


def _split(text: str) -> list[Token]:
    if len(text) > _MAX_CHARACTERS:
        expected = f"at most {_MAX_CHARACTERS} characters"
        raise OptionError(f"filter {show(text)}", expected=expected, got=str(len(text)))
    tokens: list[Token] = []
    for found in _TOKEN.finditer(text):
        kind, part, (start, end) = found.lastgroup, found.group(), found.span()
        code = f"_{len(tokens)}"
        if kind == "number":
            tokens.append(Token("value", part, start, end, code, _read_number(part)))
        elif kind == "string":
            tokens.append(Token("value", part, start, end, code, _read_string(text, part, start)))
        elif kind == "quoted":
            tokens.append(Token("name", part[1:-1], start, end, code))
        elif part in _TRUTHS:
            tokens.append(Token("value", part, start, end, code, _TRUTHS[part]))
        elif kind == "word" and part not in _KEYWORDS:
            tokens.append(Token("name", part, start, end, code))
        elif part in _QUOTES:
            # Ends here: the many quotes of a broken text would each be searched for to its end.
            raise refuse_at(text, start, expected="a closing quote", got=show(text[start:]))
        else:
            # "?" is valid nowhere in Python; `_find_fault` then finds this token, or an earlier error.
            is_known = (kind == "word" or part in _SIGNS) and _may_follow(part, tokens)
            tokens.append(Token("sign", part, start, end, part if is_known else "?"))
    return tokens


def _may_follow(sign: str, tokens: list[Token]) -> bool:
    """Whether a sign may follow some tokens; unlike Python there are no lists, indexes and other calls."""
    last = tokens[-1] if tokens else None
    if sign == "None":
        return " ".join(token.code for token in tokens[-2:]).endswith(("is", "is not"))
    if sign in ("[", "{"):
        return last is not None and last.code == "in"
    if sign == "(" and last is not None and _ends_operand(last):
        return last.kind == "name" and last.text == "len"
    return True


def _ends_operand(token: Token) -> bool:
    return token.kind != "sign" or token.code in _CLOSING.values() or token.code == "None"


def _check_limits(text: str, tokens: list[Token]) -> None:
    num_arithmetic = 0
    opened: list[int] = []  # levels of the brackets around, each with the prefixes (not, +, -) before it
    prefixes = 0
    follows_operand = False
    for token in tokens:
        code = token.code
        num_arithmetic += code in _ARITHMETIC
        if num_arithmetic > _MAX_ARITHMETIC:
            expected = f"at most {_MAX_ARITHMETIC} of + - * / %"
            raise refuse_at(text, token.start, expected=expected, got="more")
        if code in _CLOSING:
            opened.append(prefixes + 1)
            prefixes = 0
        elif code in _CLOSING.values() and opened:
            opened.pop()
        is_prefix = code in {"not", "+", "-"} and not follows_operand
        prefixes = prefixes + 1 if is_prefix else 0
        if sum(opened) + prefixes > _MAX_DEPTH:
            expected = f"at most {_MAX_DEPTH} levels of brackets, 'not' and signs"
            raise refuse_at(text, token.start, expected=expected, got="more")
        follows_operand = _ends_operand(token) or code == "is"  # `is not` is one operator


def _find_fault(codes: list[str], guess: int) -> int:
    """Return the index of the first token that no valid expression has there; `guess` is Python's guess."""
    valid, end = 0, len(codes)
    guesses = [guess + 1, guess, end]  # one or two tries where the guess is right: texts may be long
    while valid < end:
        middle = guesses.pop() if guesses else (valid + end + 1) // 2
        if not valid < middle <= end:
            continue
        if _expect_after(codes[:middle]) is None:
            end = middle - 1
        else:
            valid = middle
    return valid


def _expect_after(codes: list[str]) -> str | None:
    """Describe what may follow the beginning of an expression; None if nothing makes it a valid one."""
    opened: list[str] = []
    for code in codes:
        if code in _CLOSING:
            opened.append(_CLOSING[code])
        elif opened and code == opened[-1]:
            opened.pop()
    for ending, expected in _ENDINGS.items():
        try:
            ast.parse(" ".join([*codes, ending, *reversed(opened)]), mode="eval")
        except SyntaxError:
            continue
        if ending == "" and opened:
            return f"an operator or {show(opened[-1])}"
        return _EXPECTED_AFTER.get(codes[-1], expected) if codes else expected
    return None


def _read_number(part: str) -> int | float:
    try:
        return int(part)
    except ValueError:  # a fraction; or more digits than Python converts to an int
        return float(part)


def _read_string(text: str, part: str, start: int) -> bytes:
    is_bytes = part.startswith("b")
    begin = 2 if is_bytes else 1

    def unescape(found: re.Match[str]) -> str:
        escape = found.group(1)
        if escape in _ESCAPED:
            return _ESCAPED[escape]
        if len(escape) > 1 and (escape[0] == "x" or not is_bytes) and int(escape[1:], 16) <= 0x10FFFF:
            return chr(int(escape[1:], 16))
        raise refuse_at(
            text,
            start + begin + found.start(),
            expected="an escape sequence",
            got=show(found.group()),
            advice="Write a backslash as two backslashes.",
        )

    value = _ESCAPE.sub(unescape, part[begin:-1])
    try:
        return value.encode("latin-1" if is_bytes else "utf-8")
    except UnicodeEncodeError:
        expected = "bytes up to \\xff" if is_bytes else "a string that UTF-8 can encode"
        raise refuse_at(text, start, expected=expected, got=show(part)) from None
