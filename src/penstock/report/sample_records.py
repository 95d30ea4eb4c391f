"""Records to look at: values shortened, images as thumbnails, numbers of sequences for small charts.

In: a split and row numbers. Out: one dict per record, JSON-able.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

import numpy as np

from penstock.dataset import Split
from penstock.decode.sample_view import Thumbnails
from penstock.decode.short_value import show_value
from penstock.errors import PenstockError
from penstock.schema.schema import Schema
from penstock.score.evaluation import format_date
from penstock.score.scores import to_number

MOST_FIELDS: Final = 30
"""Maximum number of values of a record that are shown: targets, then fields in the order of the schema."""

_MAX_CHARS: Final = 500  # of a text
_MOST_NUMBERS: Final = 100  # of a sequence
_LONGEST_SIDE: Final = 160  # of a thumbnail: a card on a phone is about twice as wide, in CSS pixels
_LEAST_NUMBERS: Final = 16  # fewer are easier to read than to draw


def start_pictures() -> Thumbnails:
    """Return new thumbnails for one half of a report: the page has less than 3 MB with both."""
    return Thumbnails(_LONGEST_SIDE, max_pictures=120, max_chars=1_000_000, max_pixels=500_000_000)


def choose_rows(num_records: int, num_wanted: int) -> list[int]:
    """Return row numbers at even distances.

    Example:
        >>> choose_rows(100, 4)
        [12, 37, 62, 87]
    """
    num_shown = min(num_records, num_wanted)
    return [(2 * number + 1) * num_records // (2 * num_shown) for number in range(num_shown)]


def describe_records(
    split: Split,
    rows: Iterable[int],
    pictures: Thumbnails,
    forms: Mapping[str, str] | None = None,
    left_out: Container[str] = (),
) -> list[dict[str, Any]]:
    """Return the values of some records; a record that cannot be read has an `error` instead.

    `pictures`: makes the thumbnails; images beyond its limits are described by their text alone. `forms`:
    type of the values in each raw column: "date" and "time" are stored as numbers.
    """
    names = [name for name in sort_fields(split.schema) if name not in left_out]
    found: list[dict[str, Any]] = []
    for row in rows:
        record: dict[str, Any] = {"split": split.name, "row": row}
        try:
            sample = split[row]
        except PenstockError as error:
            found.append({**record, "error": str(error), "values": []})
            continue
        values = [
            _describe_value(
                name, split.schema[name].type_name, sample.get(name), (forms or {}).get(name), pictures
            )
            for name in names[:MOST_FIELDS]
        ]
        found.append({**record, "values": values, "num_left": max(0, len(names) - MOST_FIELDS)})
    return found


def sort_fields(schema: Schema) -> list[str]:
    """Return the names of the fields: targets, inputs, and those that models do not read."""
    order = {"target": 0, "input": 1}
    return sorted(schema, key=lambda name: order.get(schema[name].role, 2))


def _describe_value(
    name: str, type_name: str, value: Any, form: str | None, pictures: Thumbnails
) -> dict[str, Any]:
    if value is None:
        return {"name": name, "type": type_name, "text": None}
    date = format_date(value, form or "value")
    found: dict[str, Any] = {"name": name, "type": type_name, "text": date or show_value(value, _MAX_CHARS)}
    picture = pictures.make(value) if type_name in ("image", "tensor") else None
    if picture is not None:
        found["picture"] = picture
    if isinstance(value, np.ndarray) and value.ndim == 1 and len(value) >= _LEAST_NUMBERS:
        step = -(-len(value) // _MOST_NUMBERS)
        found["numbers"] = [to_number(float(each)) for each in value[::step]]
    return found
