"""Batches for a framework: supported outputs, padding to a few sizes, and dicts, tuples or plain arrays.

In: the outputs of a loader, and the option `structure`. Out: an error that names an output which the
framework does not support, before the first batch; padded arrays; an `Arrangement`, which arranges batches.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, SupportsIndex, TypeAlias, get_args

from numpy.typing import NDArray

from penstock import _native
from penstock.batch.maker import Transforming
from penstock.errors import OptionError
from penstock.foundation.wording import list_choices, show
from penstock.transform.assembly import Assembly
from penstock.transform.output import STRINGS, Output
from penstock.transform.padding import Padded

if TYPE_CHECKING:
    from penstock.batch.loader import Loader


_ENCODE = (
    "Use a pipeline with a transform for the field, such as Image(), Encode() or Tokenize(), or leave the "
    "field out with None."
)
_PAD = "Use a pipeline that pads the field: Pad(), or another transform without ragged=True."


def check_outputs(loader: Loader, framework: str, takes_lists: Callable[[Output], bool]) -> None:
    """Refuse outputs that a framework does not support."""
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


# Shorter rows take about as long as rows of 8, and each size costs one compilation.
_MIN_SIZE = 8


class Sizes:
    """The sizes to which varying lengths are padded.

    Without given sizes, these are the powers of two from 8; an empty list leaves lengths unchanged. A length
    beyond the largest is padded to a multiple of it.

    Example:
        >>> Sizes().find(9), Sizes([10, 50]).find(9), Sizes([10, 50]).find(120)
        (16, 10, 150)
    """

    def __init__(self, sizes: Iterable[int] | None = None) -> None:
        is_iterable = isinstance(sizes, Iterable) and not isinstance(sizes, str | bytes)
        numbers = list(sizes) if is_iterable and sizes is not None else []
        if (sizes is not None and not is_iterable) or not all(map(_is_size, numbers)):
            raise OptionError("sizes", expected="a list of whole numbers of at least 1", got=show(sizes))
        self._is_default = sizes is None
        self._sizes = sorted({operator.index(number) for number in numbers})

    def find(self, length: int, most: int | None = None) -> int:
        """Return the size for a length: at most `most` if given, but never less than the length."""
        size = self._round(length)
        return size if most is None else max(length, min(size, most))

    def _round(self, length: int) -> int:
        if self._is_default:
            return max(_MIN_SIZE, 1 << max(0, length - 1).bit_length())
        if not self._sizes:
            return length
        index = bisect_left(self._sizes, length)
        largest = self._sizes[-1]
        return self._sizes[index] if index < len(self._sizes) else -(-length // largest) * largest


class Padding(NamedTuple):
    """Padding value of an output, and the maximum length of a row, or None."""

    value: float = 0
    most: int | None = None


def find_paddings(pipeline: Transforming) -> dict[str, Padding]:
    """Return the padding of each output of a padding transform, by output name."""
    paddings: dict[str, Padding] = {}
    transforms = pipeline.fed if isinstance(pipeline, Assembly) else {}
    for name, transform in transforms.items():
        if isinstance(transform, Padded):
            paddings[name] = Padding(transform.padding, transform.length)
            if transform.mask:
                paddings[f"{name}_mask"] = Padding(False, transform.length)
    return paddings


def pad_array(array: NDArray[Any], output: Output, padding: Padding, sizes: Sizes) -> NDArray[Any]:
    """Pad the varying dimensions of an array to one of the sizes; return the array itself if they fit."""
    shape = [len(array)]
    for axis, (dim, length) in enumerate(zip(output.shape, array.shape[1:], strict=True)):
        # The transform bounds only the length of rows, not the varying length of steps within them.
        most = padding.most if axis == 0 else None
        shape.append(length if dim is not None else sizes.find(length, most))
    return pad_to(array, tuple(shape), padding.value)


def pad_to(array: NDArray[Any], shape: tuple[int, ...], value: float) -> NDArray[Any]:
    """Pad an array to a shape; return the array itself if it has that shape."""
    if shape == array.shape:
        return array
    padded = _native.empty(shape, array.dtype.name)
    padded[...] = value
    padded[tuple(map(slice, array.shape))] = array
    return padded


def _is_size(number: object) -> bool:
    return isinstance(number, SupportsIndex) and not isinstance(number, bool) and operator.index(number) > 0


Structure: TypeAlias = Literal["auto", "dict", "tuple"]
_Form: TypeAlias = Literal["array", "dict", "tuple"]

_MAX_SHOWN = 4


@dataclass(frozen=True)
class Arrangement:
    """How the inputs, targets and weights of a batch are arranged.

    Attributes:
        outputs: Specifications of inputs, targets and weights by name, in the order of the pipeline.
        forms: Form of the inputs, and of the targets; weights have the form of the targets.

    Example:
        >>> outputs = ({"age": Output("age", "float32")}, {"label": Output("label", "int64")}, {})
        >>> Arrangement.choose(outputs, "auto")(({"age": 3}, {"label": 1}))
        (3, 1)
    """

    outputs: tuple[Mapping[str, Output], Mapping[str, Output], Mapping[str, Output]]
    forms: tuple[_Form, _Form]

    @classmethod
    def of(cls, loader: Loader, structure: Structure) -> Self:
        """Return the arrangement of a loader's batches."""
        return cls.choose(loader.signature(), structure)

    @classmethod
    def choose(
        cls,
        outputs: tuple[Mapping[str, Output], Mapping[str, Output], Mapping[str, Output]],
        structure: Structure,
    ) -> Self:
        """Return the arrangement of these inputs, targets and weights."""
        if not isinstance(structure, str) or structure not in get_args(Structure):
            raise OptionError(
                "structure",
                field="structure",
                expected=list_choices(get_args(Structure)),
                got=show(structure),
            )
        inputs, targets = (_choose_form(part, structure) for part in outputs[:2])
        return cls(outputs, (inputs, targets))

    def with_inputs(self, form: _Form) -> Self:
        """Return the arrangement with another form of the inputs."""
        return replace(self, forms=(form, self.forms[1]))

    def __call__(self, batch: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
        """Return `(inputs, targets)`, or `(inputs, targets, weights)` if there are weights."""
        form, others = self.forms
        return tuple(
            _arrange(part, names, form if number == 0 else others)
            for number, (part, names) in enumerate(zip(batch, self.outputs, strict=False))
            if number < 2 or part
        )

    def describe(self) -> str:
        """Return a batch as text: its arrays with type and shape, n for the number of records."""
        parts = [
            _describe(outputs, self.forms[min(number, 1)], "weight of " if number == 2 else "")
            for number, outputs in enumerate(self.outputs)
            if outputs
        ]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


class LoaderFeed:
    """The batches of a loader, arranged for a framework."""

    def __init__(self, loader: Loader, structure: Structure = "dict") -> None:
        self.loader = loader
        self._arrangement = Arrangement.of(loader, structure)

    def __len__(self) -> int:
        """Return the number of batches of a whole iteration."""
        return len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the consumer as a small JSON object."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume at a saved state: the next iteration gives the remaining batches of its epoch.

        Raises:
            StateError: The state is not valid, or belongs to another data set, pipeline, order or batch size.
        """
        self.loader.load_state_dict(state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loader!r}, batches of {self._arrangement.describe()})"


def _choose_form(part: Mapping[str, Output], structure: Structure) -> _Form:
    if structure == "dict" or not part:
        return "dict"
    if len(part) == 1:
        return "array"
    return "dict" if structure == "auto" else "tuple"


def _arrange(part: Mapping[str, Any], names: Iterable[str], form: _Form) -> Any:
    if form == "dict":
        return part
    arrays = tuple(part[name] for name in names)
    # Without targets, the weight of the records is the only one.
    return arrays[0] if form == "array" else arrays


def _describe(outputs: Mapping[str, Output], form: _Form, prefix: str) -> str:
    shown = [f"{prefix}{name}: {output.describe()}" for name, output in outputs.items()]
    if len(shown) > _MAX_SHOWN:
        shown[_MAX_SHOWN - 1 :] = [f"… {len(shown) - _MAX_SHOWN + 1} more"]
    text = ", ".join(shown)
    return {"array": text, "dict": f"{{{text}}}", "tuple": f"({text})"}[form]
