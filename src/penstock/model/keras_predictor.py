"""Predict batches with a Keras model.

In: the arrays of a batch by input. Out: the outputs of the model by target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from numpy.typing import NDArray

from penstock.bridge.keras_model import takes_array
from penstock.model.batch_predictor import BatchPredictor
from penstock.model.signature import name_outputs
from penstock.model.task import Task
from penstock.transform.pipeline import Pipeline


class KerasPredictor(BatchPredictor):
    """Predicts batches with a Keras model; see `BatchPredictor`.

    Attributes:
        model: The model.

    Example:
        ```python
        predict = KerasPredictor(model, pipeline, find_tasks(pipeline), {"adopted": False})
        predict({"age": ages})["adopted"]  # float32 (n,): probability of the second label
        ```
    """

    def __init__(
        self,
        model: keras.Model,
        pipeline: Pipeline,
        tasks: Mapping[str, Task],
        logits: Mapping[str, bool],
        temperatures: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(pipeline, tasks, logits, temperatures)
        self.model = model
        self._takes_array = takes_array(model, pipeline.inputs)
        self._is_traced = False

    def call_model(self, arrays: dict[str, NDArray[Any]]) -> Mapping[str, Any]:
        """Return the outputs of the model by target."""
        given = next(iter(arrays.values())) if self._takes_array else arrays
        if not self._is_traced and keras.backend.backend() == "tensorflow":
            # Other backends do without TensorFlow.
            from penstock.bridge.tensorflow import trace_predictions  # noqa: PLC0415

            trace_predictions(self.model, self.pipeline.inputs, given)
            self._is_traced = True
        outputs = self.model.predict_on_batch(given)
        return name_outputs(self.model, self.tasks, outputs)
