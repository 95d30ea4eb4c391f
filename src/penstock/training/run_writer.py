"""Write the folder of a run: `run.yaml`, `pipeline.json`, `fields.json`, checkpoints, history, weights.

In: what a run, an ensemble or a cross-validation has found so far. Out: its files, each written atomically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.dataset import Dataset
from penstock.training.checkpoint import Checkpoint, Checkpoints
from penstock.training.history import Row, write_history
from penstock.training.recorded_data import save_fields
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME, PIPELINE_NAME, write_config
from penstock.training.run_model import save_weights
from penstock.transform.pipeline import Pipeline


class RunWriter:
    """Writes the files of one run.

    Attributes:
        folder: Folder of the run.
        checkpoints: Checkpoints of the run, with its identity: what a resumed run must share with it.
    """

    def __init__(self, folder: Path, identity: Mapping[str, object]) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder, identity)

    @property
    def has_config(self) -> bool:
        """Whether `run.yaml` is written."""
        return (self.folder / CONFIG_NAME).is_file()

    def write_inputs(self, data: Dataset, pipeline: Pipeline) -> None:
        """Write the pipeline, and schema and conversion plan of the data."""
        pipeline.save(self.folder / PIPELINE_NAME)
        save_fields(self.folder, data.schema, None if data.manifest is None else data.manifest.plan)

    def write_config(self, config: RunConfig) -> None:
        """Write `run.yaml`."""
        write_config(self.folder, config)

    def write_history(self, rows: Sequence[Row]) -> None:
        """Write the metrics of all epochs."""
        write_history(self.folder, rows)

    def save(self, moment: Checkpoint) -> None:
        """Write a checkpoint."""
        self.checkpoints.save(moment)

    def finish(self, model: Any, pipeline: Pipeline, status: str = "finished") -> None:
        """Write the weights, and how the run ended."""
        self.checkpoints.finish(status, save_weights(self.folder, model, pipeline))

    def finish_runs(self, digest: str) -> None:
        """Mark an ensemble or a cross-validation as finished.

        `digest`: SHA-256 of the weights of its runs.
        """
        self.checkpoints.finish("finished", digest)
