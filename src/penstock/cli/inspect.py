"""`penstock inspect`: show what TFRecord files or raw data contain, and how a data set was made."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from penstock.cli.arguments import read_declaration
from penstock.cli.next_command import (
    has_model_fields,
    list_paths,
    name_output,
    repeat_words,
    suggest_next,
    suggest_python,
    suggest_use,
)
from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_value,
    output_width,
    print_classes,
    print_message,
    print_note,
    print_table,
)
from penstock.decode.sample import Sample
from penstock.errors import importing
from penstock.format.manifest import Manifest
from penstock.foundation.terminal import escape, shorten
from penstock.foundation.wording import format_size
from penstock.jobs.check.code.tensorflow import write_parser
from penstock.jobs.check.file_check import FileCheck
from penstock.jobs.check.inspect import Inspection, inspect, read_schema
from penstock.jobs.given_dataset import Declaration
from penstock.schema.array import Sequence, Tensor
from penstock.schema.byte_array import ArrayFormat, find_conversion, has_clear_type, view_array
from penstock.schema.date import Date, DateUnit, show_date
from penstock.schema.field import Field
from penstock.schema.survey import FieldSurvey, ListSurvey
from penstock.settings.command_line import Call
from penstock.settings.commands import InspectOptions
from penstock.settings.groups import ReadOptions
from penstock.source.recognition import is_raw
from penstock.statistics.summary import Distribution, FieldStatistics, Frequencies, load_statistics

_MAX_SOURCES: Final = 3
_MAX_VALUES: Final = 3
_MAX_CHARS: Final = 400  # of a value of a sample
_MAX_ELEMENTS: Final = 6  # of a proposed array
_OWN_FLAGS: Final = [each.flag for each in InspectOptions.list_settings()]
_PAYLOADS: Final = {
    "example": " (Examples)",
    "sequence_example": " (SequenceExamples)",
    "other": " (not Examples)",
    "empty": "",
}


def run(call: Call) -> int:
    """Inspect, print, and return the exit status."""
    paths, options = call.arguments, call.read(InspectOptions)
    if is_raw(paths):
        with importing("inspecting raw data"):
            from penstock.cli import inspect_raw  # noqa: PLC0415 - with pyarrow

        return inspect_raw.run(call)
    read, declaration = call.read(ReadOptions), read_declaration(call)
    if options.compare is not None:
        return _compare(call, options.compare, declaration, read)
    if options.pipeline is not None:
        from penstock.jobs.check.code.tensorflow import write_graph  # noqa: PLC0415 - 0.1 s, for this option alone

        print(write_graph(paths, options.pipeline, options.split, declaration, read), end="")
        suggest_next(call, "inspect", *list_paths(call))
        return 0
    if options.code is not None:
        from penstock.jobs.check.code.training import write_training  # noqa: PLC0415 - as above

        print(write_training(paths, options.code, declaration, read), end="")
        suggest_use(call, repeat_words(call, _OWN_FLAGS), has_target=True)
        return 0
    with ProgressBar("inspect") as bar:
        found = inspect(paths, declaration, read, num_samples=options.head, on_progress=bar.show)
    if options.tf:
        print(write_parser(found.schema, found.survey.payload), end="")
    elif call.common.json:
        print(json.dumps(_to_json(found), allow_nan=False))
    else:
        print_inspection(found)
    if not found.faults:
        _suggest(call, found)
        return 0
    num_bad = sum(bool(file.faults) for file in found.files)
    faults, files = format_count(len(found.faults), "fault"), format_count(len(found.files), "file")
    advice = f" Run 'penstock verify {shlex.join(paths)}'." if call.common.json else ""
    print_message(f"{faults} in {num_bad} of {files}.{advice}")
    suggest_next(call, "verify", *list_paths(call))
    return 1


def _suggest(call: Call, found: Inspection) -> None:
    """Suggest to train on the files, to browse them, or to check them, if they cannot be parsed."""
    if found.survey.payload in ("other", "empty") or call.read(ReadOptions) != ReadOptions():
        suggest_next(call, "verify", *list_paths(call))  # files that other commands would read differently
    elif converted := _list_conversions(found):
        suggest_python(call, _write_conversion(call, found, converted))
    else:
        words = repeat_words(call, _OWN_FLAGS)
        declared = [name for name in found.proposals if has_clear_type(found.byte_values[name])]
        for name in declared:
            words += ["--tensor", _name_tensor(name, found.proposals[name][0])]
        suggest_use(call, words, has_target=has_model_fields(found.schema, declared))


def _compare(call: Call, old: str, declaration: Declaration, read: ReadOptions) -> int:
    found = read_schema(old, read=read).compare(read_schema(call.arguments, declaration, read))
    if call.common.json:
        changes = [
            {"field": change.field, "what": change.what, "reads": change.is_readable, "why": change.why}
            for change in found.changes
        ]
        print(json.dumps({"reads": found.is_readable, "changes": changes}))
    else:
        print("\n".join(escape(line) for line in str(found).splitlines()))
    suggest_next(call, "inspect", *list_paths(call))
    return 0 if found.is_readable else 1


def print_inspection(found: Inspection) -> None:
    """Print the fields, the requested samples, and the totals."""
    has_roles = any(field.role != "input" for field in found.schema.values())
    statistics = summarize_fields(found.manifest)
    header = ["field", "type", *(["role"] if has_roles else []), "kind", "values", "missing"]
    header += ["statistics", "example"] if statistics else ["example"]
    fields = dict(found.schema)
    examples: Sample = {}
    for sample in reversed(found.samples):
        examples |= sample
    rows = [
        [
            *_list_cells(name, entry, fields.get(name), has_roles),
            *([statistics.get(name, "")] if statistics else []),
            "–" if name not in examples else format_value(examples[name]),
        ]
        for name, entry in found.entries.items()
    ]
    if rows:
        print_table(header, rows, right=("missing",))
        print()
    print_classes(found.classes)
    for number in range(found.num_samples):
        _print_sample(found, number)
    for name, tensors in found.proposals.items():
        _print_proposals(found, name, tensors)
    for note in found.notes:
        print_note(note)
    if len(found.splits) > 1:
        print("; ".join(f"{name}: {_format_totals(files)}" for name, files in found.splits.items()))
    compression = {"none": "not compressed", "mixed": "some compressed"}.get(
        found.compression, found.compression
    )
    records = format_count(found.survey.records, "record") + _PAYLOADS[found.survey.payload]
    files = format_count(len(found.files), "file")
    print(f"{files}, {records}, {format_size(found.num_bytes)}, {compression}")
    if found.manifest is not None:
        print("\n".join(describe_origin(found.manifest)))


def _print_proposals(found: Inspection, name: str, tensors: Iterable[Tensor]) -> None:
    """Print the declarations that fit the values of a bytes field, with the first elements under each."""
    value = found.byte_values[name][0]
    shown = escape(name) or "''"
    doubt = "" if has_clear_type(found.byte_values[name]) else " (the values show no element type)"
    print(
        f"field {shown}: {len(value):,} bytes in each value. "
        f"If they are arrays of tobytes(), declare one{doubt}:"
    )
    rows = [
        [
            f"--tensor {shlex.quote(_name_tensor(shown, each))}",
            format_value(view_array(each, value).ravel()[:_MAX_ELEMENTS]).removesuffix("]") + ", …]",
        ]
        for each in tensors
    ]
    print_table(("declaration", "first elements"), rows)
    print()


def _name_tensor(name: str, tensor: Tensor) -> str:
    return f"{name}:{'x'.join(map(str, tensor.shape))}:{tensor.dtype}"


def _list_conversions(found: Inspection) -> dict[str, ArrayFormat]:
    """Return the fields whose arrays a program must read, with their formats."""
    formats = {name: find_conversion(name, values) for name, values in found.byte_values.items()}
    return {name: each for name, each in formats.items() if each is not None}


def _write_conversion(call: Call, found: Inspection, formats: Mapping[str, ArrayFormat]) -> str:
    """Return a program that converts such records to records that hold arrays."""
    row = "".join(f", {name!r}: {each.code.format(f'row[{name!r}]')}" for name, each in formats.items())
    types = ", ".join(
        f"{name!r}: ps.fields.Tensor({each.tensor.shape}, {each.tensor.dtype!r})"
        for name, each in formats.items()
    )
    targets = list(found.schema.targets)
    target = f", target={(targets[0] if len(targets) == 1 else targets)!r}" if targets else ""
    paths = list_paths(call)
    data, out = paths[0] if len(paths) == 1 else paths, str(name_output(paths[0], "-arrays"))
    code = (
        f"import io, numpy as np, penstock as ps; data = ps.open({data!r}); "
        f"ps.convert(({{**row{row}}} for split in data for row in data[split]), {out!r}, "
        f"fields={{{types}}}{target})"
    )
    return code if '"' in code else code.replace("'", '"')  # simpler to read between quotes of a shell


def _list_cells(
    name: str, entry: FieldSurvey | ListSurvey, field: Field | None, has_roles: bool
) -> list[str]:
    values = entry.steps if isinstance(entry, ListSurvey) else entry
    return [
        escape(name) or "''",
        "?" if field is None else field.type_name,
        *([] if not has_roles else ["" if field is None else field.role]),
        values.kind or "none",
        _describe(field, entry),
        f"{entry.missing:,}",
    ]


def _describe(field: Field | None, entry: FieldSurvey | ListSurvey) -> str:
    """Return how many values a record has: from the type of the field, or else from the counts."""
    if isinstance(entry, ListSurvey):
        steps = _format_range(entry.min_steps, entry.max_steps)
        return f"{steps} steps" if field is None else field.describe().replace("variable", steps, 1)
    if field is not None and not isinstance(field, Sequence):
        return field.describe()
    lengths = _format_range(entry.min_len, entry.max_len)
    return f"{lengths} values" if field is None else f"{lengths} {field.dtype}"


def _format_range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _format_totals(files: Iterable[FileCheck]) -> str:
    records = [file.num_valid for file in files]
    return f"{format_count(sum(records), 'record')} in {format_count(len(records), 'file')}"


def _print_sample(found: Inspection, number: int) -> None:
    width = min(output_width(), _MAX_CHARS)
    if number < len(found.payloads):
        payload = found.payloads[number]
        text = "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in payload[:width])
        print(
            f"payload {number + 1} ({format_size(len(payload))}):",
            shorten(text, max(20, width - 24)),
            end="\n\n",
        )
    if number < len(found.samples):
        sample = {escape(name) or "''": format_value(value) for name, value in found.samples[number].items()}
        indent = max(map(len, sample), default=0)
        print(f"sample {number + 1}" if sample else f"sample {number + 1}: no fields")
        for name, value in sample.items():
            print(f"  {name:{indent}}  {shorten(value, max(20, width - indent - 4))}")
        print()


def _to_json(found: Inspection) -> dict[str, object]:
    form = found.to_json()
    if found.num_samples:
        items = found.payloads or found.samples
        form["head"] = [_to_plain(item) for item in items[: found.num_samples]]
    return form


def _to_plain(value: Any) -> Any:
    """Return a value in a form for JSON; byte strings as format and size."""
    if isinstance(value, dict):
        return {name: _to_plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return _to_plain(value.tolist())
    if isinstance(value, list):
        return [_to_plain(each) for each in value]
    if isinstance(value, bytes | np.datetime64):
        return format_value(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def describe_origin(manifest: Manifest) -> Iterator[str]:
    """Yield lines that describe how a data set was made, from its manifest."""
    sources = [escape(str(source.get("name"))) for source in manifest.source]
    more = f" and {len(sources) - _MAX_SOURCES} more" if len(sources) > _MAX_SOURCES else ""
    origin = f" from {', '.join(sources[:_MAX_SOURCES])}{more}" if sources else ""
    yield f"made by Penstock {escape(manifest.version)}{origin}"
    if manifest.split:
        yield f"split by {_format_split(manifest.split)}"
    if manifest.order:
        seed = f", seed {manifest.order.get('seed')}"
        yield f"shuffled{seed}" if manifest.order.get("shuffled") else "in the order of the source"
    num_rejects = manifest.rejects.get("count")
    if num_rejects:
        file = manifest.rejects.get("file")
        kept = f", collected in {escape(str(file))}" if file else ""
        yield f"{num_rejects:,} rows rejected{_format_rejects(manifest.rejects.get('by_column'))}{kept}"


def _format_split(split: Mapping[str, Any]) -> str:
    parts = [escape(str(split.get("method")))]
    shares = split.get("shares")
    if isinstance(shares, dict) and shares:
        parts.append(", ".join(f"{escape(name)} {share}" for name, share in shares.items()))
    for key in ("group", "stratify", "by", "time"):
        if split.get(key) is not None:
            parts.append(f"{key} {escape(str(split[key]))}")
    parts.append(f"seed {split.get('seed')}")
    if split.get("duplicates"):
        moved = "in several splits" if split.get("notes") else "kept in one split"
        parts.append(f"{split['duplicates']:,} duplicates {moved}")
    return "; ".join(parts)


def _format_rejects(by_column: Any) -> str:
    if not isinstance(by_column, dict) or not by_column:
        return ""
    return " (" + ", ".join(f"{escape(name)} {number}" for name, number in by_column.items()) + ")"


def summarize_fields(manifest: Manifest | None) -> dict[str, str]:
    """Return a short summary of each field that the manifest has statistics of."""
    if manifest is None or manifest.statistics is None:
        return {}
    fields = load_statistics(manifest.statistics, "$.statistics")
    dates = {name: field.unit for name, field in manifest.schema.items() if isinstance(field, Date)}
    return {
        name: _summarize(field) if name not in dates else _summarize_dates(field, dates[name])
        for name, field in fields.items()
    }


def _summarize_dates(field: FieldStatistics, unit: DateUnit) -> str:
    """Return the first and the last date."""
    if field.values is None or field.values.min is None or field.values.max is None:
        return ""
    first, last = show_date(field.values.min, unit), show_date(field.values.max, unit)
    return first if first == last else f"{first} to {last}"


def _summarize(field: FieldStatistics) -> str:
    """Return the most informative statistics of a field in a few words."""
    if field.frequencies is not None and field.frequencies.values:
        return _format_frequencies(field.frequencies)
    if field.widths is not None and field.heights is not None:
        return f"{_format_distribution(field.widths)} x {_format_distribution(field.heights)} pixels"
    if field.values is not None and field.values.mean is not None:
        lengths = "" if field.lengths is None else f", {_format_distribution(field.lengths)} long"
        return f"{format_value(field.values.mean)} ± {format_value(field.values.deviation)}{lengths}"
    for part, unit in ((field.characters, "characters"), (field.lengths, "values"), (field.bytes, "bytes")):
        if part is not None and part.mean is not None:
            return f"{_format_distribution(part)} {unit}"
    return ""


def _format_frequencies(part: Frequencies) -> str:
    shown = [
        f"{format_value(value)} ({number:,})" for value, number in zip(part.values, part.counts, strict=True)
    ]
    about = "" if part.is_complete else "at least "
    more = ", …" if part.num_distinct > _MAX_VALUES else ""
    return f"{about}{format_count(part.num_distinct, 'value')}: {', '.join(shown[:_MAX_VALUES])}{more}"


def _format_distribution(part: Distribution) -> str:
    low, high = format_value(part.min), format_value(part.max)
    return low if low == high else f"{low} to {high}"
