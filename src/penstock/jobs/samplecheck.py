"""What is plainly wrong with a sample, told at the call that brings it.

In: a sample and its schema. Out: an error, or nothing: what needs a closer look is found when the samples are
encoded, a block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from penstock.errors import CellError
from penstock.foundation.wording import show
from penstock.schema.array import Tensor
from penstock.schema.field import Field
from penstock.schema.schema import Schema

_LISTS: Final = (list, tuple, dict, set)


def check_sample(schema: Schema, sample: Mapping[str, Any], number: int) -> None:
    """Refuse a sample that lacks a required field, or has a value of a kind that its field never takes.

    Args:
        schema: What a sample holds.
        sample: The sample.
        number: Its number, from 0.

    Raises:
        CellError: The sample is such.
    """
    for name, field in schema.items():
        value = sample.get(name)
        if value is None:
            if field.optional:
                continue
            expected, advice = (
                "a value",
                "Give the sample one, or the field optional=True or a default.",
            )
        elif _CHECKS[field.type_name](field, value):
            continue
        else:
            expected, advice = f"what a field {field!r} holds", ""
        shape = getattr(value, "shape", None)
        got = "nothing" if value is None else f"an array of shape {shape}" if shape else show(value)
        raise CellError(
            f"column {name!r}", row=number + 1, field=name, expected=expected, got=got, advice=advice
        )


def _may_be_number(field: Field, value: Any) -> bool:  # noqa: ARG001 - one form for all checks
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return not isinstance(value, (*_LISTS, bytes, bytearray)) and np.ndim(value) == 0


def _may_be_text(field: Field, value: Any) -> bool:  # noqa: ARG001
    return not isinstance(value, _LISTS) and not (isinstance(value, np.ndarray) and value.ndim > 0)


def _may_be_bytes(field: Field, value: Any) -> bool:  # noqa: ARG001
    return not isinstance(value, (int, float, list, tuple, set))


def _may_be_sequence(field: Field, value: Any) -> bool:  # noqa: ARG001
    return not isinstance(value, (int, float, str, bytes, np.number))


def _may_be_tensor(field: Field, value: Any) -> bool:
    if isinstance(value, str | bytes) or not isinstance(field, Tensor):
        return False
    shape = getattr(value, "shape", None)
    return shape is None or tuple(shape) == field.shape


_CHECKS: Final[Mapping[str, Callable[[Field, Any], bool]]] = {
    "number": _may_be_number,
    "category": _may_be_text,
    "text": _may_be_text,
    "image": _may_be_bytes,
    "bytes": _may_be_bytes,
    "sequence": _may_be_sequence,
    "tensor": _may_be_tensor,
}
