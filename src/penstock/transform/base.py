"""What every transform is: options and, once fitted, what was learned from the train split; both are JSON.

In: a field's columns. Out: arrays as they were promised. A transform is frozen: fitting returns another one.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, Column, Ragged
from penstock.errors import FieldError, OptionError
from penstock.foundation.json_form import Document, JsonValue, Load, dump_value
from penstock.foundation.wording import show
from penstock.schema.field import Field
from penstock.statistics.summary import FieldStatistics
from penstock.transform.draws import Draws
from penstock.transform.output import Output

MeasureLengths: TypeAlias = Callable[[Column], NDArray[np.int64]]
Arrays: TypeAlias = dict[str, NDArray[Any] | Ragged]


class FitSource(Protocol):
    """What transforms are fitted on: the records of one split."""

    @property
    def num_rows(self) -> int:
        """How many records there are."""

    def knows(self, name: str) -> bool:
        """Whether what is told of a field is at hand, without a pass."""

    def statistics(self, name: str) -> FieldStatistics:
        """Return what is told of a field."""

    def columns(self, name: str) -> Iterator[Column]:
        """Yield a field's values in order, block by block: a pass over the split."""


PIPELINE: Final = Document("pipeline")
"""What errors name where the JSON form of a transform is not valid."""


@dataclass(frozen=True)
class Fitted:
    """Base of what transforms learn: a frozen dataclass of scalars and tuples.

    `LOADERS` has, for each attribute, the function that reads it from JSON.
    """

    LOADERS: ClassVar[Mapping[str, Load]]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: dump_value(getattr(self, name)) for name in self.LOADERS}

    @classmethod
    def load(cls, value: JsonValue) -> Self:
        """Read the form that `to_json` makes.

        Raises:
            SchemaError: The form is not such a one; the message says where.
        """
        value.object(*cls.LOADERS)
        return cls(**{name: load(value.child(name)) for name, load in cls.LOADERS.items()})


class Prepared(NamedTuple):
    """A column after the part of a transform that is dear.

    Attributes:
        column: With a row for each that was given.
        faults: What is wrong with rows, by their numbers; what the column holds there means nothing.
    """

    column: CodedColumn
    faults: Mapping[int, FieldError]


_F = TypeVar("_F", bound=Fitted)


