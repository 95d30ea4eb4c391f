"""The data of a cross-validation: records divided into folds, and one data set per fold.

In: a data set. Out: a data set with the records of its train and validation splits, divided anew; and per
fold a data set of links to those shards, whose test split is the fold, and whose other splits are the other
folds. Records are divided as `convert` does it: by id, group or content, in strata.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from penstock.dataset import Dataset
from penstock.errors import OptionError, TrainingDataError
from penstock.format.entry import SplitEntry
from penstock.format.manifest import MANIFEST_NAME, Manifest, dump, load_manifest
from penstock.foundation.wording import count, show
from penstock.jobs.convert.convert import run_conversion
from penstock.jobs.train.division import DivisionRule
from penstock.plan.planner import PlanOverrides
from penstock.schema.scalar import Category
from penstock.settings.conversion import ConvertOptions
from penstock.shards.shard_file import name_files
from penstock.storage.atomic import AtomicFile, write_failure

FOLDS_NAME: Final = "folds"
"""Folder of the data set whose splits are the folds."""

_MOST_NAMED: Final = 5


@dataclass(frozen=True)
class FoldRequest:
    """How to divide records into folds.

    Attributes:
        data: The data set.
        splits: Names of the splits whose records are divided.
        number: Number of folds.
        seed: Seed of the division.
        validation: Share of the records of each fold that validates the models of other folds; 0 for none.
    """

    data: Dataset
    splits: Sequence[str]
    number: int
    seed: int
    validation: float = 0.0

    @property
    def rule(self) -> DivisionRule:
        """Rule by which records stay together, as in the splits of the data set."""
        return DivisionRule.of(self.data)

    @property
    def shares(self) -> dict[str, float]:
        """Share of each part of each fold, by name."""
        shares = {}
        for number in range(1, self.number + 1):
            shares[name_fold(number)] = (1 - self.validation) / self.number
            if self.validation:
                shares[name_fold(number, is_validation=True)] = self.validation / self.number
        return shares

    def list_notes(self) -> list[str]:
        """Return notes about splits that are not used, and about rare classes."""
        notes = []
        others = [name for name in self.data.splits if name not in self.splits and len(self.data[name])]
        if others:
            used = " and ".join(map(repr, self.splits))
            notes.append(f"Folds are made of {used}. Not used: {', '.join(map(repr, others))}.")
        if (time := self.rule.time) is not None:
            notes.append(
                f"The splits of the data set are ordered by time ({time!r}), folds are not: models predict "
                "records that are older than those they learn from, and scores may be too good."
            )
        for target, counts in self._count_classes().items():
            few = [f"{show(each)} ({num})" for each, num in counts.items() if num < self.number]
            if few:
                more = ", …" if len(few) > _MOST_NAMED else ""
                notes.append(
                    f"Classes of {target!r} with fewer records than folds, which not all folds have: "
                    f"{', '.join(few[:_MOST_NAMED])}{more}."
                )
        return notes

    def check(self) -> None:
        """Refuse folds that some records cannot be divided into."""
        total = sum(len(self.data[name]) for name in self.splits)
        each = 2 if self.validation else 1
        if total < each * self.number:
            per_fold = "two records per fold, one of them to validate with" if each > 1 else "one per fold"
            raise OptionError(
                "folds",
                field="folds",
                expected=f"at most {total // each}, for {count(total, 'record')} and {per_fold}",
                got=self.number,
                advice="Use fewer folds, or more records.",
            )
        self.rule.check(self.data, "folds", (self.rule.group,))
        for target, counts in self._count_classes().items():
            single = [show(label) for label, num in counts.items() if num == 1]
            if single:
                raise _make_class_error(target, f"1 of {', '.join(single[:_MOST_NAMED])}")

    def divide(self, out: Path) -> Manifest:
        """Write the folds as splits of a data set, or confirm those that an interrupted run has written."""
        manifest = self.data.manifest
        options = ConvertOptions(
            split=self.shares,
            group=self.rule.group,
            stratify=self.rule.stratify or False,
            seed=self.seed,
            compression="none" if manifest is None else manifest.compression,
            resume=True,
        )
        paths = [path for name in self.splits for path in self.data[name].paths]
        try:
            return run_conversion(paths, out, PlanOverrides(schema=self.data.schema), options).manifest
        except OptionError as error:
            if error.what != "split":
                raise
            raise OptionError(
                "folds",
                field="folds",
                expected="records in every fold" + (", also to validate with" if self.validation else ""),
                got="folds without them",
                advice=f"Use fewer folds than {self.number}. Records of one id, of one group and of equal "
                "content are in the same fold.",
            ) from error

    def _count_classes(self) -> dict[str, dict[Any, int]]:
        """Return the number of records of each class, by target of classes."""
        found = {}
        for name in self.data.schema.targets:
            if isinstance(self.data.schema[name], Category):
                found[name] = _count_values(self.data, name, self.splits)
        return found


def name_fold(number: int, *, is_validation: bool = False) -> str:
    """Return the name of the split of a fold, or of the part of it that validates other folds."""
    return f"fold_{number}_validation" if is_validation else f"fold_{number}"


def check_classes(folds: Dataset, number: int) -> None:
    """Refuse folds if one of them has a class that none of its training records has."""
    for target in folds.schema.targets:
        if not isinstance(folds.schema[target], Category):
            continue
        counts = {name: _count_values(folds, target, [name]) for name in folds.splits}
        for fold in range(1, number + 1):
            trained: set[Any] = set()
            for other in range(1, number + 1):
                if other != fold:
                    trained |= set(counts[name_fold(other)])
            lacking = sorted(
                {str(each) for found in counts.values() for each in found if each not in trained}
            )
            if lacking:
                named = ", ".join(map(show, lacking[:_MOST_NAMED]))
                raise _make_class_error(target, f"none of {named} to train on for fold {fold}")


def _make_class_error(target: str, got: str) -> TrainingDataError:
    return TrainingDataError(
        f"records of each class of {target!r}",
        field=target,
        expected="at least one in two folds, so that every model is trained on all classes",
        got=got,
        advice="Leave out records of such rare classes, or join the classes.",
    )


def _count_values(data: Dataset, field: str, splits: Sequence[str]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    unlabelled = getattr(data.schema[field], "unlabelled", ())
    for name in splits:
        column: Any = data.to_arrow(name, [field]).column(field)
        for each in pc.value_counts(column).to_pylist():
            if each["values"] is not None and each["values"] not in unlabelled:
                counts[each["values"]] = counts.get(each["values"], 0) + int(each["counts"])
    return counts


def link_fold(folds: Path, number: int, total: int, out: Path, plan: Mapping[str, Any] | None) -> None:
    """Write the data set of a fold: links to the shards of all folds, and a manifest.

    `folds`: folder of the data set whose splits are the folds. `number`: number of the fold, from 1, which
    becomes the test split. `out`: folder to write; what an interrupted run has written there is reused.
    `plan`: plan by which the columns of raw data became fields.
    """
    whole = load_manifest(folds)
    if whole is None:
        raise OptionError("folds", path=folds, expected="the data set of the folds", got="none")
    others = [each for each in range(1, total + 1) if each != number]
    parts = {
        "train": [name_fold(each) for each in others],
        "validation": [name_fold(each, is_validation=True) for each in others],
        "test": [name_fold(number), name_fold(number, is_validation=True)],
    }
    splits = {}
    for name, found in parts.items():
        shards = [shard for each in found if each in whole.splits for shard in whole.splits[each].shards]
        if shards:
            splits[name] = SplitEntry(tuple(shards))
    described = {**whole.split, "method": f"fold {number} of {total}: {whole.split.get('method')}"}
    described.pop("shares", None)
    manifest = replace(
        whole, splits=splits, split=described, plan=plan, statistics=None, request=None, source=()
    )
    for shard in manifest.shards():
        for name in name_files(shard):
            if (folds / name).is_file():
                _link(folds / name, out / name)
    with AtomicFile(out / MANIFEST_NAME, overwrite=True) as file:
        file.write(dump(manifest))


def _link(source: Path, target: Path) -> None:
    """Make a hard link; a copy, if the file system has no links."""
    with _naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            if target.samefile(source) or target.stat().st_size == source.stat().st_size:
                return
            target.unlink()
        try:
            os.link(source, target)
        except OSError:
            temporary = target.with_name(f".tmp-{target.name}")
            shutil.copyfile(source, temporary)
            temporary.replace(target)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_failure(path, error) from error
