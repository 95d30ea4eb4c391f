"""The structure of the batches that a framework gets: dicts by name, tuples by position, or plain arrays.

In: the outputs of a loader, and the option `structure`. Out: an `Arrangement`, which arranges batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

from penstock.errors import OptionError
from penstock.foundation.wording import list_choices, show
from penstock.transform.output import Output

if TYPE_CHECKING:
    from penstock.batch.loader import Loader

Structure: TypeAlias = Literal["auto", "dict", "tuple"]
Form: TypeAlias = Literal["array", "dict", "tuple"]

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
    forms: tuple[Form, Form]

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

    def with_inputs(self, form: Form) -> Self:
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


def _choose_form(part: Mapping[str, Output], structure: Structure) -> Form:
    if structure == "dict" or not part:
        return "dict"
    if len(part) == 1:
        return "array"
    return "dict" if structure == "auto" else "tuple"


def _arrange(part: Mapping[str, Any], names: Iterable[str], form: Form) -> Any:
    if form == "dict":
        return part
    arrays = tuple(part[name] for name in names)
    # Without targets, the weight of the records is the only one.
    return arrays[0] if form == "array" else arrays


def _describe(outputs: Mapping[str, Output], form: Form, prefix: str) -> str:
    shown = [f"{prefix}{name}: {output.describe()}" for name, output in outputs.items()]
    if len(shown) > _MAX_SHOWN:
        shown[_MAX_SHOWN - 1 :] = [f"… {len(shown) - _MAX_SHOWN + 1} more"]
    text = ", ".join(shown)
    return {"array": text, "dict": f"{{{text}}}", "tuple": f"({text})"}[form]
