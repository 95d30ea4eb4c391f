"""Columns of the members of WebDataset samples: what the files of one extension become.

In: the bytes of members. Out: Arrow columns, and the fields that they declare. All members are surveyed
before the first one is converted, so that a column has one type in all archives.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock.errors import SourceError
from penstock.foundation.wording import show
from penstock.schema.field import Field
from penstock.schema.scalar import Category, Image, Text

_INTEGER: Final = re.compile(rb"[+-]?(?:0|[1-9]\d{0,18})")


class MemberColumn(ABC):
    """The members of one extension; `survey` is called for all of them before `convert`.

    Attributes:
        extension: Extension of the members, and the name of the column.
        survey_bytes: Number of first bytes that `survey` needs; None for all.
    """

    survey_bytes: int | None = 0

    def __init__(self, extension: str) -> None:
        self.extension = extension

    @property
    def note(self) -> str:
        """Note about the column for the user; empty if there is none."""
        return ""

    def survey(self, data: bytes, num_bytes: int, key: str) -> None:  # noqa: B027 - no survey by default
        """Look at one member: its first bytes, its size, and the key of its sample.

        Raises:
            ValueError: The member is not valid; the error has the expected and the actual content.
        """

    def finish(self, path: Path) -> None:  # noqa: B027 - as above
        """Finish the survey of one archive.

        Raises:
            SourceError: Values of several members contradict each other.
        """

    def merge(self, other: MemberColumn) -> None:  # noqa: B027 - as above
        """Add the findings about the members of another archive."""

    @abstractmethod
    def list_fields(self, taken: frozenset[str]) -> list[pa.Field[Any]]:
        """Return names and types of the Arrow columns; `taken` are the names of other columns."""

    @abstractmethod
    def convert(self, values: Sequence[bytes | None], keys: Sequence[str], path: Path) -> list[pa.Array[Any]]:
        """Return the Arrow columns of some samples; None is a missing member.

        Raises:
            ValueError: See `survey`.
        """

    def declare(self) -> Field | None:
        """Return the field of the column; None if it is inferred."""
        return None


class BadMemberError(ValueError):
    """A member that is not what its extension says.

    Attributes:
        key: Key of its sample.
        expected: Expected content.
        got: Actual content.
        advice: What to do about it.
    """

    def __init__(self, key: str, expected: str, got: str, advice: str = "") -> None:
        self.key, self.expected, self.got, self.advice = key, expected, got, advice
        super().__init__(f"expected {expected}, got {got}")


def refuse_change(path: Path, key: str) -> SourceError:
    """Return the error for a member that is not as in the first pass."""
    return SourceError(
        f"sample {show(key)}",
        path=path,
        expected="the same content in each pass over the archive",
        got="another content",
        advice="Convert again when no other program writes to the archive.",
    )


class BytesColumn(MemberColumn):
    """Files of any other extension, which are kept as bytes."""

    @property
    def note(self) -> str:
        """A note that the files are kept as bytes."""
        return f"files with the extension {show(self.extension)} are kept as bytes"

    def list_fields(self, taken: frozenset[str]) -> list[pa.Field[Any]]:  # noqa: ARG002
        """Return one column of bytes."""
        return [pa.field(self.extension, pa.large_binary())]

    def convert(self, values: Sequence[bytes | None], keys: Sequence[str], path: Path) -> list[pa.Array[Any]]:  # noqa: ARG002
        """Return the bytes."""
        return [pa.array(values, pa.large_binary())]


class ImageColumn(BytesColumn):
    """Encoded images."""

    @property
    def note(self) -> str:
        """No note."""
        return ""

    def declare(self) -> Field:
        """Return an image."""
        return Image()


class TextColumn(BytesColumn):
    """Texts, as bytes: the encoder reports those that are not UTF-8."""

    @property
    def note(self) -> str:
        """No note."""
        return ""

    def declare(self) -> Field:
        """Return a text."""
        return Text()


class IntegerColumn(MemberColumn):
    """Whole numbers in decimal digits; texts if a member is not a whole number of 64 bits."""

    survey_bytes = 64

    def __init__(self, extension: str) -> None:
        super().__init__(extension)
        self._are_integers = True

    def survey(self, data: bytes, num_bytes: int, key: str) -> None:  # noqa: ARG002
        """Note whether the member is a whole number."""
        text = data.strip()
        self._are_integers &= num_bytes < IntegerColumn.survey_bytes and (
            not text or _parse_integer(text) is not None
        )

    def merge(self, other: MemberColumn) -> None:
        """See `MemberColumn`."""
        if isinstance(other, IntegerColumn):
            self._are_integers &= other._are_integers

    def list_fields(self, taken: frozenset[str]) -> list[pa.Field[Any]]:  # noqa: ARG002
        """Return one column of integers, or of strings."""
        return [pa.field(self.extension, pa.int64() if self._are_integers else pa.large_string())]

    def convert(self, values: Sequence[bytes | None], keys: Sequence[str], path: Path) -> list[pa.Array[Any]]:
        """Return the numbers; an empty member is missing."""
        texts = [None if value is None else value.strip() or None for value in values]
        if not self._are_integers:
            return [make_texts(texts, keys)]
        numbers = [None if text is None else _parse_integer(text) for text in texts]
        for text, number, key in zip(texts, numbers, keys, strict=True):
            if text is not None and number is None:
                raise refuse_change(path, key)
        return [pa.array(numbers, pa.int64())]


class ClassColumn(IntegerColumn):
    """Numbers or names of classes."""

    def declare(self) -> Field:
        """Return a category."""
        return Category("int64" if self._are_integers else "string")


def make_texts(values: Sequence[bytes | None], keys: Sequence[str]) -> pa.Array[Any]:
    """Return a column of texts after checking that they are UTF-8."""
    texts = []
    for value, key in zip(values, keys, strict=True):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            raise BadMemberError(key, "text in UTF-8", show(value)) from None
    return pa.array(texts, pa.large_string())


def _parse_integer(text: bytes) -> int | None:
    """Return a whole number of 64 bits without leading zeros, which codes have; None for other text."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is None or -(2**63) <= number < 2**63 else None
