"""The formats of exports by name, and the functions of the module of a format.

In: the name of a format. Out: its module, imported late: a format may need TensorFlow, Keras or ONNX.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, cast

from penstock.errors import importing
from penstock.foundation.keras_backend import choose_backend
from penstock.model.batch_predictor import BatchPredictor
from penstock.model.task import Task
from penstock.settings.prediction import ExportFormat
from penstock.training.recorded_data import RecordedData
from penstock.training.run import Run
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline


@dataclass(frozen=True)
class ExportedModel:
    """An exported model behind its pipeline; it has the attributes of a `Run` that predictions need.

    `recorded` has schema and conversion plan of the data, for raw rows. `batches` predicts batches of the
    pipeline.
    """

    folder: Path
    pipeline: Pipeline
    tasks: Mapping[str, Task]
    recorded: RecordedData
    batches: BatchPredictor

    @property
    def files(self) -> Path:
        """The local folder with the files of the export."""
        return self.folder

    @property
    def data(self) -> None:
        """None: an export has no data."""
        return None

    @property
    def needs_model(self) -> bool:
        """Whether opening it needs a user's own model: the code of a bundle is not stored."""
        return False

    def predictor(self) -> BatchPredictor:
        """Return the predictor of batches, as `Run.predictor` does."""
        return self.batches


class FormatModule(Protocol):
    """The functions that the module of a format defines."""

    def write(self, run: Run, folder: Path) -> Mapping[str, object]:
        """Write the files of an export into an empty folder.

        Args:
            run: The run, with all that is known about its data.
            folder: The folder. It gets its final name, and `export.json`, afterwards.

        Returns:
            What `export.json` is to contain in addition, as JSON; may be empty.

        Raises:
            OptionError: The run cannot be exported in this format.
        """

    def open_model(
        self, folder: Path, model: Any = None, functions: Mapping[str, MapFunction] | None = None
    ) -> ExportedModel:
        """Open an export whose files have been verified; formats with `takes_raw` do not define it.

        Args:
            folder: The folder.
            model: The user's own model, or a function that returns it; None for a built one.
            functions: Functions of the pipeline's maps, by name.

        Raises:
            OptionError: A model or a function is needed and not given, or the format is not for Penstock.
        """


@dataclass(frozen=True)
class Format:
    """A format of exports.

    Attributes:
        name: Name of the format.
        module: Name of its module.
        extra: Extra of Penstock that installs what the module needs.
        files: Files that every export in this format has.
        uses_keras: Whether opening such an export needs Keras; writing one always does.
        takes_raw: Whether the export takes raw values by itself, without Penstock's pipeline in front.
    """

    name: ExportFormat
    module: str
    extra: str
    files: tuple[str, ...]
    uses_keras: bool = False
    takes_raw: bool = False

    def load(self) -> FormatModule:
        """Import the module."""
        needed_by = f"the format {self.name!r}"
        if self.uses_keras:
            choose_backend(needed_by)
        with importing(needed_by, self.extra):
            return cast("FormatModule", import_module(self.module))


_PARTS: Final = ("model.json", "pipeline.json", "schema.json")

FORMATS: Final[Mapping[str, Format]] = {
    each.name: each
    for each in (
        Format("bundle", "penstock.export.bundle", "train", ("architecture.json", *_PARTS), uses_keras=True),
        Format("onnx", "penstock.export.onnx_format", "onnx", (*_PARTS, "model.onnx")),
        Format(
            "saved_model",
            "penstock.export.saved_model",
            "train,tensorflow",
            ("saved_model.pb",),
            uses_keras=True,
            takes_raw=True,
        ),
    )
}
"""All formats by name."""
