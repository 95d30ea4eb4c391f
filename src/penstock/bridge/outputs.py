"""Which arrays of a batch a framework takes.

In: what a loader's batches will be. Out: nothing, or a refusal by name, before the first batch.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from numpy.typing import NDArray

from penstock import _native
from penstock.batch.maker import Transforming
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.transform.output import STRINGS, Output
from penstock.transform.padding import Padded
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.batch.loader import Loader


_ENCODE = "Give the loader a pipeline with a transform for it: Image(), Encode() or Tokenize(); or None."
_PAD = "Give the loader a pipeline that pads it: Pad(), or another transform without ragged=True."


def check_outputs(loader: Loader, framework: str, takes_lists: Callable[[Output], bool]) -> None:
    """Refuse outputs that cannot cross to a framework.

    Args:
        loader: The loader.
        framework: Its name, for messages.
        takes_lists: Says of a ragged output whether it has a form for such lists.

    Raises:
        OptionError: An output is none of numbers, or has rows of any length.
    """
    for part in loader.signature():
        for name, output in part.items():
            is_text = output.dtype in STRINGS
            if is_text or (output.is_ragged and not takes_lists(output)):
                raise OptionError(
                    f"output {name!r} for {framework}",
                    field=name,
                    expected="numbers" if is_text else "an array",
                    got=output.describe(),
                    advice=_ENCODE if is_text else _PAD,
                )


# Shorter rows cost about as much as rows of 8, and each size costs a compilation.
_LEAST = 8


class Sizes:
    """The lengths that varying ones are padded to.

    Args:
        given: They, in any order; beyond the greatest come its multiples. None is the powers of two from 8
            on; none at all leaves lengths as they are.

    Example:
        >>> Sizes().find(9), Sizes([10, 50]).find(9), Sizes([10, 50]).find(120)
        (16, 10, 150)
    """

    def __init__(self, given: Iterable[int] | None = None) -> None:
        """Take the sizes.

        Raises:
            OptionError: They are no positive whole numbers.
        """
        is_iterable = isinstance(given, Iterable) and not isinstance(given, str | bytes)
        numbers = list(given) if is_iterable and given is not None else []
        if (given is not None and not is_iterable) or not all(map(_is_size, numbers)):
            raise OptionError("sizes", expected="a list of whole numbers of at least 1", got=show(given))
        self._is_usual = given is None
        self._sizes = sorted({operator.index(number) for number in numbers})

    def find(self, length: int, most: int | None = None) -> int:
        """Return the size for a length; at most `most`, if that is said and is not less than the length."""
        size = self._round(length)
        return size if most is None else max(length, min(size, most))

    def _round(self, length: int) -> int:
        if self._is_usual:
            return max(_LEAST, 1 << max(0, length - 1).bit_length())
        if not self._sizes:
            return length
        at = bisect_left(self._sizes, length)
        greatest = self._sizes[-1]
        return self._sizes[at] if at < len(self._sizes) else -(-length // greatest) * greatest


class Padding(NamedTuple):
    """How an output is padded by its own transform, and so beyond that.

    Attributes:
        value: What padding is.
        most: How long its transform lets rows be at most, or None.
    """

    value: float = 0
    most: int | None = None


def find_paddings(pipeline: Transforming) -> dict[str, Padding]:
    """Return how each output of a transform that pads is padded, by name."""
    paddings: dict[str, Padding] = {}
    transforms = pipeline.transforms if isinstance(pipeline, Pipeline) else {}
    for name, transform in transforms.items():
        if isinstance(transform, Padded):
            paddings[name] = Padding(transform.padding, transform.length)
            if transform.mask:
                paddings[f"{name}_mask"] = Padding(False, transform.length)
    return paddings


def pad_array(array: NDArray[Any], output: Output, padding: Padding, sizes: Sizes) -> NDArray[Any]:
    """Return an array whose varying dimensions have one of the sizes, itself if they have already."""
    shape = [len(array)]
    for axis, (dim, length) in enumerate(zip(output.shape, array.shape[1:], strict=True)):
        # Steps within rows have no bound of their own, where their length varies.
        most = padding.most if axis == 0 else None
        shape.append(length if dim is not None else sizes.find(length, most))
    if tuple(shape) == array.shape:
        return array
    padded = _native.empty(tuple(shape), array.dtype.name)
    padded[...] = padding.value
    padded[tuple(map(slice, array.shape))] = array
    return padded


def _is_size(number: object) -> bool:
    return isinstance(number, SupportsIndex) and not isinstance(number, bool) and operator.index(number) > 0
