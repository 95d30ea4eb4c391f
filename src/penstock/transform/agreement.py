"""Checks that data match a pipeline.

In: a field of the fitted pipeline and the same field of the data, or the records to fit a transform on.
Out: an error that names the difference.
"""

from __future__ import annotations

from penstock.errors import OptionError, SchemaError
from penstock.schema.array import Sequence
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.transform.base import FitSource, Transform


def check_field(name: str, fitted: Field, given: Field, *, takes_missing: bool) -> None:
    """Refuse a field that differs from the one that the pipeline was fitted to.

    `takes_missing`: whether its transform accepts records without a value.
    """
    same = type(given) is type(fitted) and all(
        getattr(given, attribute, None) == getattr(fitted, attribute, None)
        for attribute in ("dtype", "shape", "unit")
    )
    # Pipelines of versions without dates read them as the whole numbers that records hold.
    same = same or (isinstance(given, Date) and isinstance(fitted, Number) and fitted.dtype == given.dtype)
    if not same:
        raise SchemaError(
            f"field {name!r}",
            field=name,
            expected=f"type {fitted.type_name} ({fitted.describe()}), as when the pipeline was fitted",
            got=f"type {given.type_name} ({given.describe()})",
            advice="Open the data with the schema of the fitted pipeline, or fit a new pipeline to the data.",
        )
    if _can_lack(given) and not _can_lack(fitted) and not takes_missing:
        raise SchemaError(
            f"field {name!r}",
            field=name,
            expected="a value in each record, as when the pipeline was fitted",
            got="an optional field",
            advice="Give the field a default, or fit a new pipeline to the data.",
        )


def refuse_gaps(transform: Transform, name: str, source: FitSource, advice: str) -> None:
    """Refuse a field with missing values during fitting, before the first batch fails."""
    statistics = source.statistics(name)
    if statistics.missing:
        raise OptionError(
            f"{type(transform).__name__} for field {name!r}",
            field=name,
            expected="a value in each record",
            got=f"{statistics.missing} of {statistics.count + statistics.missing} records without a value",
            advice=advice,
        )


def _can_lack(field: Field) -> bool:
    return field.optional and field.default is None and not isinstance(field, Sequence)
