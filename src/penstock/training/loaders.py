"""The records of a run: which splits, which share is held out, and the loaders that read them.

In: a data set, options. Out: names of splits, the share to hold out, `TrainingLoaders`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from numpy.typing import NDArray

from penstock.batch.build import make_loader
from penstock.batch.loader import Loader
from penstock.dataset import Dataset, Split
from penstock.errors import TrainingDataError
from penstock.model.feature import count_images
from penstock.model.keras_predictor import KerasPredictor
from penstock.model.usable_records import Labelled, find_labelled
from penstock.read.bitmap import Bitmap
from penstock.settings.loading import LoadOptions, Shuffling
from penstock.settings.training import TrainOptions
from penstock.training.defaults import choose_batch_size
from penstock.training.progress import Watcher
from penstock.training.validation_choice import ValidationChoice, choose_on_validation
from penstock.transform.assembly import Assembly
from penstock.transform.pipeline import Pipeline

_TRAIN: Final = "train"
_VALIDATION: Final = ("validation", "val", "valid", "dev")
_LEAST_HELD_OUT: Final = 8  # records: with fewer the validation loss is mostly noise
_LEAST_SAMPLE: Final = 1_000  # validation records of a trial, or all of them
_LABEL_ROWS: Final = 1 << 16
_LOADER_SEED: Final = 1  # added to the seed, so that the order of records and the model differ in theirs


class TrainingLoaders(NamedTuple):
    """Loaders of a run: the training batches, the targets of the same records, the validation batches.

    The numbers of records are approximate where a loader reads a share of a split.
    """

    train: Loader
    labels: Loader
    validation: Loader | None
    num_train: int
    num_validation: int = 0

    def read_targets(self) -> Iterator[Mapping[str, NDArray[Any]]]:
        """Yield the targets of all records to train on, without reading their inputs."""
        with self.labels.read(0) as batches:
            for batch in batches:
                yield batch[1]

    def choose(self, predict: KerasPredictor, keep: Collection[str]) -> dict[str, ValidationChoice]:
        """Return the choices on the validation records, by target; nothing without validation.

        `predict`: predictions of the model, without a temperature. `keep`: targets that get no temperature:
        class weights shift their probabilities on purpose, or the user has compiled the model.
        """
        if self.validation is None:
            return {}
        with self.validation.read(0) as batches:
            return choose_on_validation(predict, predict.tasks, batches, keep)


@dataclass(frozen=True)
class HeldOut:
    """The records of the train split that are held out for validation.

    Attributes:
        rows: Rows of the train split; none if its records cannot be divided.
        rule: The rule by which they were chosen, for notes.
        notes: Notes for the user.
    """

    rows: Bitmap
    rule: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoaderPlan:
    """Which records a run reads, and in which batches.

    Attributes:
        watcher: Object that is notified of records that are left out.
        sample: Share of the records that are read; trials take fewer than all.
        held_out: Records of the train split to validate with, or None.
    """

    data: Dataset
    pipeline: Pipeline
    options: TrainOptions
    watcher: Watcher
    sample: float = 1.0
    held_out: HeldOut | None = None

    def make(self, shard: tuple[int, int] | None = None) -> TrainingLoaders:
        """Return the loaders of the run, or of one worker of a run.

        `shard`: (rank, number) of one of several workers, for its part of each batch; (0, 1) for whole
        batches in the order of several workers. None for a run in one process.
        """
        options = self.options
        name, held = find_train(self.data), find_validation(self.data)
        split = self.data[name]
        chosen = None if self.held_out is None or not len(self.held_out.rows) else self.held_out.rows
        kept = None if chosen is None else chosen.invert()
        self._note_validation(None if chosen is None else len(chosen) / len(split))
        labelled = self._find_labelled(split)
        if not labelled.num_records:
            advice = "Choose another target: `target=NAME`."
            got = f"no value in any of {labelled.num_missing} records"
            what = f"target {labelled.targets[0]!r} of split {name!r}"
            raise TrainingDataError(
                what, field=labelled.targets[0], expected="at least one value", got=got, advice=advice
            )
        num_held = 0.0 if chosen is None else labelled.num_records * len(chosen) / len(split)
        num_train = round((labelled.num_records - num_held) * self.sample)
        num_validation = round(num_held * self.find_sample(num_held))
        size = choose_batch_size(options, num_train, has_images=count_images(self.pipeline) > 0)
        load = LoadOptions(
            batch_size=size,
            shuffle=self._choose_shuffle(split, shard),
            seed=options.seed + _LOADER_SEED,
            filter=labelled.filter,
            part=_list_part(self.sample),
            shard=(0, 1) if shard is None else shard,
            num_threads=options.num_threads,
            cache=options.cache,
            augment=True if self.pipeline.assembly.augments else None,
        )
        train = _load(split, kept, self.pipeline.assembly, load)
        label_options = LoadOptions(
            batch_size=_LABEL_ROWS, filter=load.filter, part=load.part, num_threads=load.num_threads
        )
        labels = _load(split, kept, self.pipeline.assembly.without_inputs(), label_options)
        validated, selection, sample = split, labelled.filter, self.find_sample(num_held)
        if held is not None:
            found = self._find_labelled(self.data[held])
            if not found.num_records:
                self.watcher.note(f"No validation: no record of split {held!r} has a target.")
                return TrainingLoaders(train, labels, None, num_train)
            sample = self.find_sample(found.num_records)
            validated, selection = self.data[held], found.filter
            num_validation = round(found.num_records * sample)
        elif chosen is None:
            return TrainingLoaders(train, labels, None, num_train)
        held_options = load.replace(
            shuffle=False, seed=0, filter=selection, part=_list_part(sample), augment=False
        )
        validation = _load(validated, chosen, self.pipeline.assembly, held_options)
        return TrainingLoaders(train, labels, validation, num_train, num_validation)

    def _choose_shuffle(self, split: Split, shard: tuple[int, int] | None) -> bool | Shuffling:
        """Return how to shuffle, which is the same for any number of workers.

        One process shuffles splits that are much larger than its memory in blocks; the order of several
        workers must not depend on the memory of each. Splits in object stores are always shuffled in blocks.
        """
        is_remote = split.as_source().rows.is_remote
        return (
            "global" if self.options.shuffle and shard is not None and not is_remote else self.options.shuffle
        )

    def find_sample(self, num_validation: float) -> float:
        """Return the share of the validation records to read, which are enough to choose by."""
        return min(1.0, max(self.sample, _LEAST_SAMPLE / max(1.0, num_validation)))

    def _note_validation(self, share: float | None) -> None:
        """Write a note on validation where the data has no validation split."""
        name, held = find_train(self.data), self.held_out
        if find_validation(self.data) is not None:
            return
        if share is not None and held is not None:
            self.watcher.note(
                f"No validation split: {share:.0%} of split {name!r} is held out for validation, {held.rule}."
            )
            for note in held.notes:
                self.watcher.note(note)
        elif held is not None:
            self.watcher.note(
                f"No validation: the records of split {name!r} cannot be divided, {held.rule}. "
                "Convert the data with a validation split, or without that rule."
            )
        elif self.options.hold_out:
            number = len(self.data[name])
            self.watcher.note(f"No validation: {number} records are too few to hold some out.")
        else:
            self.watcher.note(
                "No validation split, so no early stopping: the last epoch is kept. "
                "To validate with a tenth of the records: `hold_out=0.1`."
            )

    def _find_labelled(self, split: Split) -> Labelled:
        """Find the records that have all targets, and write a note on the others."""
        threads = self.options.num_threads
        found = find_labelled(split.as_source(), self.pipeline, 1 if threads is None else threads)
        if found.num_missing:
            if self.options.unlabelled == "error":
                raise found.make_error(split.name)
            self.watcher.note(
                f"{found.describe(split.name)}: these records are skipped. To make this an error: "
                "`unlabelled='error'`."
            )
        return found


def _load(split: Split, rows: Bitmap | None, steps: Assembly, options: LoadOptions) -> Loader:
    """Return a loader of some rows of a split; of all rows if they are None."""
    return make_loader([replace(split.as_source(), selected=rows)], steps, options)


def _list_part(share: float) -> tuple[float, float] | None:
    return (0.0, share) if share < 1 else None


def find_hold_out(data: Dataset, options: TrainOptions) -> float:
    """Return the share of the train split that is held out; 0 where the data has a validation split."""
    if find_validation(data) is not None or len(data[find_train(data)]) * options.hold_out < _LEAST_HELD_OUT:
        return 0.0
    return options.hold_out


def list_training_splits(data: Dataset) -> list[str]:
    """Return the names of the splits that a run uses: train, and validation if there is one."""
    return [name for name in (find_train(data), find_validation(data)) if name is not None]


def find_validation_share(data: Dataset, options: TrainOptions) -> float:
    """Return the share of the records of `list_training_splits` that a run validates with."""
    held = find_validation(data)
    if held is None:
        return find_hold_out(data, options)
    num_held = len(data[held])
    return num_held / (num_held + len(data[find_train(data)]))


def find_train(data: Dataset) -> str:
    """Return the name of the split to train on: "train", or the only one."""
    if _TRAIN in data.splits:
        return _TRAIN
    if len(data.splits) == 1:
        return data.splits[0]
    raise TrainingDataError(
        "splits of the data set",
        expected=f"a split named {_TRAIN!r}, or a single split",
        got=", ".join(data.splits) or "none",
        advice="Convert it with `split={'train': 0.8, 'test': 0.2}`, or pass the train split alone.",
    )


def find_validation(data: Dataset) -> str | None:
    """Return the name of the split to validate with; None if there is none, or it has no records."""
    trained = find_train(data)  # the only split may have any name
    names = [name for name in _VALIDATION if name in data.splits and name != trained]
    return next((name for name in names if len(data[name])), None)
