"""Maps: a user's function over the stored columns of a batch, with declared and checked outputs.

In: columns of some fields. Out: arrays, as declared. The JSON form holds only the name of a map: the user
passes the function again when loading, and no code is imported or run from a file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.columns import CodedColumn, CodedColumns, Ragged
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import show
from penstock.transform.base import Arrays
from penstock.transform.draws import Draws
from penstock.transform.output import DTYPES, Output, align, describe_value
from penstock.transform.padding import truncate_lists

MapFunction: TypeAlias = Callable[..., Mapping[str, Any]]
"""Returns arrays by output name from columns by field name and, if it has two parameters, the draws."""


@dataclass(frozen=True)
class Mapped:
    """A function in a pipeline.

    Attributes:
        name: Name in the JSON form, also the scope of its random numbers.
        function: Receives columns and, if it has two parameters, draws.
        fields: Names of the fields whose stored columns it receives.
        outputs: Declared outputs.
        keep: Whether the fields are also passed through their own transforms.
    """

    name: str
    function: MapFunction
    fields: tuple[str, ...]
    outputs: tuple[Output, ...]
    keep: bool = False

    def __post_init__(self) -> None:
        owner = f"map {self.name!r}"
        if not callable(self.function):
            raise OptionError(owner, expected="a function", got=show(self.function))
        if not self.fields:
            raise OptionError(f"fields of {owner}", expected="at least one field", got="an empty list")
        if not self.outputs or not all(isinstance(output, Output) for output in self.outputs):
            advice = "For example: outputs=[Output('ratio', 'float32')]."
            raise OptionError(
                f"outputs of {owner}",
                expected="a list of Output objects",
                got=show(self.outputs),
                advice=advice,
            )
        for output in self.outputs:
            if output.dtype not in DTYPES:
                raise OptionError(f"outputs of {owner}", expected="numbers", got=output.describe())
        object.__setattr__(self, "_takes_draws", _takes_draws(owner, self.function))

    @property
    def takes_draws(self) -> bool:
        """Whether the function uses random draws."""
        return bool(self.__dict__["_takes_draws"])

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None) -> Arrays:
        """Return the outputs of the function for a batch."""
        taken: dict[str, CodedColumn] = {name: columns[name] for name in self.fields}
        given: tuple[Draws, ...] = ()
        if self.takes_draws:
            if draws is None:
                advice = "Pass Draws(seed, epoch, records)."
                raise OptionError(f"draws of map {self.name!r}", expected="draws", got="None", advice=advice)
            given = (draws.within(self.name),)
        try:
            result = self.function(taken, *given)
        except MemoryError as error:
            # With a note, loaders do not take it for an error of records that are too large.
            error.add_note(f"in the function of map {self.name!r}")
            raise
        return self._check(result, num_rows)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which has the name of the function alone."""
        return {
            "name": self.name,
            "fields": list(self.fields),
            "outputs": [output.to_json() for output in self.outputs],
            "keep": self.keep,
        }

    def _check(self, result: object, num_rows: int) -> Arrays:
        names = [output.name for output in self.outputs]
        if not isinstance(result, Mapping) or set(result) != set(names):
            got = list(result) if isinstance(result, Mapping) else result
            raise self._refuse("result", f"a dict of arrays with the keys {show(names)}", show(got))
        arrays: Arrays = {}
        for output in self.outputs:
            value = result[output.name]
            if not output.accepts(value, num_rows):
                expected = output.describe().replace("(n", f"({num_rows}")
                raise self._refuse(f"output {output.name!r}", expected, describe_value(value))
            if isinstance(value, Ragged):
                arrays[output.name] = truncate_lists(value, None, from_end=False)
            else:
                arrays[output.name] = align(value)
        return arrays

    def _refuse(self, what: str, expected: str, got: str) -> FieldError:
        advice = "The function must return the outputs that the map declares."
        return FieldError(
            f"map {self.name!r}: {what}", field=self.fields[0], expected=expected, got=got, advice=advice
        )


def _takes_draws(owner: str, function: MapFunction) -> bool:
    """Return whether a function needs two arguments; refuse one that accepts neither one nor two."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some compiled functions have no signature
        return False
    parameters = signature.parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [each for each in parameters if each.kind in kinds and each.default is inspect.Parameter.empty]
    takes_draws = len(needed) > 1
    try:
        signature.bind(*("columns", "draws")[: 1 + takes_draws])
    except TypeError:
        expected = "a function of columns, or of columns and draws"
        raise OptionError(
            owner, expected=expected, got=f"a function with the signature {signature}"
        ) from None
    return takes_draws
