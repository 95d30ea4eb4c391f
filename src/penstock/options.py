"""The option classes. Each checks its values when it is made; most functions take the attributes as keywords.

Example:
    >>> import penstock as ps
    >>> ps.options.ReadOptions(max_skipped=10).max_skipped
    10
"""

from penstock.batch.options import LoadOptions
from penstock.bridge.graph.files import GraphOptions
from penstock.jobs.export.options import ExportOptions
from penstock.jobs.predict.options import PredictOptions
from penstock.model.options import ModelOptions
from penstock.read.options import ReadOptions
from penstock.report.options import ReportOptions
from penstock.score.options import EvaluateOptions
from penstock.shards.options import ConvertOptions
from penstock.training.options import TrainOptions

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
