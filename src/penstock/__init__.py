"""Penstock: TFRecord shards that describe themselves, made of anything, fed faster than by anything else."""

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
    from penstock.jobs.settings import ConvertOptions
    from penstock.jobs.writer import Writer

__all__ = [
    "ConvertOptions",
    "Dataset",
    "LoadOptions",
    "Loader",
    "Pipeline",
    "ReadOptions",
    "Schema",
    "Writer",
    "convert",
    "errors",
    "fields",
    "mix",
    "open",
    "transform",
]

# What touches raw data is loaded with the first use of it: a machine that only reads shards needs NumPy.
_LOADED_LATE = {
    "ConvertOptions": "penstock.jobs.settings",
    "Writer": "penstock.jobs.writer",
    "convert": "penstock.jobs.convert",
}


def __getattr__(name: str) -> Any:
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - most programs never come here

    try:
        return getattr(import_module(_LOADED_LATE[name]), name)
    except ModuleNotFoundError as error:
        raise errors.MissingPackageError.from_import(error, f"penstock.{name}") from error
