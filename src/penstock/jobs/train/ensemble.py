"""Ensembles: several runs that differ in their seed, and one run that averages them.

In: a training that is ready to run, and the number of members. Out: a `Run` whose model is the average. Data,
pipeline and the choices before training are made once, in the folder of the ensemble; each member is a
complete run in a folder of its own. What is chosen on validation afterwards is chosen for the average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, PenstockError
from penstock.foundation.wording import show
from penstock.model.options import ModelOptions
from penstock.model.task import Task
from penstock.score.scores import Scores, score
from penstock.training.checkpoint import Checkpoints, read_result
from penstock.training.loaders import TrainingLoaders
from penstock.training.precision import in_precision
from penstock.training.progress import SilentWatcher, TrainingProgress, Watcher
from penstock.training.random_state import restored_random_state, seeded
from penstock.training.run import (
    Run,
    combine_digests,
    make_ensemble,
    save_fields,
)
from penstock.training.run_files import (
    CONFIG_NAME,
    DATA_NAME,
    MEMBER_NAME,
    MOST_RUNS,
    OWN_MODEL,
    PIPELINE_NAME,
    read_run_config,
    write_run_config,
)
from penstock.training.train import Training, is_compiled_by_owner

AVERAGE: Final = "average"
"""Name of the average among the scores of the members."""

_ENSEMBLE: Final = "ensemble"


def check_number(option: str, number: object) -> None:
    """Refuse a number of runs that is not a whole number of at least 2.

    Raises:
        OptionError: It is not one.
    """
    is_whole = isinstance(number, int) and not isinstance(number, bool)
    if not is_whole or not 2 <= number <= MOST_RUNS:  # type: ignore[operator]
        raise OptionError(
            option,
            field=option,
            expected=f"a whole number from 2 to {MOST_RUNS}",
            got=show(number),
            advice=f"5 is usual: --{option} 5, in Python {option}=5. For a single model, leave it out.",
        )


@dataclass(frozen=True)
class EnsembleTraining:
    """Several runs with the seeds seed, seed + 1, …, and their average.

    Attributes:
        training: The training of the first member, with the folder of the ensemble.
        num_members: Number of members.
    """

    training: Training
    num_members: int

    def run(self, *, resume: bool = False) -> Run:
        """Train the members that are not finished, and return the average.

        An interrupted ensemble continues with the member that was interrupted, and ends with the same
        weights.

        Raises:
            OptionError: One model is given, rather than a function that returns a new one for each member.
            StateError: The folder holds another ensemble.
            PenstockError: See `Training.run`. Members that are finished are kept.
        """
        training, folder = self.training, self.training.folder
        if training.model is not None and training.make_model is None:
            raise OptionError(
                "model",
                expected="a function that returns a new model for each run",
                got="one model",
                advice="Pass the function that builds it: model=build.",
            )
        seeds = [training.options.seed + number for number in range(self.num_members)]
        replace(training.options, seed=seeds[-1])  # raises an error if it is too large
        is_started = resume and (folder / CONFIG_NAME).is_file()
        watcher = MemberWatcher(training.watcher)
        with restored_random_state():
            prepared, loaders = replace(training, watcher=watcher).prepare()
            checkpoints = Checkpoints(folder, self._identify(prepared, loaders))
            if is_started:
                checkpoints.confirm()
            else:
                self._begin(prepared, checkpoints)
        members = []
        for number, seed in enumerate(seeds, 1):
            name = MEMBER_NAME.format(number)
            watcher.begin(f"{name} of {self.num_members}, with seed {seed}")
            try:
                members.append(self._make_member(prepared, name, seed).run(resume=True))
            except PenstockError:
                if number > 1:
                    done = ", ".join(MEMBER_NAME.format(each) for each in range(1, number))
                    training.watcher.note(f"{name} failed. These members are finished, and kept: {done}.")
                raise
        digest = combine_digests([each.files for each in members])
        if read_result(folder) == ("finished", digest):
            return make_ensemble(folder, read_run_config(folder / CONFIG_NAME), members)
        return self._finish(prepared, loaders, checkpoints, members)

    def _identify(self, prepared: Training, loaders: TrainingLoaders) -> dict[str, Any]:
        return {**prepared.identify(loaders.train, _find_options(prepared)), _ENSEMBLE: self.num_members}

    def _begin(self, prepared: Training, checkpoints: Checkpoints) -> None:
        """Write the files of the ensemble before its first member; with `run.yaml`, the last, it resumes."""
        folder, manifest = prepared.folder, prepared.data.manifest
        prepared.pipeline.save(folder / PIPELINE_NAME)
        save_fields(folder, prepared.data.schema, None if manifest is None else manifest.plan)
        checkpoints.begin()
        write_run_config(folder, self._describe(prepared, prepared.describe_choices()))

    def _describe(self, prepared: Training, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables of `run.yaml`."""
        options = _find_options(prepared)
        return {
            **{name: each for name, each in prepared.settings.items() if name != _ENSEMBLE},
            _ENSEMBLE: {"members": self.num_members},
            "model": OWN_MODEL if options is None else options.to_json(),
            "train": prepared.list_options(model_is_owners=is_compiled_by_owner(prepared.model)),
            "facts": dict(facts),
        }

    def _make_member(self, prepared: Training, name: str, seed: int) -> Training:
        settings = {key: each for key, each in prepared.settings.items() if key != _ENSEMBLE}
        if settings.get("data") == DATA_NAME:
            settings["data"] = f"../{DATA_NAME}"
        model = prepared.model
        if prepared.make_model is not None:
            with seeded(seed), in_precision(prepared.options.precision):
                model = prepared.make_model()
        return replace(
            prepared,
            folder=prepared.folder / name,
            options=replace(prepared.options, seed=seed),
            model=model,
            settings=settings,
        )

    def _finish(
        self,
        prepared: Training,
        loaders: TrainingLoaders,
        checkpoints: Checkpoints,
        members: Sequence[Run],
    ) -> Run:
        """Average the members, choose on validation for the average, and mark the ensemble as finished."""
        folder = prepared.folder
        with restored_random_state():
            average = make_ensemble(folder, self._describe(prepared, {}), members)
            facts = dict(members[0].settings["facts"])
            facts.pop("choices", None)
            facts["logits"] = dict(average.logits)
            kept = (
                list(average.tasks)
                if is_compiled_by_owner(prepared.model)
                else facts.get("class_weights", {})
            )
            choices = loaders.choose(average.predictor(), kept)
            if choices:
                facts["choices"] = {name: each.to_json() for name, each in choices.items()}
            runs = {each.folder.name: each for each in members}
            runs[AVERAGE] = replace(average, choices=choices)
            if scores := score_runs(runs, loaders):
                facts["scores"] = scores
        settings = self._describe(prepared, facts)
        write_run_config(folder, settings)
        checkpoints.finish("finished", combine_digests([each.files for each in members]))
        return replace(average, settings=settings, choices=choices)


