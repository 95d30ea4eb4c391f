"""Penstock: data with many inputs to TFRecord shards that describe themselves, and on to trained models."""

from typing import TYPE_CHECKING, Any

from penstock import errors, fields, transform
from penstock.batch.loader import Loader
from penstock.batch.options import LoadOptions
from penstock.dataset import Dataset, mix, open
from penstock.read.options import ReadOptions
from penstock.schema.schema import Schema
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.jobs.convert import convert
    from penstock.jobs.evaluate import evaluate
    from penstock.jobs.predict import predict
    from penstock.jobs.settings import ConvertOptions
    from penstock.jobs.train import train
    from penstock.jobs.writer import Writer
    from penstock.model.build import build_model
    from penstock.model.options import ModelOptions
    from penstock.model.run import Run, open_run
    from penstock.model.training import TrainOptions

__all__ = [
    "ConvertOptions",
    "Dataset",
    "LoadOptions",
    "Loader",
    "ModelOptions",
    "Pipeline",
    "ReadOptions",
    "Run",
    "Schema",
    "TrainOptions",
    "Writer",
    "build_model",
    "convert",
    "errors",
    "evaluate",
    "fields",
    "mix",
    "open",
    "open_run",
    "predict",
    "train",
    "transform",
]

# What touches raw data, and what needs Keras, is loaded with the first use of it: a machine that only reads
# shards needs NumPy. By name: the module, and the extra that has what it needs.
_LOADED_LATE = {
    "ConvertOptions": ("penstock.jobs.settings", "convert"),
    "ModelOptions": ("penstock.model.options", "train"),
    "Run": ("penstock.model.run", "train"),
    "TrainOptions": ("penstock.model.training", "train"),
    "Writer": ("penstock.jobs.writer", "convert"),
    "build_model": ("penstock.model.build", "train"),
    "convert": ("penstock.jobs.convert", "convert"),
    "evaluate": ("penstock.jobs.evaluate", "train"),
    "open_run": ("penstock.model.run", "train"),
    "predict": ("penstock.jobs.predict", "train"),
    "train": ("penstock.jobs.train", "train"),
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - most programs never come here

    module, extra = _LOADED_LATE[name]
    with errors.importing(f"penstock.{name}", extra):
        return getattr(import_module(module), name)
