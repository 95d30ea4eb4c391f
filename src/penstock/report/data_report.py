"""The data half of a report: splits, fields, sample records, duplicates and warnings.

In: an opened data set. Out: one dict, JSON-able. All figures come from a bounded sample of each split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.dataset import Dataset
from penstock.errors import PayloadError, SchemaError
from penstock.format.manifest import Manifest
from penstock.report.data_warnings import find_warnings
from penstock.report.duplicates import describe_duplicates
from penstock.report.field_report import describe_field
from penstock.report.sample_records import choose_rows, describe_records, sort_fields, start_pictures
from penstock.report.split_sample import SplitSample, choose_records, sample_split
from penstock.schema.date import date_forms
from penstock.schema.declaration import find_forms
from penstock.schema.schema import Schema
from penstock.settings.prediction import ReportOptions
from penstock.statistics.summary import FieldStatistics, load_statistics

MOST_FIELDS: Final = 300
"""Maximum number of fields with figures: targets, then inputs, in the order of the schema."""

TRAIN: Final = "train"
OnProgress = Callable[[str, int, int], None]


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
    names = sort_fields(dataset.schema)
    fields = [
        describe_field(
            name, dataset.schema[name], samples, reference, forms.get(name, "value"), known.get(name)
        )
        for name in names[:MOST_FIELDS]
    ]
    duplicates = describe_duplicates(dataset.schema, samples, reference)
    warnings = find_warnings(dataset.schema, samples, reference, fields, duplicates)
    shown = dataset[reference.name] if reference is not None else None
    pictures = start_pictures()
    records = (
        []
        if shown is None
        else describe_records(shown, choose_rows(len(shown), options.samples), pictures, forms)
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
