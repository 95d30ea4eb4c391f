"""The error for data without a field that a model could read.

In: why fields are left out. Out: the error, which says what to declare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.errors import TrainingDataError

_MOST_EXPLAINED: Final = 3  # fields


def refuse_no_inputs(warnings: Sequence[str]) -> TrainingDataError:
    """Return the error for a pipeline without inputs.

    `warnings`: sentences about the fields that are left out without being asked for.
    """
    advice = "Every field is dropped or has another role: keep at least one field as input."
    if warnings:
        shown = [f"{text[0].upper()}{text[1:].removesuffix('.')}." for text in warnings[:_MOST_EXPLAINED]]
        advice = " ".join(shown)
    return TrainingDataError(
        "inputs of the pipeline", expected="at least one input", got="no input", advice=advice
    )
