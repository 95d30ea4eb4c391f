"""Cross-validation: one run per fold, trained on the other folds, and predictions of every record.

In: a data set, the number of folds, and what prepares the training of one. Out: a `CrossValidation`. A fold
takes no part in the training of its model: pipeline, best epoch and every choice come from other folds.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import PenstockError
from penstock.foundation.html import Html, display_safely, make_block, make_table
from penstock.foundation.wording import count
from penstock.jobs.predict.options import PredictOptions
from penstock.jobs.predict.predict import run_prediction
from penstock.jobs.predict.prediction_file import open_writer
from penstock.jobs.train.ensemble import MemberWatcher
from penstock.jobs.train.fold_data import FOLDS_NAME, FoldRequest, check_classes, link_fold
from penstock.score.evaluation import format_score
from penstock.score.options import EvaluateOptions
from penstock.score.scores import Number, Scores
from penstock.score.split_evaluation import evaluate_split
from penstock.storage.atomic import AtomicFile
from penstock.storage.store_path import AnyPath
from penstock.training.checkpoint import Checkpoints, read_result
from penstock.training.loaders import find_validation_share, list_training_splits
from penstock.training.options import TrainOptions
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.run import FOLD_NAME, OUT_OF_FOLD_NAME, Run, combine_digests
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, read_run_config, write_run_config
from penstock.training.train import Training, list_effective

_TEST: Final = "test"
_FOLD: Final = "fold"

Prepare: TypeAlias = Callable[[Dataset, Path, Watcher], Training]
"""Returns the training of a fold, for its data set and its folder."""


@dataclass(frozen=True, repr=False)
class CrossValidation:
    """The result of a cross-validation.

    Attributes:
        folder: Folder of the cross-validation.
        scores: Scores of each fold, by name of the fold and by target.
        records: Number of records that were predicted, each by the model of its fold.
        predictions: Path of the out-of-fold predictions.
        settings: Content of `run.yaml`.

    Example:
        ```python
        found = ps.train(pets, folds=5, out="runs/pets-folds")
        found.means["adopted"]["auc"], found.deviations["adopted"]["auc"]
        ```
    """

    folder: AnyPath
    scores: Mapping[str, Mapping[str, Scores]]
    records: int
    predictions: AnyPath
    settings: Mapping[str, Any]

    @property
    def runs(self) -> tuple[AnyPath, ...]:
        """Folders of the folds, each of which `penstock.open_run` opens."""
        return tuple(self.folder / name for name in self.scores)

    @property
    def means(self) -> dict[str, Scores]:
        """Mean of each score over the folds, by target; None where no fold has the score."""
        return self._combine(lambda numbers: statistics.fmean(numbers) if numbers else None)

    @property
    def deviations(self) -> dict[str, Scores]:
        """Standard deviation of each score over the folds, by target; None with fewer than two scores."""
        return self._combine(lambda numbers: statistics.stdev(numbers) if len(numbers) > 1 else None)

    def _combine(self, combine: Callable[[list[float]], Number]) -> dict[str, Scores]:
        first = next(iter(self.scores.values()))
        return {
            target: {
                name: combine(
                    [found for each in self.scores.values() if (found := each[target][name]) is not None]
                )
                for name in names
            }
            for target, names in first.items()
        }

    def __repr__(self) -> str:
        sizes = f"{count(len(self.scores), 'fold')}, {count(self.records, 'record')}"
        return f"CrossValidation({str(self.folder)!r}, {sizes})"

    def _repr_html_(self) -> str:
        return display_safely(repr(self), self._draw)

    def _draw(self) -> Html:
        rows = [
            (target, name, format_score(mean), format_score(self.deviations[target][name]))
            for target, means in self.means.items()
            for name, mean in means.items()
        ]
        header = ("target", "score", "mean", "standard deviation")
        return make_block(repr(self), make_table(header, rows, right=(2, 3)))

    def __str__(self) -> str:
        lines = [f"{count(len(self.scores), 'fold')}, {count(self.records, 'record')}"]
        for target, means in self.means.items():
            lines += ["", target]
            for name, mean in means.items():
                spread = format_score(self.deviations[target][name])
                lines.append(f"  {name:<18}{format_score(mean):>10} ± {spread}")
        return "\n".join(lines)


@dataclass(frozen=True)
class FoldTraining:
    """A cross-validation before it starts.

    Attributes:
        data: The data set.
        folder: Folder of the cross-validation.
        number: Number of folds.
        options: Options of the training of each fold.
        prepare: Prepares the training of a fold.
        settings: Tables for `run.yaml`.
        watcher: Object that is notified of progress.
    """

    data: Dataset
    folder: Path
    number: int
    options: TrainOptions
    prepare: Prepare
    settings: Mapping[str, Any] = field(default_factory=dict)
    watcher: Watcher = field(default_factory=SilentWatcher)

    def run(self, *, resume: bool = False) -> CrossValidation:
        """Train the folds that are not finished, predict each with its model, and return the scores.

        An interrupted cross-validation continues with the fold that was interrupted, and ends with the same
        weights and predictions.

        Raises:
            OptionError: There are too few records, or groups of records, for so many folds.
            TrainingDataError: The models of some folds would not see all classes.
            StateError: The folder holds another cross-validation.
            PenstockError: See `Training.run`. Folds that are finished are kept.
        """
        is_started = resume and (self.folder / CONFIG_NAME).is_file()
        checkpoints = Checkpoints(self.folder, self._identify())
        if is_started:
            checkpoints.confirm()
        watcher = MemberWatcher(self.watcher)
        self._divide(watcher, is_started=is_started)
        if not is_started:
            checkpoints.begin()
            write_run_config(self.folder, self._describe({}))
        scores: dict[str, dict[str, Scores]] = {}
        tables = []
        for number in range(1, self.number + 1):
            name = FOLD_NAME.format(number)
            watcher.begin(f"{name} of {self.number}")
            try:
                scores[name], table = self._run_fold(number, watcher)
            except PenstockError:
                if scores:
                    done = ", ".join(scores)
                    self.watcher.note(f"{name} failed. These folds are finished, and kept: {done}.")
                raise
            tables.append(table)
        return self._finish(checkpoints, scores, tables)

    def _identify(self) -> dict[str, Any]:
        return {"folds": self.number, **list_effective(self.options)}

    def _describe(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables of `run.yaml`."""
        return {
            **{name: each for name, each in self.settings.items() if name not in ("folds", "facts")},
            "folds": {"number": self.number},
            "train": self.options.to_json(),
            **({"facts": dict(facts)} if facts else {}),
        }

    def _divide(self, watcher: Watcher, *, is_started: bool) -> None:
        """Divide the records into folds, and write the data set of each."""
        splits = list_training_splits(self.data)
        request = FoldRequest(
            self.data, splits, self.number, self.options.seed, find_validation_share(self.data, self.options)
        )
        request.check()
        for note in request.list_notes():
            watcher.note(note)
        out = self.folder / FOLDS_NAME
        existed = out.exists()
        request.divide(out)
        try:
            check_classes(open_dataset(out), self.number)
        except PenstockError:
            if not is_started and not existed:
                shutil.rmtree(out)  # the corrected call divides other records
            raise
        plan = None if self.data.manifest is None else self.data.manifest.plan
        # All before the first run: a link changes the metadata of its file, by which readers notice changes.
        for number in range(1, self.number + 1):
            link_fold(out, number, self.number, self.folder / FOLD_NAME.format(number) / DATA_NAME, plan)

    def _run_fold(self, number: int, watcher: Watcher) -> tuple[dict[str, Scores], pa.Table]:
        """Train a fold if it is not finished; return the scores and the predictions of its records."""
        folder = self.folder / FOLD_NAME.format(number)
        data = open_dataset(folder / DATA_NAME)
        run = self.prepare(data, folder, watcher).run(resume=True)
        plain = EvaluateOptions(bootstrap=0, importance=False, mistakes=0)
        found = evaluate_split(run.predictor(), run.pipeline, run.tasks, data[_TEST], plain)
        for note in found.notes:
            watcher.note(f"{folder.name}: {note}")
        return found.targets, _predict(run, data, number)

    def _finish(
        self,
        checkpoints: Checkpoints,
        scores: Mapping[str, Mapping[str, Scores]],
        tables: list[pa.Table],
    ) -> CrossValidation:
        """Write predictions and scores, and mark the cross-validation as finished."""
        path = self.folder / OUT_OF_FOLD_NAME
        table = pa.concat_tables(tables, promote_options="default")
        settings = self._describe({})
        done = CrossValidation(self.folder, scores, table.num_rows, path, settings)
        digest = combine_digests([self.folder / name for name in scores])
        if read_result(self.folder) == ("finished", digest) and path.is_file():
            return CrossValidation(
                self.folder, scores, table.num_rows, path, read_run_config(self.folder / CONFIG_NAME)
            )
        with (
            AtomicFile(path, overwrite=True) as file,
            open_writer(path.suffix, table.schema, file.write) as writer,
        ):
            for batch in table.to_batches():
                writer.write(batch)
        facts = {
            "records": table.num_rows,
            "scores": scores,
            "mean": done.means,
            "deviation": done.deviations,
        }
        settings = self._describe(facts)
        write_run_config(self.folder, settings)
        checkpoints.finish("finished", digest)
        return CrossValidation(self.folder, scores, table.num_rows, path, settings)


def _predict(run: Run, data: Dataset, number: int) -> pa.Table:
    """Return the predictions of the records of a fold, with the true values and the number of the fold."""
    done = run_prediction(run, data[_TEST], None, PredictOptions(keep=tuple(run.tasks)))
    table = done.to_arrow()
    name = _FOLD
    while name in table.column_names:
        name = f"{name}_number"
    numbers: Any = pa.array([number] * table.num_rows, pa.int32())
    return table.add_column(1, name, numbers)
