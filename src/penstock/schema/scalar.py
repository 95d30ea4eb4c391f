"""The field types with one value per record: numbers, categories, text, images, opaque bytes.

In: declarations. Out: frozen objects, checked when made (`SchemaError`).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np

from penstock.columns import Bytes as ByteStrings
from penstock.columns import Kind, Mask
from penstock.foundation.wording import refuse, show
from penstock.schema.field import (
    VALUE_CHECKS,
    CategoryDtype,
    Field,
    NumberDtype,
    check_bytes,
    check_choice,
    check_dtype,
    check_list,
    check_string,
)

ImageFormat: TypeAlias = Literal["jpeg", "png", "webp", "gif", "bmp"]

MAX_CATEGORIES: Final = 1 << 16
"""Maximum number of values of a category; fields with more values are Text or Number."""


MISSING_LABELS: Final = ("NaN", "nan", "NA", "N/A", "null", "None")
"""Texts that mark a missing label in a target whose type is not declared."""


@dataclass(frozen=True, repr=False, eq=False)
class Number(Field):
    """One number per record.

    Float lists of a TFRecord are float32. A float64 is stored exactly, as eight little-endian bytes in a
    bytes list; other readers decode it with `decode_raw`.

    Attributes:
        dtype: Element type: "float32", "int64" or "float64".

    Example:
        >>> Number("int64", default=-1).kind
        'int64'
    """

    dtype: NumberDtype = "float32"
    type_name: ClassVar[str] = "number"

    @property
    def kind(self) -> Kind:
        """Kind of list that stores the field in a record."""
        return "int64" if self.dtype == "int64" else "float" if self.dtype == "float32" else "bytes"

    def describe(self) -> str:
        """Return a short description of the values per record."""
        return f"scalar {self.dtype}{' (raw)' if self.dtype == 'float64' else ''}"

    def _check(self, owner: str) -> None:
        self._keep(dtype=check_dtype(owner, self.dtype, get_args(NumberDtype)))

    def _check_default(self, owner: str) -> float:
        default: float = VALUE_CHECKS[self.dtype](owner, "default", self.default)
        return default


@dataclass(frozen=True, repr=False, eq=False)
class Category(Field):
    """One value per record out of a small set: a label, a code, a country.

    Attributes:
        dtype: Element type: "string" or "int64".
        values: Possible values, sorted, or None if they are unknown. They are informative: reading accepts
            other values.
        unlabelled: For a target: texts of records without a label. Reading returns them, but they are not
            classes. `open` finds them in targets whose type is not declared; they are not stored.

    Example:
        >>> Category(values=("dog", "cat")).values
        ('cat', 'dog')
    """

    dtype: CategoryDtype = "string"
    values: tuple[str, ...] | tuple[int, ...] | None = None
    _: KW_ONLY
    unlabelled: tuple[str, ...] = ()
    type_name: ClassVar[str] = "category"

    @property
    def kind(self) -> Kind:
        """Kind of list that stores the field in a record."""
        return "int64" if self.dtype == "int64" else "bytes"

    def describe(self) -> str:
        """Return a short description of the values per record."""
        if self.values is None:
            return f"scalar {self.dtype}"
        return f"scalar {self.dtype}, {len(self.values)} value{'s' if len(self.values) > 1 else ''}"

    def _check(self, owner: str) -> None:
        self._keep(dtype=check_dtype(owner, self.dtype, get_args(CategoryDtype)))
        if self.unlabelled:
            self._keep(unlabelled=tuple(check_list(owner, "unlabelled", self.unlabelled, "string")))
        if self.values is None:
            return
        values = check_list(owner, "values", self.values, self.dtype)
        if not 0 < len(values) <= MAX_CATEGORIES:
            advice = "Declare the field as Text, or as a Number." if values else "Leave out `values`."
            expected = f"1 to {MAX_CATEGORIES} values"
            raise refuse(owner, "values", expected=expected, got=str(len(values)), advice=advice)
        seen: set[object] = set()
        for i, value in enumerate(values):
            if value in seen:
                got = f"{show(value)} twice"
                raise refuse(owner, f"values[{i}]", expected="distinct values", got=got)
            seen.add(value)
        self._keep(values=tuple(sorted(values)))

    def _check_default(self, owner: str) -> str | int:
        default: str | int = VALUE_CHECKS[self.dtype](owner, "default", self.default)
        if self.values is not None and default not in self.values:
            advice = "Add it to `values`."
            raise refuse(owner, "default", expected="one of `values`", got=show(default), advice=advice)
        return default


def find_unlabelled(field: Category) -> Category:
    """Return a target of strings whose type is not declared, without texts that mark a missing label."""
    if field.dtype != "string":
        return field
    known = None if field.values is None else [str(each) for each in field.values]
    texts = MISSING_LABELS if known is None else [each for each in known if each.strip() in MISSING_LABELS]
    if not texts:
        return field
    values = tuple(each for each in known or () if each not in texts)
    return replace(field, values=values or None, unlabelled=tuple(texts), optional=True)


def find_labelled_rows(field: Field, column: Any) -> Mask:
    """Return which rows of a target have a label."""
    is_present: Mask = column.mask()
    if not isinstance(field, Category) or not field.unlabelled:
        return is_present
    texts = [text.encode() for text in field.unlabelled]
    values = ByteStrings.of(column)
    rows = np.flatnonzero(is_present & np.isin(values.sizes, [len(text) for text in texts]))
    found = is_present.copy()
    found[rows] = [values[int(row)] not in texts for row in rows]
    return found


@dataclass(frozen=True, repr=False, eq=False)
class _ByteStringField(Field):
    """Base class of the fields with one byte string per record."""

    @property
    def kind(self) -> Kind:
        """Kind of list that stores the field in a record."""
        return "bytes"

    def describe(self) -> str:
        """Return a short description of the values per record."""
        return "scalar"


@dataclass(frozen=True, repr=False, eq=False)
class Text(_ByteStringField):
    """One text per record, in UTF-8.

    Example:
        >>> Text(default="").optional
        True
    """

    type_name: ClassVar[str] = "text"

    def _check_default(self, owner: str) -> str:
        return check_string(owner, "default", self.default)


@dataclass(frozen=True, repr=False, eq=False)
class Image(_ByteStringField):
    """One encoded image per record: the bytes of a JPEG, PNG, WebP, GIF or BMP file.

    Attributes:
        format: Format of all images, or None if they differ or it is unknown.

    Example:
        >>> Image("jpeg").describe()
        'scalar jpeg'
    """

    format: ImageFormat | None = None
    type_name: ClassVar[str] = "image"

    def describe(self) -> str:
        """Return a short description of the values per record."""
        return "scalar" if self.format is None else f"scalar {self.format}"

    def _check(self, owner: str) -> None:
        if self.format is not None:
            check_choice(owner, "format", self.format, get_args(ImageFormat))

    def _check_default(self, owner: str) -> bytes:
        return check_bytes(owner, "default", self.default)


@dataclass(frozen=True, repr=False, eq=False)
class Bytes(_ByteStringField):
    """One opaque byte string per record.

    Example:
        >>> Bytes(role="id", key="uuid")
        Bytes(role='id', key='uuid')
    """

    type_name: ClassVar[str] = "bytes"

    def _check_default(self, owner: str) -> bytes:
        return check_bytes(owner, "default", self.default)