def _find_options(prepared: Training) -> ModelOptions | None:
    """Return the options that the models are built from; None for a user's own models."""
    if prepared.model is not None:
        return None
    return (prepared.model_options or ModelOptions()).resolved()


def score_runs(runs: Mapping[str, Run], loaders: TrainingLoaders) -> dict[str, dict[str, Scores]]:
    """Return the scores of runs with one pipeline on the validation records, by run and target.

    Every record has the same weight. Without validation there are no scores.
    """
    if loaders.validation is None:
        return {}
    tasks = next(iter(runs.values())).tasks
    truths: dict[str, list[NDArray[Any]]] = {name: [] for name in tasks}
    found: dict[tuple[str, str], list[NDArray[Any]]] = {}
    predictors = {name: run.predictor() for name, run in runs.items()}
    with loaders.validation.read(0) as batches:
        for inputs, targets, *_ in batches:
            for target, task in tasks.items():
                truths[target].append(read_truth(task, targets[target]))
            for name, predict in predictors.items():
                for target, values in predict(inputs).items():
                    found.setdefault((name, target), []).append(np.array(values))
    return {
        name: {
            target: score(task, np.concatenate(truths[target]), np.concatenate(found[name, target]))
            for target, task in tasks.items()
        }
        for name in runs
    }


def read_truth(task: Task, values: NDArray[Any]) -> NDArray[Any]:
    """Return the targets of a batch as codes, or as numbers in the units of the data."""
    if task.kind == "regression":
        return np.array(task.undo(np.asarray(values, np.float64)))
    return np.asarray(values).astype(np.int64)


@dataclass
class MemberWatcher:
    """A watcher of one of several runs: passes on everything, and notes that are the same for all runs once.

    Attributes:
        watcher: Watcher that is notified.
        label: Name of the current run.
    """

    watcher: Watcher = field(default_factory=SilentWatcher)
    label: str = ""

    def __post_init__(self) -> None:
        self._seen: set[str] = set()

    def begin(self, label: str) -> None:
        """Announce the next run."""
        self.label = label
        self.watcher.note(f"{label}:")

    def columns(self, table: Sequence[str]) -> None:
        """Pass on the columns."""
        self.watcher.columns(table)

    def note(self, text: str) -> None:
        """Pass on a note, once."""
        if text not in self._seen:
            self._seen.add(text)
            self.watcher.note(text)

    def step(self, progress: TrainingProgress) -> None:
        """Pass on a step."""
        self.watcher.step(progress)

    def epoch(self, progress: TrainingProgress, *, is_best: bool) -> None:
        """Pass on an epoch."""
        self.watcher.epoch(progress, is_best=is_best)

    def end(self, text: str) -> None:
        """Pass on how the run ended."""
        self.watcher.end(text)
