"""Ensembles: several runs that differ in their seed, and one run that averages them.

In: a fit of a plan, and the number of members. Out: a `Run` whose model is the average. Data,
pipeline and the choices before training are made once, in the folder of the ensemble; each member is a
complete run in a separate folder. Later choices on validation are made for the average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, PenstockError
from penstock.model.presets import fill_in_preset
from penstock.model.task import Task
from penstock.score.scores import Scores, score
from penstock.settings.model import ModelOptions
from penstock.training.assembly import is_compiled_by_owner
from penstock.training.batch_fault import find_batch_fault
from penstock.training.fit import Fit
from penstock.training.keras_state import in_precision, restored_random_state, seeded
from penstock.training.loaders import TrainingLoaders
from penstock.training.progress import MemberWatcher
from penstock.training.run import Run, combine_digests, make_ensemble
from penstock.training.run_config import RunConfig, store_model
from penstock.training.run_facts import RunFacts, RunSeconds
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, MEMBER_NAME, read_config
from penstock.training.run_state import read_result
from penstock.training.run_writer import RunWriter
from penstock.training.train_plan import Chosen, TrainPlan

AVERAGE: Final = "average"
"""Name of the average among the scores of the members."""

_ENSEMBLE: Final = "ensemble"


def check_members(plan: TrainPlan, num_members: int) -> None:
    """Refuse one model for several members, and seeds that are too large."""
    if plan.model is not None and plan.make_model is None:
        raise OptionError(
            "model",
            expected="a function that returns a new model for each run",
            got="one model",
            advice="Pass the function that builds it: `model=build`.",
        )
    plan.options.replace(seed=plan.options.seed + num_members - 1)


@dataclass(frozen=True)
class EnsembleTraining:
    """Several runs with the seeds seed, seed + 1, …, and their average.

    Attributes:
        fit: The fit of the first member, with the folder of the ensemble.
        num_members: Number of members.
        watcher: Watcher that announces the members, which `fit` notifies.
    """

    fit: Fit
    num_members: int
    watcher: MemberWatcher

    def run(self, *, resume: bool = False) -> Run:
        """Train the members that are not finished, and return the average.

        An interrupted ensemble continues with the member that was interrupted, and ends with the same
        weights.
        """
        folder = self.fit.folder
        is_started = resume and (folder / CONFIG_NAME).is_file()
        with restored_random_state():
            prepared, loaders = self.fit.prepare()
            plan = prepared.plan
            writer = RunWriter(folder, self._identify(plan, loaders))
            if is_started:
                writer.checkpoints.confirm()
            else:
                self._begin(plan, writer)
        members = []
        for number in range(1, self.num_members + 1):
            name, seed = MEMBER_NAME.format(number), plan.options.seed + number - 1
            self.watcher.begin(f"{name} of {self.num_members}, with seed {seed}")
            member = replace(prepared, plan=self._plan_member(plan, seed), folder=folder / name)
            try:
                members.append(member.run(resume=True))
            except PenstockError:
                if number > 1:
                    done = ", ".join(MEMBER_NAME.format(each) for each in range(1, number))
                    note = f"{name} failed. These members are finished, and kept: {done}."
                    self.watcher.watcher.note(note)
                raise
        digest = combine_digests([each.files for each in members])
        if read_result(folder) == ("finished", digest):
            config, first = read_config(folder / CONFIG_NAME), members[0]
            if not find_batch_fault(config, first.pipeline, first.tasks.values()):
                return make_ensemble(folder, config, members)
        return self._finish(plan, loaders, writer, members)

    def _identify(self, plan: TrainPlan, loaders: TrainingLoaders) -> dict[str, object]:
        return {**plan.identify(loaders.train, _find_options(plan)), _ENSEMBLE: self.num_members}

    def _begin(self, plan: TrainPlan, writer: RunWriter) -> None:
        """Write the files of the ensemble before its first member; with `run.yaml`, the last, it resumes."""
        writer.write_inputs(plan.data, plan.pipeline)
        writer.checkpoints.begin()
        writer.write_config(self._describe(plan, (plan.chosen or Chosen()).describe()))

    def _describe(self, plan: TrainPlan, facts: RunFacts) -> RunConfig:
        """Return the content of `run.yaml`."""
        return replace(
            plan.config,
            ensemble=self.num_members,
            model=store_model(_find_options(plan)),
            train=plan.list_options(model_is_owners=is_compiled_by_owner(plan.model)),
            facts=facts,
        )

    def _plan_member(self, plan: TrainPlan, seed: int) -> TrainPlan:
        config = replace(plan.config, ensemble=None)
        if config.data == DATA_NAME:
            config = replace(config, data=f"../{DATA_NAME}")
        model, chosen = plan.model, plan.chosen or Chosen()
        if plan.make_model is not None:
            with seeded(seed), in_precision(plan.options.precision):
                model = plan.make_model()
        # A fit before the choices on validation is the fit of the first member.
        is_fitted = chosen.is_fitted and seed == plan.options.seed
        return replace(
            plan,
            options=plan.options.replace(seed=seed),
            model=model,
            config=config,
            chosen=chosen._replace(is_fitted=is_fitted),
        )

    def _finish(
        self, plan: TrainPlan, loaders: TrainingLoaders, writer: RunWriter, members: Sequence[Run]
    ) -> Run:
        """Average the members, choose on validation for the average, and mark the ensemble as finished."""
        folder = self.fit.folder
        with restored_random_state():
            facts = replace(members[0].config.facts, choices={})
            average = make_ensemble(folder, self._describe(plan, facts), members)
            kept = list(average.tasks) if is_compiled_by_owner(plan.model) else facts.class_weights
            choices = loaders.choose(average.predictor(), kept)
            runs = {each.folder.name: each for each in members}
            runs[AVERAGE] = replace(average, choices=choices)
            scores = score_runs(runs, loaders)
        facts = replace(
            facts,
            logits=average.logits,
            seconds=_add_seconds([each.config.facts.seconds for each in members]),
            choices=choices,
            scores=scores,
        )
        config = self._describe(plan, facts)
        writer.write_config(config)
        writer.finish_runs(combine_digests([each.files for each in members]))
        return replace(average, config=config, choices=choices)


def _add_seconds(found: Sequence[RunSeconds | None]) -> RunSeconds | None:
    """Return the seconds of the trials, which members share, and of the training of all members."""
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return found[0]
    return replace(known[0], training=round(sum(each.training or 0.0 for each in known), 1))


def _find_options(plan: TrainPlan) -> ModelOptions | None:
    """Return the options that the models are built from; None for a user's own models."""
    if plan.model is not None:
        return None
    return fill_in_preset(plan.model_options or ModelOptions())


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
