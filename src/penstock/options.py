"""The option classes: `ps.options.TrainOptions(epochs=5)`. Each checks its values when it is made.

In: nothing. Out: the classes of the stages and jobs. Most functions take the attributes of these classes as
keywords.
"""

from penstock.batch.options import LoadOptions
from penstock.bridge.graph.files import GraphOptions
from penstock.jobs.predict.options import PredictOptions
from penstock.model.options import ModelOptions
from penstock.read.options import ReadOptions
from penstock.score.options import EvaluateOptions
from penstock.shards.options import ConvertOptions
from penstock.training.options import TrainOptions

__all__ = [
    "ConvertOptions",
    "EvaluateOptions",
    "GraphOptions",
    "LoadOptions",
    "ModelOptions",
    "PredictOptions",
    "ReadOptions",
    "TrainOptions",
]
