"""The data half of a report: splits, fields, sample records, duplicates and warnings.

In: an opened data set. Out: one dict, JSON-able. All figures come from a bounded sample of each split.
Records to look at have shortened values, images as thumbnails, and numbers of sequences for small charts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.dataset import Dataset, Split
from penstock.decode.sample import show_value
from penstock.decode.sample_view import Thumbnails
from penstock.errors import PayloadError, PenstockError, SchemaError
from penstock.format.manifest import Manifest
from penstock.report.data_warnings import find_warnings
from penstock.report.field_report import describe_field
from penstock.report.split_sample import EMPTY_KEY, Keys, SplitSample, choose_records, hash_rows, sample_split
from penstock.schema.date import date_forms
from penstock.schema.declaration import find_forms
from penstock.schema.schema import Schema
from penstock.score.evaluation import format_date
from penstock.score.scores import to_number
from penstock.settings.prediction import ReportOptions
from penstock.statistics.summary import FieldStatistics, load_statistics

_MOST_FIELDS: Final = 300  # with figures: targets, then inputs, in the order of the schema
TRAIN: Final = "train"
OnProgress = Callable[[str, int, int], None]
_LARGE: Final = ("image", "text", "tensor", "sequence", "bytes")
_LEAST_DISTINCT: Final = 0.9  # share of distinct values: categories and short texts repeat anyway

_MOST_VALUES: Final = 30
"""Maximum number of values of a record that are shown: targets, then fields in the order of the schema."""

_MAX_CHARS: Final = 500  # of a text
_MOST_NUMBERS: Final = 100  # of a sequence
_LONGEST_SIDE: Final = 160  # of a thumbnail: a card on a phone is about twice as wide, in CSS pixels
_LEAST_NUMBERS: Final = 16  # fewer are easier to read than to draw


def describe_data(
    dataset: Dataset, options: ReportOptions, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Return all figures about a data set.

    `on_progress`: called with the current task, its finished part, and the whole of it.
    """
    if dataset.payload == "other":
        raise PayloadError(
            "the records are not Examples, so that a report has no fields to describe",
            path=dataset.paths[0],
            advice="Look at the bytes: penstock inspect.",
        )
    samples = []
    for name in sorted(dataset.splits, key=lambda name: name != TRAIN):  # others are compared with it
        split = dataset[name]
        wanted = choose_records(split, options.records, len(dataset))

        def show(done: int, total: int, name: str = name) -> None:
            if on_progress is not None:
                on_progress(f"reading {name}", done, total)

        samples.append(sample_split(split, wanted, show))
    reference = find_reference(samples)
    forms = find_dates(dataset.manifest, dataset.schema)
    known = _load_known(dataset.manifest, reference)
    names = _sort_fields(dataset.schema)
    fields = [
        describe_field(
            name, dataset.schema[name], samples, reference, forms.get(name, "value"), known.get(name)
        )
        for name in names[:_MOST_FIELDS]
    ]
    duplicates = _describe_duplicates(dataset.schema, samples, reference)
    warnings = find_warnings(dataset.schema, samples, reference, fields, duplicates)
    shown = dataset[reference.name] if reference is not None else None
    pictures = start_pictures()
    records = (
        []
        if shown is None
        else describe_records(shown, _choose_rows(len(shown), options.samples), pictures, forms)
    )
    return {
        "paths": sorted({str(path.parent) for path in dataset.paths}),
        "records": sum(each.num_records for each in samples),
        "bytes": sum(each.num_bytes for each in samples),
        "num_fields": len(dataset.schema),
        "reference": None if reference is None else reference.name,
        "splits": _describe_splits(samples),
        "made": _describe_manifest(dataset.manifest),
        "fields": fields,
        "duplicates": duplicates,
        "warnings": [each.to_json() for each in warnings],
        "notes": {name: str(note) for name, note in dataset.notes.items()},
        "samples": records,
        "picture_notes": pictures.notes,
    }


def find_reference(samples: list[SplitSample]) -> SplitSample | None:
    """Return the sample of the train split, or of the first split with records; None if all are empty."""
    filled = [each for each in samples if each.num_read]
    return next((each for each in filled if each.name == TRAIN), filled[0] if filled else None)


def find_dates(manifest: Manifest | None, schema: Schema) -> dict[str, str]:
    """Return "date" or "time" for fields of dates, and for numbers that were dates in the raw data."""
    try:
        forms = find_forms(manifest.plan) if manifest is not None else {}
    except SchemaError:
        forms = {}  # of another version: the fields are shown as the numbers that are stored
    plain = {name: form for name, form in forms.items() if form in ("date", "time")}
    return {**plain, **date_forms(schema)}


