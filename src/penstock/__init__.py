"""Penstock: data with many inputs to TFRecord shards that describe themselves, and on to trained models."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing: this module imports nothing, see below
if TYPE_CHECKING:
    from typing import Any

    from penstock import errors, fields, options, transform
    from penstock.batch.loader import Loader
    from penstock.dataset import Dataset, mix, open
    from penstock.jobs.convert.convert import convert
    from penstock.jobs.convert.writer import Writer
    from penstock.jobs.evaluate.evaluate import evaluate
    from penstock.jobs.export.export import export_model
    from penstock.jobs.predict.predict import predict
    from penstock.jobs.predict.predictor import Predictor
    from penstock.jobs.train.cross_validation.cross_validate import cross_validate
    from penstock.jobs.train.train import train
    from penstock.model.build import build_model
    from penstock.report.report import write_report
    from penstock.schema.schema import Schema
    from penstock.training.run import Run, open_run
    from penstock.transform.pipeline import Pipeline

__all__ = [
    "Dataset",
    "Loader",
    "Pipeline",
    "Predictor",
    "Run",
    "Schema",
    "Writer",
    "build_model",
    "convert",
    "cross_validate",
    "errors",
    "evaluate",
    "export_model",
    "fields",
    "mix",
    "open",
    "open_run",
    "options",
    "predict",
    "train",
    "transform",
    "write_report",
]

# Each name is loaded with its first use. So a machine that only reads shards needs NumPy alone, and the
# command line can handle Ctrl-C before anything large is imported. By name: the module, and the extra that
# installs what the module needs.
_LOADED_LATE: dict[str, tuple[str, str | None]] = {
    "Dataset": ("penstock.dataset", None),
    "Loader": ("penstock.batch.loader", None),
    "Pipeline": ("penstock.transform.pipeline", None),
    "Predictor": ("penstock.jobs.predict.predictor", "convert"),
    "Run": ("penstock.training.run", "train"),
    "Schema": ("penstock.schema.schema", None),
    "Writer": ("penstock.jobs.convert.writer", "convert"),
    "build_model": ("penstock.model.build", "train"),
    "convert": ("penstock.jobs.convert.convert", "convert"),
    "cross_validate": ("penstock.jobs.train.cross_validation.cross_validate", "train"),
    "evaluate": ("penstock.jobs.evaluate.evaluate", "train"),
    "export_model": ("penstock.jobs.export.export", "train"),
    "mix": ("penstock.dataset", None),
    "open": ("penstock.dataset", None),
    "open_run": ("penstock.training.run", "train"),
    "predict": ("penstock.jobs.predict.predict", "train"),
    "train": ("penstock.jobs.train.train", "train"),
    "write_report": ("penstock.report.report", "report"),
}
_MODULES = ("errors", "fields", "options", "transform")


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - as all else

    if name == "__version__":
        return import_module("importlib.metadata").version("penstock")
    if name in _MODULES:
        return import_module(f"penstock.{name}")
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    module, extra = _LOADED_LATE[name]
    if extra == "train":
        from penstock.foundation.keras_backend import importing_keras  # noqa: PLC0415

        with importing_keras(f"penstock.{name}"):
            return getattr(import_module(module), name)
    from penstock.errors import importing  # noqa: PLC0415

    with importing(f"penstock.{name}", extra):
        return getattr(import_module(module), name)
