"""Cross-validation: one run per fold, trained on the other folds, and predictions of every record.

In: a data set, the number of folds, and the job of one fold. Out: a `CrossValidation`. A fold
takes no part in the training of its model: pipeline, best epoch and every choice come from other folds.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import PenstockError
from penstock.foundation.html import Html, display_safely, make_block, make_table
from penstock.foundation.wording import count
from penstock.jobs.predict.predict import run_prediction
from penstock.jobs.predict.prediction_file import open_writer
from penstock.jobs.train.cross_validation.fold_data import FOLDS_NAME, FoldRequest, check_classes, link_fold
from penstock.jobs.train.job import TrainJob
from penstock.jobs.train.train import plan_training, run_plan
from penstock.score.score_text import format_score, name_score
from penstock.score.scores import Number, Scores
from penstock.score.split_evaluation import evaluate_split
from penstock.settings.prediction import EvaluateOptions, PredictOptions
from penstock.settings.training import TrainOptions
from penstock.storage.atomic import AtomicFile
from penstock.storage.store_path import AnyPath
from penstock.training.loaders import find_validation_share, list_training_splits
from penstock.training.progress import MemberWatcher, SilentWatcher, Watcher
from penstock.training.run import FOLD_NAME, OUT_OF_FOLD_NAME, Run, combine_digests
from penstock.training.run_config import RunConfig
from penstock.training.run_facts import RunFacts
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, read_config
from penstock.training.run_state import read_result
from penstock.training.run_writer import RunWriter
from penstock.training.train_plan import list_effective, spell_out

_TEST: Final = "test"
_FOLD: Final = "fold"


@dataclass(frozen=True, repr=False)
class CrossValidation:
    """The result of a cross-validation.

    Attributes:
        folder: Folder of the cross-validation.
        scores: Scores of each fold, by name of the fold and by target.
        records: Number of records that were predicted, each by the model of its fold.
        predictions: Path of the out-of-fold predictions.
        config: Content of `run.yaml`.

    Example:
        ```python
        found = ps.cross_validate(pets, folds=5, out="runs/pets-folds")
        found.means["adopted"]["auc"], found.deviations["adopted"]["auc"]
        ```
    """

    folder: AnyPath
    scores: Mapping[str, Mapping[str, Scores]]
    records: int
    predictions: AnyPath
    config: RunConfig

    @property
    def runs(self) -> tuple[AnyPath, ...]:
        """Folders of the folds; `penstock.open_run` opens each."""
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
            (target, name_score(name), format_score(mean), format_score(self.deviations[target][name]))
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
                lines.append(f"  {name_score(name):<18}{format_score(mean):>10} ± {spread}")
        return "\n".join(lines)


@dataclass(frozen=True)
class FoldTraining:
    """A cross-validation before it starts.

    Attributes:
        data: The data set.
        folder: Folder of the cross-validation.
        number: Number of folds.
        options: Options of the training of each fold.
        job: Job of each fold, without its data.
        config: Content of `run.yaml`, without results.
        watcher: Object that is notified of progress.
    """

    data: Dataset
    folder: Path
    number: int
    options: TrainOptions
    job: TrainJob
    config: RunConfig = field(default_factory=RunConfig)
    watcher: Watcher = field(default_factory=SilentWatcher)

    def run(self, *, resume: bool = False) -> CrossValidation:
        """Train the folds that are not finished, predict each with its model, and return the scores.

        An interrupted cross-validation continues with the fold that was interrupted, and ends with the same
        weights and predictions.
        """
        is_started = resume and (self.folder / CONFIG_NAME).is_file()
        writer = RunWriter(self.folder, self._identify())
        if is_started:
            writer.checkpoints.confirm()
        watcher = MemberWatcher(self.watcher)
        self._divide(watcher, is_started=is_started)
        if not is_started:
            writer.checkpoints.begin()
            writer.write_config(self._describe(RunFacts()))
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
        return self._finish(writer, scores, tables)

    def _identify(self) -> dict[str, object]:
        return {"folds": self.number, **list_effective(self.options)}

    def _describe(self, facts: RunFacts) -> RunConfig:
        """Return the content of `run.yaml`."""
        return replace(self.config, folds=self.number, train=spell_out(self.options), facts=facts)

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
        job = replace(self.job, data=data)
        run = run_plan(job, plan_training(job, folder), folder, watcher)
        plain = EvaluateOptions(bootstrap=0, importance=False, mistakes=0)
        found = evaluate_split(run.predictor(), run.pipeline, run.tasks, data[_TEST], plain)
        for note in found.notes:
            watcher.note(f"{folder.name}: {note}")
        return found.targets, _predict(run, data, number)

    def _finish(
        self, writer: RunWriter, scores: Mapping[str, Mapping[str, Scores]], tables: list[pa.Table]
    ) -> CrossValidation:
        """Write predictions and scores, and mark the cross-validation as finished."""
        path = self.folder / OUT_OF_FOLD_NAME
        table = pa.concat_tables(tables, promote_options="default")
        done = CrossValidation(self.folder, scores, table.num_rows, path, self._describe(RunFacts()))
        digest = combine_digests([self.folder / name for name in scores])
        if read_result(self.folder) == ("finished", digest) and path.is_file():
            return replace(done, config=read_config(self.folder / CONFIG_NAME))
        with (
            AtomicFile(path, overwrite=True) as file,
            open_writer(path.suffix, table.schema, file.write) as rows,
        ):
            for batch in table.to_batches():
                rows.write(batch)
        facts = RunFacts(records=table.num_rows, scores=scores, mean=done.means, deviation=done.deviations)
        done = replace(done, config=self._describe(facts))
        writer.write_config(done.config)
        writer.finish_runs(digest)
        return done


def _predict(run: Run, data: Dataset, number: int) -> pa.Table:
    """Return the predictions of the records of a fold, with the true values and the number of the fold."""
    done = run_prediction(run, data[_TEST], None, PredictOptions(keep=tuple(run.tasks)))
    table = done.to_arrow()
    name = _FOLD
    while name in table.column_names:
        name = f"{name}_number"
    numbers: Any = pa.array([number] * table.num_rows, pa.int32())
    return table.add_column(1, name, numbers)