@dataclass(frozen=True, repr=False)
class Transform(ABC):
    """Base of the transforms: a frozen dataclass of options, with what was fitted, or None, in `fitted`.

    A subclass declares its options and `fitted`, checks the options in `__post_init__` (`OptionError`s whose
    `field` is the option), and prepares there what `apply` needs of the fitted state, so that a batch costs
    as little Python as can be.
    """

    kind: ClassVar[str]
    """The name in JSON and YAML."""
    fitted_type: ClassVar[type[Fitted]]
    """The class of `fitted`."""

    @abstractmethod
    def fit(self, name: str, field: Field, source: FitSource) -> Transform:
        """Return the transform as fitted to a field.

        Raises:
            OptionError: The transform does not fit such a field.
        """

    @abstractmethod
    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return what `apply` will give for the field `name`; only a fitted transform knows."""

    @abstractmethod
    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:
        """Return the arrays of a batch by output name, aligned and contiguous, a row a record.

        Raises:
            FieldError: A value cannot be transformed; `field` names the field, and `record` is the number of
                the row in the batch: who read the rows knows which record of which file that is.
        """

    def prepare(self, name: str, column: CodedColumn, draws: Draws | None) -> Prepared:  # noqa: ARG002
        """Do what is dear, and name all bad rows at once; `apply` takes what comes out, without them."""
        return Prepared(column, {})

    def prepare_to_keep(
        self,
        name: str,  # noqa: ARG002
        column: CodedColumn,
        *,
        augments: bool,  # noqa: ARG002
        room_bytes: int,  # noqa: ARG002
    ) -> Prepared:
        """Do of it what is the same in every epoch, for keeping; `prepare` takes what comes out.

        Args:
            name: Of the field.
            column: As for `apply`.
            augments: Whether it is for training.
            room_bytes: How much will be kept at most; what is beyond it may stay as it is.
        """
        return Prepared(column, {})

    @abstractmethod
    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return what of the fitted state the field alone decides, by name.

        Raises:
            OptionError: The transform does not fit such a field.
        """

    def check_fitted(self, name: str, field: Field, value: JsonValue) -> None:
        """Refuse a fitted state that is not that of such a field; `place` is where the form was found.

        Raises:
            SchemaError: It is another one's, or the transform does not fit such a field at all.
        """
        try:
            derived = self.derive(name, field)
        except OptionError as error:
            inner = "" if error.field in (None, name) else f".{error.field}"
            raise value.refuse(error.expected, error.got, error.advice, at=inner) from None
        fitted: Fitted | None = getattr(self, "fitted", None)
        for key, expected in derived.items():
            got = getattr(fitted, key, None)
            if got != expected:
                raise value.refuse(f"{show(expected)}, as the field has", show(got), at=f".fitted.{key}")

    def caution(self, field: Field, statistics: FieldStatistics) -> str:  # noqa: ARG002 - most have nothing to say
        """Return what a user should know of the numbers of such a field, or nothing."""
        return ""

    def is_measured(self, field: Field) -> bool:  # noqa: ARG002 - of most kinds no field is
        """Whether fitting to such a field asks for its statistics: those of all are taken in one pass."""
        return False

    def measure(self) -> MeasureLengths | None:
        """Return what gives the length of each row of a column, as the output will have it.

        None, where that is the stored length. Batches of rows of like length are formed by it.
        """
        return None

    @property
    def takes_missing(self) -> bool:
        """Whether records may lack the field, even if no record could when the transform was fitted."""
        return True

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything."""
        return False

    @property
    def augments(self) -> bool:
        """Whether training batches differ from others."""
        return False

    @property
    def dictionary(self) -> _native.Vocabulary | None:
        """The table against which the core can code the strings of the field while it decodes."""
        return None

    @property
    def is_fitted(self) -> bool:
        """Whether the transform can be applied."""
        return getattr(self, "fitted", None) is not None

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the names of the options."""
        return tuple(item.name for item in dataclasses.fields(cls) if item.init and item.name != "fitted")

    @classmethod
    def load_option(cls, name: str, value: JsonValue) -> Any:  # noqa: ARG003 - most are alike
        """Read one option from JSON or YAML.

        Raises:
            SchemaError: It has another form; the message says where.
        """
        return value.any_value()

    def to_json(self) -> dict[str, Any]:
        """Return options and fitted state as dicts, lists and scalars, for `json.dumps`."""
        # All options, not only those that were given: a default may be another one day.
        form = {"kind": self.kind, **{name: dump_value(getattr(self, name)) for name in self.option_names()}}
        fitted: Fitted | None = getattr(self, "fitted", None)
        return form if fitted is None else {**form, "fitted": fitted.to_json()}

    @classmethod
    def from_json(cls, form: object) -> Self:
        """Return the transform that `to_json` has described, or one with some of its options.

        Raises:
            SchemaError: The JSON form is not valid; the message gives the path of the fault.
        """
        return cls.load(JsonValue(form, PIPELINE))

    @classmethod
    def load(cls, value: JsonValue) -> Self:
        """Read a transform from a value of a larger JSON form."""
        given = value.children("kind", *cls.option_names(), "fitted")
        kind = given.pop("kind", None)
        if kind is not None and kind.value != cls.kind:
            raise kind.refuse(repr(cls.kind))
        fitted = given.pop("fitted", None)
        options = {name: cls.load_option(name, option) for name, option in given.items()}
        if fitted is not None and fitted.value is not None:
            options["fitted"] = cls.fitted_type.load(fitted)
        try:
            return cls(**options)
        except OptionError as error:
            inner = f".{error.field or 'fitted'}"
            raise value.refuse(error.expected, error.got, error.advice, at=inner) from None

    def _keep(self, **attributes: object) -> None:
        # Frozen is what the object is to others; __post_init__ alone normalises what was given.
        self.__dict__.update(attributes)

    def __repr__(self) -> str:
        usual = {item.name: item.default for item in dataclasses.fields(self)}
        given = {name: getattr(self, name) for name in self.option_names()}
        resolved = self.__dict__.get("_resolved", ())
        shown = [
            f"{name}={show(value)}"
            for name, value in given.items()
            if value != usual[name] and name not in resolved
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def need_fitted(transform: Transform, name: str, fitted: _F | None) -> _F:
    """Return what was fitted.

    Raises:
        OptionError: Nothing was.
    """
    if fitted is None:
        advice = "Fit a Pipeline, which fits its transforms."
        what = f"{type(transform).__name__} for field {name!r}"
        raise OptionError(what, field=name, expected="a fitted transform", got=repr(transform), advice=advice)
    return fitted


def misfit(transform: Transform, name: str, field: Field, expected: str, advice: str = "") -> OptionError:
    """Make the error for a transform that cannot take such a field."""
    return OptionError(
        f"{type(transform).__name__} for field {name!r}",
        field=name,
        expected=expected,
        got=f"a field of type {field.type_name} ({field.describe()})",
        advice=advice,
    )
