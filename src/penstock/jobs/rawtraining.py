"""Raw data on its way to a model: converted into the run's own folder first.

In: a source, and what was told of it. Out: the data set, and what `run.yaml` says of how it was made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import OptionError
from penstock.jobs.conversion import OnProgress
from penstock.jobs.convert import plan_conversion, run_conversion
from penstock.jobs.plan import PlanOverrides
from penstock.jobs.settings import ConvertOptions
from penstock.schema.plan import Plan


@dataclass(frozen=True)
class RawData:
    """What is converted before a model is trained on it.

    Attributes:
        source: Anything that `convert` takes.
        told: Of its columns.
        options: How to convert it.
        tables: The same for `run.yaml`.
    """

    source: Any
    told: PlanOverrides = field(default_factory=PlanOverrides)
    options: ConvertOptions = field(default_factory=ConvertOptions)
    tables: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Any, target: str | Sequence[str] | None, seed: int) -> RawData:
        """Return raw data of which no more is known than what is to be predicted."""
        paths = [source] if isinstance(source, str | os.PathLike) else source
        is_path = isinstance(paths, list | tuple) and all(isinstance(p, str | os.PathLike) for p in paths)
        named = [os.path.abspath(each) for each in paths] if is_path else []  # noqa: PTH100
        tables: dict[str, Any] = {"source": named if len(named) > 1 else named[0]} if named else {}
        tables["convert"] = {"seed": seed, **({"target": target} if target is not None else {})}
        return cls(source, PlanOverrides(target=target), ConvertOptions(seed=seed), tables)

    def convert(self, out: Path, on_progress: OnProgress | None = None) -> Dataset:
        """Convert into a folder; what a killed run has left there is taken as far as it goes.

        Raises:
            OptionError: Nothing is to be predicted.
            PenstockError: See `convert`.
        """
        plan = plan_conversion(self.source, self.told, self.options)
        if not _list_targets(plan):
            names = ", ".join(each.column for each in plan.columns[:10])
            advice = f"Name it: --target NAME. There are {names}."
            raise OptionError("target", expected="a column to predict", got="none", advice=advice)
        done = run_conversion(self.source, out, self.told, replace(self.options, resume=True), on_progress)
        return open_dataset(done.out)


def _list_targets(plan: Plan) -> list[str]:
    return [each.name for each in plan.columns if each.field.role == "target"]
