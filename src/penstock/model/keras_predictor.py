"""Predict batches with a Keras model.

In: the arrays of a batch by input. Out: the outputs of the model by target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from numpy.typing import NDArray

from penstock.model.predictor import BatchPredictor
from penstock.model.signature import find_inputs, name_outputs
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
        taken = find_inputs(model)
        # Keras warns of a dict for a model with one input that was not created from a dict.
        is_plain = taken is not None and not isinstance(getattr(model, "input", None), dict | list | tuple)
        self._only = next(iter(taken)) if is_plain and taken is not None and len(taken) == 1 else None

    def call_model(self, arrays: dict[str, NDArray[Any]]) -> Mapping[str, Any]:
        """Return the outputs of the model by target."""
        outputs = self.model.predict_on_batch(arrays if self._only is None else arrays[self._only])
        return name_outputs(self.model, self.tasks, outputs)
