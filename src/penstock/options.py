"""The option classes. Each checks its values when it is made; most functions take the attributes as keywords.

Example:
    >>> import penstock as ps
    >>> ps.options.ReadOptions(max_skipped=10).max_skipped
    10
"""

from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import ReadOptions
from penstock.settings.loading import GraphOptions, LoadOptions
from penstock.settings.model import ModelOptions
from penstock.settings.prediction import EvaluateOptions, ExportOptions, PredictOptions, ReportOptions
from penstock.settings.training import TrainOptions

__all__ = [
    "ConvertOptions",
    "EvaluateOptions",
    "ExportOptions",
    "GraphOptions",
    "LoadOptions",
    "ModelOptions",
    "PredictOptions",
    "ReadOptions",
    "ReportOptions",
    "TrainOptions",
]
