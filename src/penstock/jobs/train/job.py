"""The arguments of a training job, checked before anything is converted or trained.

In: what a caller passes to `penstock.train` or `penstock train`. Out: a `TrainJob`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from penstock.batch.batch_plan import check_shares
from penstock.distributed.workers import Launcher, make_launcher
from penstock.errors import OptionError, StateError
from penstock.format.manifest import load_manifest
from penstock.foundation.wording import argument, list_texts, show
from penstock.jobs.given_dataset import Declaration
from penstock.settings.training import TrainCall
from penstock.training.run_config import RunConfig, is_model_function
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, read_config

_SEVERAL: Final = ("ensemble", "folds")
"""Options that train several models."""


@dataclass(frozen=True, kw_only=True)
class TrainJob:
    """Arguments of one training run.

    Attributes:
        data: A data set, the path of one, or raw data; None for the data of the run that is resumed.
        options: Options of the training; a run that is resumed has the options that are not given.
        folds: Number of folds of a cross-validation, or None.
        fields: Settings of fields for `Pipeline.fit_config`, used if a pipeline is fitted.
        groups: Groups of inputs for `Pipeline.fit_config`, used if a pipeline is fitted.
        declaration: Declarations of the fields of TFRecords.
        config: Content of `run.yaml` before the data is opened: how it was converted.
    """

    data: Any = None
    options: TrainCall = field(default_factory=TrainCall)
    folds: int | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    declaration: Declaration = field(default_factory=Declaration)
    config: RunConfig = field(default_factory=RunConfig)

    @property
    def launcher(self) -> Launcher | None:
        """What starts workers that train together; None if this process trains."""
        return make_launcher(self.options)

    def with_options(self, **changes: Any) -> TrainJob:
        """Return the job with other options."""
        return replace(self, options=self.options.replace(**changes))


def check_job(job: TrainJob, folder: Path) -> None:
    """Check the options of a job, and that a run which is resumed has that target and as many runs."""
    launcher = job.launcher
    if launcher is not None:
        _check_launcher(job, launcher)
    if job.options.target is not None:
        _check_target(job, folder)
    if job.options.ensemble is not None and job.folds is not None:
        raise OptionError(
            "folds",
            field="folds",
            expected="either folds or ensemble",
            got=f"`folds={show(job.folds)}` and `ensemble={show(job.options.ensemble)}`",
            advice="Leave one out: folds estimate the scores on new records, an ensemble predicts better. "
            "For both, train twice, in two folders.",
        )
    for name in _SEVERAL:
        given = _find_given(job, name)
        if job.options.resume and (folder / CONFIG_NAME).is_file():
            stored = _read_number(folder, name)
            if given is not None and given != stored:
                raise StateError(
                    f"{name} of the run",
                    path=folder / CONFIG_NAME,
                    expected=f"no {name}" if stored is None else stored,
                    got=given,
                    advice="Resume with the value that the run was started with, or start a new run.",
                )
        if find_number(job, folder, name) is None:
            continue
        if job.options.callbacks:
            advice = "Callbacks keep state from one run to the next: train single runs with them."
            raise OptionError("callbacks", expected=f"none with {name}", got="some", advice=advice)


def _check_target(job: TrainJob, folder: Path) -> None:
    """Refuse a target that is not the target of the run which is resumed, or of a given pipeline."""
    given, pipeline = list(job.options.target or ()), job.options.pipeline
    if not all(given) or not given:
        raise job.options.refuse("target", "the name of a field, or a list of names")
    fitted = given if pipeline is None else pipeline.schema.targets
    if sorted(fitted) != sorted(given):
        raise OptionError(
            "target",
            field="target",
            expected=f"{list_texts(fitted) or 'none'}, as the pipeline was fitted to",
            got=list_texts(given),
            advice="Leave out the target, or fit the pipeline to a data set that was opened with it.",
        )
    if not job.options.resume or not (folder / CONFIG_NAME).is_file():
        return
    stored = _list_targets(folder)
    if stored and sorted(given) not in map(sorted, stored):
        named = given if len(given) > 1 else given[0]
        raise StateError(
            "target of the run",
            path=folder / CONFIG_NAME,
            expected=list_texts(stored[0]),
            got=list_texts(given),
            advice=f"Resume without {argument('target', named)}, or train in another folder.",
        )


def _list_targets(folder: Path) -> list[list[str]]:
    """Return the targets of a run or of a cross-validation: as they were given, and as they were written."""
    known = read_config(folder / CONFIG_NAME)
    converted = None if known.convert is None else known.convert.target
    found: list[str | Sequence[str] | None] = [known.target, converted]
    if (folder / DATA_NAME).is_dir() and (manifest := load_manifest(folder / DATA_NAME)) is not None:
        found.append(list(manifest.schema.targets))  # the plan chose them, or columns were renamed
    found.append(list(known.facts.targets))
    return [[each] if isinstance(each, str) else list(each) for each in found if each]


def _check_launcher(job: TrainJob, launcher: Launcher) -> None:
    """Refuse what several workers cannot do."""
    launcher.check()
    options = job.options
    if options.batch_size is not None:
        check_shares(options.batch_size, launcher.num_workers, "workers")
    refused = {
        "callbacks": (bool(options.callbacks), "none", "They run in this process: train without workers."),
        "folds": (job.folds is not None, "none", "Train the folds one by one, without workers."),
        "model": (
            options.model is not None and not is_model_function(options.model),
            "a function that returns the model, as each worker builds its own",
            "Pass the function that builds it: `model=build`.",
        ),
    }
    for name, (is_given, expected, advice) in refused.items():
        if is_given:
            raise OptionError(
                name,
                field=name,
                expected=f"{expected}, with several workers or devices",
                got=show(job.folds if name == "folds" else getattr(options, name)),
                advice=advice,
            )


def find_number(job: TrainJob, folder: Path, name: str) -> int | None:
    """Return the number of models of an ensemble, or of folds: the given one, or as in the resumed run."""
    given = _find_given(job, name)
    if given is None and job.options.resume and (folder / CONFIG_NAME).is_file():
        return _read_number(folder, name)
    return given


def _find_given(job: TrainJob, name: str) -> int | None:
    return job.folds if name == "folds" else job.options.ensemble


def _read_number(folder: Path, name: str) -> int | None:
    config = read_config(folder / CONFIG_NAME)
    return config.folds if name == "folds" else config.ensemble
