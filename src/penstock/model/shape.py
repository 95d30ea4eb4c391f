"""Which arrays go into which inputs of a model.

In: shapes and element types of both. Out: truths, and the words for them in errors. No Keras.
"""

from __future__ import annotations

import numpy as np

from penstock.transform.output import STRINGS, Output


def can_feed(given: str, taken: str) -> bool:
    """Say whether Keras makes elements of one type into another without harm.

    Whole numbers and truths become floats, and int64 codes int32. Floats do not become whole numbers, which
    would cut them, nor strings anything.

    Example:
        >>> can_feed("uint8", "float32"), can_feed("float32", "int32")
        (True, False)
    """
    if given == taken:
        return True
    if given in STRINGS or taken in STRINGS:
        return given in STRINGS and taken in STRINGS
    if "float" in taken or (given, taken) == ("int64", "int32"):
        return True
    return "float" not in given and taken != "bool" and bool(np.can_cast(given, taken, "safe"))


def fits(given: tuple[int | None, ...], taken: tuple[int | None, ...]) -> bool:
    """Say whether arrays of a shape go into an input, both without rows; Keras adds or drops a last 1.

    Example:
        >>> fits((20,), (None,)), fits((), (1,)), fits((None,), (20,))
        (True, True, False)
    """
    if len(given) == len(taken) + 1 and given[-1] == 1:
        given = given[:-1]
    elif len(given) == len(taken) - 1 and taken[-1] == 1:
        given = (*given, 1)
    return len(given) == len(taken) and all(
        wanted is None or wanted == size for size, wanted in zip(given, taken, strict=True)
    )


def describe_shape(shape: tuple[int | None, ...]) -> str:
    """Write a shape with its rows: `(n, 4)`, with ? for what varies."""
    return Output("shape", "float32", shape).describe().removeprefix("float32 ")