def _load_known(manifest: Manifest | None, reference: SplitSample | None) -> dict[str, FieldStatistics]:
    """Return the statistics of the train split in the manifest, if only a part of it was read."""
    if manifest is None or not manifest.statistics or reference is None or reference.name != TRAIN:
        return {}
    return {} if reference.is_whole else load_statistics(manifest.statistics)


def _describe_splits(samples: list[SplitSample]) -> list[dict[str, Any]]:
    total = sum(each.num_records for each in samples)
    return [
        {
            "name": each.name,
            "records": each.num_records,
            "share": each.num_records / total if total else None,
            "bytes": each.num_bytes,
            "read": each.num_read,
            "skipped": each.num_skipped,
            "is_whole": each.is_whole,
        }
        for each in samples
    ]


def _describe_manifest(manifest: Manifest | None) -> dict[str, Any] | None:
    if manifest is None:
        return None
    names = ("method", "seed", "group", "by", "time", "stratify", "duplicates", "equal_rows")
    return {
        "split": {name: manifest.split[name] for name in names if manifest.split.get(name) is not None},
        "rejected": manifest.rejects.get("count", 0),
        "source": [
            {key: each.get(key) for key in ("name", "rows", "bytes") if each.get(key) is not None}
            for each in manifest.source
        ],
        "version": manifest.version,
    }


def _describe_duplicates(
    schema: Schema, samples: Sequence[SplitSample], reference: SplitSample | None
) -> dict[str, Any]:
    """Return equal records and equal values, among the records that were read.

    Records are equal if all fields are, except for ids and weights.

    `reference`: sample of the split that others are compared with, usually the train split.
    """
    compared = [name for name, field in schema.items() if field.role not in ("id", "weight")]
    rows = {each.name: hash_rows({name: each.keys[name] for name in compared}) for each in samples}
    seen = rows[reference.name] if reference is not None else np.zeros(0, np.uint64)
    splits = {}
    for each in samples:
        keys = rows[each.name]
        splits[each.name] = {"read": len(keys), "repeated": int(len(keys) - len(np.unique(keys)))}
        if reference is not None and each is not reference:
            splits[each.name]["in_reference"] = int(np.isin(keys, seen).sum())
    return {
        "records": sum(each.num_read for each in samples),
        "is_whole": all(each.is_whole for each in samples),
        "reference": None if reference is None else reference.name,
        "splits": splits,
        "fields": _find_shared_values(schema, samples, reference),
    }


def _find_shared_values(
    schema: Schema, samples: Sequence[SplitSample], reference: SplitSample | None
) -> dict[str, dict[str, int]]:
    """Return the number of records of each split whose value is also in the reference split, by field."""
    found: dict[str, dict[str, int]] = {}
    if reference is None or not reference.num_read:
        return found
    for name, field in schema.items():
        if field.role != "input" or field.type_name not in _LARGE:
            continue
        known = _list_present(reference, name)
        if len(np.unique(known)) < _LEAST_DISTINCT * max(1, len(known)):
            continue
        shared = {
            each.name: int(np.isin(_list_present(each, name), known).sum())
            for each in samples
            if each is not reference
        }
        if any(shared.values()):
            found[name] = shared
    return found


def _list_present(sample: SplitSample, name: str) -> Keys:
    """Return the keys of the values of a field, without those that are missing or empty."""
    present = sample.present.get(name)
    keys = sample.keys[name] if present is None else sample.keys[name][present]
    return np.asarray(keys[keys != EMPTY_KEY])


def start_pictures() -> Thumbnails:
    """Return new thumbnails for one half of a report: the page has less than 3 MB with both."""
    return Thumbnails(_LONGEST_SIDE, max_pictures=120, max_chars=1_000_000, max_pixels=500_000_000)


def _choose_rows(num_records: int, num_wanted: int) -> list[int]:
    """Return row numbers at even distances.

    Example:
        >>> _choose_rows(100, 4)
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
    names = [name for name in _sort_fields(split.schema) if name not in left_out]
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
            for name in names[:_MOST_VALUES]
        ]
        found.append({**record, "values": values, "num_left": max(0, len(names) - _MOST_VALUES)})
    return found


def _sort_fields(schema: Schema) -> list[str]:
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
