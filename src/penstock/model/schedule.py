"""The learning rate as a function of the step alone, so that a run which is resumed has the same one."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops


class WarmCosine(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Rises evenly to a peak, and falls along a cosine to a part of it.

    Attributes:
        peak: The highest rate.
        warmup_steps: In how many steps it is reached.
        total_steps: Of the run; if not given, the rate stays at its peak.
        floor: What part of the peak remains at the end, and behind it.

    Example:
        >>> [round(float(WarmCosine(1.0, 2, 6)(step)), 3) for step in range(7)]
        [0.5, 1.0, 1.0, 0.855, 0.505, 0.155, 0.01]
    """

    def __init__(
        self, peak: float, warmup_steps: int = 0, total_steps: int | None = None, floor: float = 0.01
    ) -> None:
        super().__init__()
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.floor = floor

    def __call__(self, step: Any) -> Any:
        """Return the rate of a step, counted from 0."""
        place = ops.cast(step, "float32")
        # The first step is taken at a rate above 0.
        rising = ops.minimum((place + 1.0) / max(self.warmup_steps, 1), 1.0)
        if self.total_steps is None:
            return self.peak * rising
        span = max(self.total_steps - self.warmup_steps, 1)
        part = ops.clip((place - self.warmup_steps) / span, 0.0, 1.0)
        falling = self.floor + (1.0 - self.floor) * 0.5 * (1.0 + ops.cos(math.pi * part))
        return self.peak * rising * falling

    def get_config(self) -> dict[str, Any]:
        """Return what it was made with, as Keras asks of every schedule."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "floor": self.floor,
        }
