"""Warnings about data: what a model would learn by mistake, or cannot learn.

In: samples of the splits, and the figures of fields and duplicates. Out: `DataWarning`s, serious ones first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.foundation.wording import argument, count, list_texts, show
from penstock.plan.leakage import LeakageTarget
from penstock.report.split_sample import SplitSample
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.schema.schema import Schema

_SERIOUS: Final = ("leakage", "duplicates", "shared_values", "absent_class", "empty_split", "bad_records")
_MUCH_MISSING: Final = 0.5
_NEW_SHARE: Final = 0.01
_RARE_SHARE: Final = 0.01
_FEW_RECORDS: Final = 100
_LEAST_IDS: Final = 50
_SHARED: Final = 0.01


@dataclass(frozen=True)
class DataWarning:
    """A warning about the data.

    Attributes:
        kind: What was found: "leakage", "duplicates", "shared_values", "constant", "missing", "identifier",
            "not_finite", "drift", "new_values", "rare_class", "absent_class", "few_records", "empty_split",
            "bad_records" or "unlabelled".
        text: Description of it, and what to do.
        field: Name of the field, or None.
        split: Name of the split, or None.
    """

    kind: str
    text: str
    field: str | None = None
    split: str | None = None

    @property
    def is_serious(self) -> bool:
        """Whether scores of a model are likely to be wrong because of it."""
        return self.kind in _SERIOUS

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**vars(self), "is_serious": self.is_serious}


def find_warnings(
    schema: Schema,
    samples: Sequence[SplitSample],
    reference: SplitSample | None,
    fields: Sequence[Mapping[str, Any]],
    duplicates: Mapping[str, Any],
) -> list[DataWarning]:
    """Return all warnings.

    `reference`: sample of the split that others are compared with, usually the train split. `fields`: figures
    of the fields, as `describe_field` returns them. `duplicates`: figures of equal records, as
    `describe_duplicates` returns them.
    """
    found = [*_warn_splits(samples), *_warn_duplicates(duplicates)]
    if reference is not None and reference.num_read:
        for name, field in schema.items():
            found += _warn_field(name, field, reference)
            found += _warn_target(name, field, samples, reference)
            found += _warn_new_values(name, field, samples, reference)
        found += _warn_leakage(schema, reference)
    for each in fields:
        found += _warn_drift(each, reference)
    return sorted(found, key=lambda each: not each.is_serious)


def _warn_splits(samples: Sequence[SplitSample]) -> Iterator[DataWarning]:
    for each in samples:
        if each.num_skipped:
            text = (
                f"{count(each.num_skipped, 'bad record')} of split {show(each.name)} cannot be read and "
                f"{_be(each.num_skipped)} left out of these figures. Run 'penstock verify' to list them."
            )
            yield DataWarning("bad_records", text, split=each.name)
        if not each.num_records:
            yield DataWarning("empty_split", f"Split {show(each.name)} has no records.", split=each.name)
        elif each.num_records < _FEW_RECORDS:
            text = (
                f"Split {show(each.name)} has only {count(each.num_records, 'record')}: scores vary widely."
            )
            yield DataWarning("few_records", text, split=each.name)


def _warn_duplicates(found: Mapping[str, Any]) -> Iterator[DataWarning]:
    reference = found["reference"]
    for split, each in found["splits"].items():
        if each.get("in_reference"):
            number = each["in_reference"]
            read = "" if found["is_whole"] else f" among the {count(each['read'], 'record')} that were read"
            text = (
                f"{count(number, 'record')} of split {show(split)}{read} {_be(number)} also in "
                f"{show(reference)}: scores on them are too good."
            )
            yield DataWarning("duplicates", text, split=split)
    for name, shared in found["fields"].items():
        many = {
            split: number
            for split, number in shared.items()
            if number > _SHARED * found["splits"][split]["read"]
        }
        if not many:
            continue  # by chance, as drawings of a few pixels are
        splits = ", ".join(f"{number:,} in {show(split)}" for split, number in many.items())
        read = "" if found["is_whole"] else ", of the records that were read"
        text = (
            f"Values of {show(name)} that are also in {show(reference)}: {splits}{read}. Split by groups "
            "(`group=NAME`) if the records belong together."
        )
        yield DataWarning("shared_values", text, field=name)


def _warn_field(name: str, field: Field, reference: SplitSample) -> Iterator[DataWarning]:
    found = reference.fields[name]
    total = found.count + found.missing
    if field.role == "input" and found.missing > _MUCH_MISSING * total:
        text = f"{found.missing / total:.0%} of the values of {show(name)} are missing."
        yield DataWarning("missing", text, field=name)
    if field.role not in ("input", "target"):
        return
    num_bad = 0 if found.values is None else found.values.num_nan + found.values.num_inf
    if num_bad:
        text = f"{count(num_bad, 'value')} of {show(name)}{_note(reference)} {_be(num_bad)} NaN or infinite."
        yield DataWarning("not_finite", text, field=name)
    present = reference.present.get(name)
    keys = reference.keys[name] if present is None else reference.keys[name][present]
    num_distinct = len(np.unique(keys))
    if num_distinct == 1 and len(keys) > 1 and len(keys) == total:
        use = "there is nothing to predict" if field.role == "target" else f"leave it out with {_drop(name)}"
        text = f"All values of {show(name)}{_note(reference)} are equal: {use}."
        yield DataWarning("constant", text, field=name)
    is_code = field.type_name == "category" or (isinstance(field, Number) and field.dtype == "int64")
    if field.role == "input" and is_code and num_distinct == len(keys) >= _LEAST_IDS:
        text = (
            f"All values of {show(name)}{_note(reference)} are distinct: it may be an identifier, which a "
            f"model can only memorize. Mark it with {argument('id', name)} or leave it out with "
            f"{_drop(name)}."
        )
        yield DataWarning("identifier", text, field=name)


def _warn_target(
    name: str, field: Field, samples: Sequence[SplitSample], reference: SplitSample
) -> Iterator[DataWarning]:
    if field.role != "target":
        return
    for each in samples:
        if missing := each.fields[name].missing:
            verb = "has" if missing == 1 else "have"
            text = (
                f"{count(missing, 'record')} of split {show(each.name)}{_note(each)} {verb} no value of the "
                f"target {show(name)}."
            )
            yield DataWarning("unlabelled", text, field=name, split=each.name)
    known = reference.fields[name].frequencies
    if known is None or not known.counts or not known.is_complete:
        return
    rarest, number = known.values[-1], known.counts[-1]
    if number < _RARE_SHARE * sum(known.counts):
        text = (
            f"Class {show(rarest)} of {show(name)} has {number / sum(known.counts):.2%} of the records: "
            "accuracy says little, and `class_weights='balanced'` may help."
        )
        yield DataWarning("rare_class", text, field=name)
    for each in samples:
        other = each.fields[name].frequencies
        if each is reference or other is None or not each.num_read:
            continue
        if absent := [value for value in other.values if value not in set(known.values)]:
            text = f"Classes of {show(name)} in {show(each.name)} that are not in {show(reference.name)}: "
            text += list_texts(map(str, absent)) + "."
            yield DataWarning("absent_class", text, field=name, split=each.name)


def _warn_new_values(
    name: str, field: Field, samples: Sequence[SplitSample], reference: SplitSample
) -> Iterator[DataWarning]:
    known = reference.fields[name].frequencies
    if field.role != "input" or field.type_name != "category" or known is None or not known.is_complete:
        return
    seen = set(known.values)
    for each in samples:
        other = each.fields[name].frequencies
        if each is reference or other is None or not other.counts:
            continue
        pairs = zip(other.values, other.counts, strict=True)
        share = sum(number for value, number in pairs if value not in seen) / sum(other.counts)
        if share > _NEW_SHARE:
            text = (
                f"{share:.1%} of the records of {show(each.name)} have values of {show(name)} that are not "
            )
            text += f"in {show(reference.name)}: the model treats them as unknown."
            yield DataWarning("new_values", text, field=name, split=each.name)


def _warn_leakage(schema: Schema, reference: SplitSample) -> Iterator[DataWarning]:
    for target, field in schema.items():
        if field.role != "target":
            continue
        checked = LeakageTarget(reference.compare(target))
        if not checked.can_be_checked:
            continue
        for name, other in schema.items():
            if other.role == "input" and checked.is_determined_by(reference.compare(name)):
                text = (
                    f"Possible target leakage: the values of {show(name)} determine the target "
                    f"{show(target)}. Unless they are known at prediction time, leave the column out with "
                    f"{_drop(name)}."
                )
                yield DataWarning("leakage", text, field=name)


def _warn_drift(found: Mapping[str, Any], reference: SplitSample | None) -> Iterator[DataWarning]:
    if reference is None or found["role"] in ("id", "unused"):
        return
    for split, drifts in found["drift"].items():
        notable = [each for each in drifts if each["is_notable"]]
        if notable:
            worst = max(notable, key=lambda each: float(each["distance"]))
            text = (
                f"{show(found['name'])} differs between {show(reference.name)} and {show(split)}: distance "
                f"{worst['distance']:.2f} ({worst['part']}), where chance explains {worst['chance']:.2f}."
            )
            yield DataWarning("drift", text, field=found["name"], split=split)


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _drop(name: str) -> str:
    return argument("drop", [name])


def _note(sample: SplitSample) -> str:
    """Return a note that a figure is not of all records; "" if it is."""
    return "" if sample.is_whole else f" in the {count(sample.num_read, 'record')} that were read"
