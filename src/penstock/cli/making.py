"""How a data set was made, and its statistics, in a few words.

In: a manifest. Out: lines of text, and a phrase a field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.cli.terminal import format_count, format_value
from penstock.foundation.terminal import escape
from penstock.shards.manifest import Manifest
from penstock.statistics.statistics import Statistics
from penstock.statistics.summary import Distribution, FieldStatistics, Frequencies

_MOST_SOURCES = 3
_MOST_VALUES = 3


def write_making(manifest: Manifest) -> Iterator[str]:
    """Yield a line for each thing that the manifest says of how the data set was made."""
    sources = [escape(str(source.get("name"))) for source in manifest.source]
    more = f" and {len(sources) - _MOST_SOURCES} more" if len(sources) > _MOST_SOURCES else ""
    came = f" from {', '.join(sources[:_MOST_SOURCES])}{more}" if sources else ""
    yield f"made by Penstock {escape(manifest.version)}{came}"
    if manifest.split:
        yield f"split by {_write_split(manifest.split)}"
    if manifest.order:
        seed = f", seed {manifest.order.get('seed')}"
        yield f"shuffled{seed}" if manifest.order.get("shuffled") else "in the order of the source"
    num_rejects = manifest.rejects.get("count")
    if num_rejects:
        file = manifest.rejects.get("file")
        kept = f", kept in {escape(str(file))}" if file else ""
        yield f"{num_rejects:,} rows left out{_write_columns(manifest.rejects.get('by_column'))}{kept}"


def _write_split(split: Any) -> str:
    parts = [escape(str(split.get("method")))]
    shares = split.get("shares")
    if isinstance(shares, dict) and shares:
        parts.append(", ".join(f"{escape(name)} {share}" for name, share in shares.items()))
    for key in ("group", "stratify", "by", "time"):
        if split.get(key) is not None:
            parts.append(f"{key} {escape(str(split[key]))}")
    parts.append(f"seed {split.get('seed')}")
    if split.get("duplicates"):
        moved = "left where they are" if split.get("notes") else "kept on one side"
        parts.append(f"{split['duplicates']:,} duplicates {moved}")
    return "; ".join(parts)


def _write_columns(by_column: Any) -> str:
    if not isinstance(by_column, dict) or not by_column:
        return ""
    return " (" + ", ".join(f"{escape(name)} {number}" for name, number in by_column.items()) + ")"


def summarise_fields(manifest: Manifest | None) -> dict[str, str]:
    """Return a phrase for each field of which the manifest has statistics.

    Raises:
        SchemaError: The statistics are not what they should be.
    """
    if manifest is None or manifest.statistics is None:
        return {}
    fields = Statistics.from_json(manifest.statistics, "$.statistics")
    return {name: _summarise(field) for name, field in fields.items()}


def _summarise(field: FieldStatistics) -> str:
    """Say of a field what tells most in a few words."""
    if field.frequencies is not None and field.frequencies.values:
        return _write_frequencies(field.frequencies)
    if field.widths is not None and field.heights is not None:
        return f"{_write_range(field.widths)} x {_write_range(field.heights)} pixels"
    if field.values is not None and field.values.mean is not None:
        lengths = "" if field.lengths is None else f", {_write_range(field.lengths)} long"
        return f"{format_value(field.values.mean)} ± {format_value(field.values.deviation)}{lengths}"
    for part, unit in ((field.characters, "characters"), (field.lengths, "values"), (field.bytes, "bytes")):
        if part is not None and part.mean is not None:
            return f"{_write_range(part)} {unit}"
    return ""


def _write_frequencies(part: Frequencies) -> str:
    shown = [
        f"{format_value(value)} ({number:,})" for value, number in zip(part.values, part.counts, strict=True)
    ]
    about = "" if part.is_complete else "at least "
    more = ", …" if part.num_distinct > _MOST_VALUES else ""
    return f"{about}{format_count(part.num_distinct, 'value')}: {', '.join(shown[:_MOST_VALUES])}{more}"


def _write_range(part: Distribution) -> str:
    low, high = format_value(part.min), format_value(part.max)
    return low if low == high else f"{low} to {high}"
