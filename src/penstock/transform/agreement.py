"""Whether a pipeline can take the data that it is given.

In: a field as it was when the pipeline was fitted and as it is now, or what a transform is to be fitted on.
Out: an error that names the difference.
"""

from __future__ import annotations

from penstock.errors import OptionError, SchemaError
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.transform.base import FitSource, Transform


def check_field(name: str, fitted: Field, given: Field, *, takes_missing: bool) -> None:
    """Refuse a field that is not what the pipeline was fitted to.

    Args:
        name: Of the field.
        fitted: As it was.
        given: As it is.
        takes_missing: Whether its transform takes records that lack the field.

    Raises:
        SchemaError: Its type is another one, or records may lack it as none could before.
    """
    same = type(given) is type(fitted) and all(
        getattr(given, attribute, None) == getattr(fitted, attribute, None)
        for attribute in ("dtype", "shape")
    )
    if not same:
        raise SchemaError(
            f"field {name!r}",
            field=name,
            expected=f"type {fitted.type_name} ({fitted.describe()}), as when the pipeline was fitted",
            got=f"type {given.type_name} ({given.describe()})",
            advice="Open the data with the schema of the other data set, or fit a pipeline to this one.",
        )
    if _can_lack(given) and not _can_lack(fitted) and not takes_missing:
        raise SchemaError(
            f"field {name!r}",
            field=name,
            expected="a value in each record, as when the pipeline was fitted",
            got="an optional field",
            advice="Give it a default, or fit a pipeline to this data set.",
        )


def refuse_gaps(transform: Transform, name: str, source: FitSource, advice: str) -> None:
    """Refuse a field of which values are missing, before the first batch does.

    Raises:
        OptionError: Records lack it; the message says how many.
    """
    statistics = source.statistics(name)
    if statistics.missing:
        raise OptionError(
            f"{type(transform).__name__} for field {name!r}",
            field=name,
            expected="a value in each record",
            got=f"{statistics.missing} of {statistics.count + statistics.missing} without one",
            advice=advice,
        )


def _can_lack(field: Field) -> bool:
    return field.optional and field.default is None and not isinstance(field, Sequence)
