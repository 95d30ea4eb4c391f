"""Base classes of transforms: options and, once fitted, the state learned from the train split.

In: columns of a field. Out: arrays with a declared type and shape. Options and state have a JSON form. A
transform is frozen: fitting returns a new one.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, Column, Ragged
from penstock.errors import FieldError, OptionError
from penstock.foundation.json_form import Document, JsonValue, Load, dump_value
from penstock.foundation.option_checks import check_choice
from penstock.foundation.wording import show
from penstock.schema.field import Field
from penstock.statistics.summary import FieldStatistics
from penstock.transform.draws import Draws
from penstock.transform.output import Output

MeasureLengths: TypeAlias = Callable[[Column], NDArray[np.int64]]
Arrays: TypeAlias = dict[str, NDArray[Any] | Ragged]


class FitSource(Protocol):
    """The records of one split, as data to fit transforms on."""

    @property
    def num_rows(self) -> int:
        """Number of records."""

    def knows(self, name: str) -> bool:
        """Whether the statistics of a field are available without a pass over the data."""

    def statistics(self, name: str) -> FieldStatistics:
        """Return the statistics of a field."""

    def columns(self, name: str, num_wanted: int | None = None) -> Iterator[Column]:
        """Yield the values of a field in order, block by block, in a pass over the split.

        With `num_wanted`, of about as many records, which are spread evenly over a larger split.
        """

    def sample(self, name: str) -> Column:
        """Return the values of a field in a sample of the records."""


PIPELINE: Final = Document("pipeline")
"""Name of the document in errors about the JSON form of a transform."""


@dataclass(frozen=True)
class Fitted:
    """Base class of fitted states: a frozen dataclass of scalars and tuples.

    `LOADERS` maps each attribute to the function that reads it from JSON.
    """

    LOADERS: ClassVar[Mapping[str, Load]]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: dump_value(getattr(self, name)) for name in self.LOADERS}

    @classmethod
    def load(cls, value: JsonValue) -> Self:
        """Read the JSON form that `to_json` returns."""
        value.object(*cls.LOADERS)
        return cls(**{name: load(value.child(name)) for name, load in cls.LOADERS.items()})


class Prepared(NamedTuple):
    """A column after the expensive part of a transform, and errors of rows, whose values are undefined."""

    column: CodedColumn
    faults: Mapping[int, FieldError]


class NativeStep(NamedTuple):
    """A step of a program of the core, without its field and targets, and its outputs: one or two."""

    options: dict[str, Any]
    outputs: tuple[Output, ...]


_F = TypeVar("_F", bound=Fitted)


@dataclass(frozen=True, repr=False)
class Transform(ABC):
    """Base class of transforms: a frozen dataclass of options, with the fitted state or None in `fitted`.

    A subclass declares its options and `fitted`. In `__post_init__` it checks the options, with an
    `OptionError` whose `field` names the option, and precomputes what `apply` needs of the fitted state, to
    keep the cost of Python per batch low.
    """

    kind: ClassVar[str]
    """Name of the transform in JSON and YAML."""
    fitted_type: ClassVar[type[Fitted]]
    """Class of `fitted`."""

    @abstractmethod
    def fit(self, name: str, field: Field, source: FitSource) -> Transform:
        """Return the transform fitted to a field.

        Raises:
            OptionError: The transform does not support the field.
        """

    @abstractmethod
    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply` for the field `name`; the transform must be fitted."""

    @abstractmethod
    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:
        """Return the arrays of a batch by output name, aligned and contiguous, with one row per record.

        Raises:
            FieldError: A value cannot be transformed; `field` names the field, and `record` is the number of
                the row in the batch, from which the caller finds the record and its file.
        """

    def native_step(self, output: Output) -> dict[str, Any] | None:  # noqa: ARG002 - many have none
        """Return the transform as a step of a program of the core, or None if only `apply` can run it.

        Args:
            output: First output of the transform.

        Returns:
            The options of a step of `_native.Program`, without its field and targets.
        """
        return None

    def native_steps(self, outputs: tuple[Output, ...]) -> list[NativeStep] | None:
        """Return the transform as steps of a program of the core, or None if only `apply` can run it.

        Args:
            outputs: Outputs of the transform.
        """
        step = self.native_step(outputs[0])
        return None if step is None else [NativeStep(step, outputs)]

    def prepare(
        self,
        name: str,  # noqa: ARG002
        column: CodedColumn,
        draws: Draws | None,  # noqa: ARG002
        out: NDArray[Any] | None = None,  # noqa: ARG002
    ) -> Prepared:
        """Run the expensive part and report all bad rows at once; pass the result without them to `apply`.

        Args:
            name: Name of the field.
            column: As for `apply`.
            draws: Random draws of the rows.
            out: Rows of the output array of the batch. A transform may write its output there: if `apply`
                then returns that array, nothing is copied.
        """
        return Prepared(column, {})

    def prepare_to_keep(
        self,
        name: str,  # noqa: ARG002
        column: CodedColumn,
        *,
        augments: bool,  # noqa: ARG002
        room_bytes: int,  # noqa: ARG002
    ) -> Prepared:
        """Run the part of `prepare` that is the same in every epoch; its result can be cached.

        Args:
            name: Name of the field.
            column: As for `apply`.
            augments: Whether the column is for training.
            room_bytes: Maximum size of the result; rows beyond it may stay unprepared.
        """
        return Prepared(column, {})

    @abstractmethod
    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field, by attribute name.

        Raises:
            OptionError: The transform does not support the field.
        """

    def check_fitted(self, name: str, field: Field, value: JsonValue) -> None:
        """Refuse a fitted state that does not belong to the field; `value` is its JSON form.

        Raises:
            SchemaError: The state belongs to another field, or the transform does not support the field.
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

    def caution(self, field: Field, statistics: FieldStatistics) -> str:  # noqa: ARG002 - most have no warning
        """Return a warning about the values of the field, or an empty string."""
        return ""

    def is_measured(self, field: Field) -> bool:  # noqa: ARG002 - most need none
        """Whether fitting to a field needs its statistics, which are computed for all fields in one pass."""
        return False

    def is_sampled(self, field: Field) -> bool:  # noqa: ARG002 - most need none
        """Whether fitting to a field needs a sample of its values, read for all fields in one pass."""
        return False

    def measure(self) -> MeasureLengths | None:
        """Return a function that gives the length of each row of a column in the output.

        Return None if that is the stored length. It is used to form batches of rows of similar length.
        """
        return None

    @property
    def padding(self) -> float:
        """Padding value of rows that are shorter than the longest of a batch."""
        return 0

    @property
    def takes_missing(self) -> bool:
        """Whether records without a value are accepted, even if the field was required during fitting."""
        return True

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything."""
        return False

    @property
    def augments(self) -> bool:
        """Whether training batches are augmented."""
        return False

    @property
    def dictionary(self) -> _native.Vocabulary | None:
        """Lookup table with which the core encodes the strings of the field while decoding, or None."""
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
    def load_option(cls, name: str, value: JsonValue) -> Any:  # noqa: ARG003 - most need no name
        """Read one option from JSON or YAML.

        Raises:
            SchemaError: The value is not valid; the message gives its path.
        """
        return value.any_value()

    def to_json(self) -> dict[str, Any]:
        """Return options and fitted state as dicts, lists and scalars, for `json.dumps`."""
        # All options, not only those that were given: a later version may have other defaults.
        form = {"kind": self.kind, **{name: dump_value(getattr(self, name)) for name in self.option_names()}}
        fitted: Fitted | None = getattr(self, "fitted", None)
        return form if fitted is None else {**form, "fitted": fitted.to_json()}

    @classmethod
    def from_json(cls, form: object) -> Self:
        """Return the transform of a JSON form; options that are left out have their defaults.

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
        # Frozen for users; only __post_init__ sets attributes, to normalize options.
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
    """Return the fitted state."""
    if fitted is None:
        advice = "Call Pipeline.fit(data), which fits all transforms."
        what = f"{type(transform).__name__} for field {name!r}"
        raise OptionError(what, field=name, expected="a fitted transform", got=repr(transform), advice=advice)
    return fitted


def misfit(transform: Transform, name: str, field: Field, expected: str, advice: str = "") -> OptionError:
    """Return the error for a field that a transform does not support."""
    return OptionError(
        f"{type(transform).__name__} for field {name!r}",
        field=name,
        expected=expected,
        got=f"a field of type {field.type_name} ({field.describe()})",
        advice=advice,
    )


def refuse_gaps(transform: Transform, name: str, source: FitSource, advice: str) -> None:
    """Refuse a field with missing values during fitting, before the first batch fails."""
    statistics = source.statistics(name)
    if statistics.missing:
        raise OptionError(
            f"{type(transform).__name__} for field {name!r}",
            field=name,
            expected="a value in each record",
            got=f"{statistics.missing} of {statistics.count + statistics.missing} records without a value",
            advice=advice,
        )


def check_dtype_name(owner: str, value: object, choices: Collection[str]) -> str:
    """Return the name of an element type, which may be given as NumPy has it."""
    if isinstance(value, (np.dtype, type)):
        value = np.dtype(value).name
    check_choice(owner, "dtype", value, choices)
    return str(value)
