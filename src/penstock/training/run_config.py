"""`run.yaml` as one typed object: settings of a run, and its results.

In: the parsed file, of a run of any version or written by a user. Out: a `RunConfig`, and the tables again;
every fault has its path. Nothing else reads the file by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from penstock.errors import OptionError, PenstockError
from penstock.foundation.json_form import Document, JsonValue, list_of
from penstock.model.presets import read_model_options
from penstock.schema.field import Field
from penstock.schema.json_form import VERSION, dump_fields, load_fields
from penstock.settings.conversion import ConvertTable
from penstock.settings.groups import TextFiles
from penstock.settings.model import ModelOptions
from penstock.settings.training import TrainOptions
from penstock.training.run_facts import RunFacts

Names: TypeAlias = str | tuple[str, ...]
"""One name or path, or several."""

OWN_MODEL: Final = "own"
"""Value of `model` for a user's own model, whose code is not stored."""

MOST_RUNS: Final = 100
"""Maximum number of runs of an ensemble, or of folds."""

_ADVICE: Final = "The file was changed after the run wrote it, or a newer version of Penstock wrote it."


@dataclass(frozen=True)
class StoredModel:
    """The options of a model that Penstock built, which may come from an earlier version.

    Attributes:
        options: Options by name.
        path: Path of the file that they are from, for errors.
    """

    options: Mapping[str, object]
    path: Path | None = field(default=None, compare=False)

    def read(self) -> ModelOptions:
        """Return the options; the file of the initial weights must exist."""
        return read_model_options(self._table)

    def rebuild(self) -> ModelOptions:
        """Return the options for a model with the weights of the run; see `read_rebuilt`."""
        return read_rebuilt(self._table)

    @property
    def _table(self) -> JsonValue:
        return JsonValue(self.options, Document("run", path=self.path, root="$.model"))


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The content of `run.yaml`.

    Attributes:
        source: Path of the raw data that was converted, or several.
        data: Path of the data set, or the paths of single files.
        target: Name of the target, or several, if the data set does not declare it.
        declared: Declared fields of TFRecords.
        convert: Options of the conversion of raw data; None if there was none.
        fields: Settings of fields, for `Pipeline.fit_config`.
        groups: Groups of inputs.
        ensemble: Number of members of an ensemble; None for a single run.
        folds: Number of folds of a cross-validation; None for a run.
        model: Options of the model, "own" for a user's own, or None.
        train: Options of the training; only those are given that the file has.
        facts: Results of the run.

    Example:
        >>> config = RunConfig.from_json({"data": "pets", "train": {"epochs": 5}})
        >>> config.data, config.train.epochs, config.to_json()
        ('pets', 5, {'data': 'pets', 'train': {'epochs': 5}})
    """

    source: Names | None = None
    data: Names | None = None
    target: Names | None = None
    declared: Mapping[str, Field] = field(default_factory=dict)
    convert: ConvertTable | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ensemble: int | None = None
    folds: int | None = None
    model: StoredModel | Literal["own"] | None = None
    train: TrainOptions = field(default_factory=TrainOptions)
    facts: RunFacts = field(default_factory=RunFacts)

    @classmethod
    def from_json(cls, content: object, path: Path | None = None) -> RunConfig:
        """Return the parsed file; tables that are null are not given.

        Raises:
            SchemaError: A table or a key is unknown, or a value is not valid; the error has its path.
        """
        root = JsonValue({} if content is None else content, Document("run", path=path))
        tables = {name: each for name, each in root.children(*_LOADS).items() if each.value is not None}
        return cls(**{name: _read_table(name, each) for name, each in tables.items()})

    def to_json(self) -> dict[str, object]:
        """Return the tables, without those that hold nothing."""
        model = dict(self.model.options) if isinstance(self.model, StoredModel) else self.model
        tables = {
            "data": _dump_names(self.data),
            "source": _dump_names(self.source),
            "convert": None if self.convert is None else self.convert.to_json(only_given=True),
            "target": _dump_names(self.target),
            "declared": dict(dump_fields(self.declared)["fields"]) if self.declared else None,
            "fields": dict(self.fields) or None,
            "groups": {name: list(each) for name, each in self.groups.items()} or None,
            "ensemble": None if self.ensemble is None else {"members": self.ensemble},
            "folds": None if self.folds is None else {"number": self.folds},
            "model": model,
            "train": self.train.to_json(only_given=True) or None,
            "facts": self.facts.to_json() or None,
        }
        return {name: table for name, table in tables.items() if table is not None}

    @property
    def reading(self) -> TextFiles:
        """How the raw data was read."""
        return TextFiles() if self.convert is None else self.convert.narrow(TextFiles)

    @property
    def is_own_model(self) -> bool:
        """Whether the model is a user's own, or not stored, so that it has to be given."""
        return not isinstance(self.model, StoredModel)


def is_model_function(model: Any) -> bool:
    """Whether a value is a function that returns a model, rather than a model, which is callable as well."""
    return callable(model) and not hasattr(model, "predict_on_batch")


def check_model_function(model: Any) -> None:
    """Refuse a model where an ensemble needs a function; None, for built models, is accepted."""
    if model is not None and not is_model_function(model):
        raise OptionError(
            "model",
            expected="a function that returns a new model for each member of the ensemble",
            got="one model",
            advice="Pass the function that builds it: `model=build`.",
        )


def store_model(options: ModelOptions | None) -> StoredModel | Literal["own"]:
    """Return the entry `model` for options; None stands for a user's own model."""
    return OWN_MODEL if options is None else StoredModel(options.to_json())


def read_rebuilt(table: JsonValue) -> ModelOptions:
    """Return the options of a model whose weights are stored as well.

    The file of its initial weights may be gone.
    """
    return read_model_options(table, image_weights=None, fine_tune=False)


def _read_table(name: str, table: JsonValue) -> Any:
    try:
        return _LOADS[name](table)
    except OptionError as error:  # options that do not fit together
        at = f".{error.field}" if error.field else ""
        raise table.refuse(error.expected, error.got, error.advice or "", at=at) from None


def _read_paths(value: JsonValue) -> Names:
    """Return one or more paths; UTF-8 need not hold them."""
    if isinstance(value.value, str):
        return value.value
    if not isinstance(value.value, list | tuple) or not value.value:
        raise value.refuse("a string, or a list of strings")
    for each in value.elements():
        if not isinstance(each.value, str):
            raise each.refuse("a string")
    return tuple(value.value)


def _read_names(value: JsonValue) -> Names:
    names = _read_paths(value)
    return value.text() if isinstance(names, str) else tuple(each.text() for each in value.elements())


def _read_declared(table: JsonValue) -> Mapping[str, Field]:
    fields = table.object()
    try:
        return load_fields({"version": VERSION, "fields": fields})
    except PenstockError as error:
        named = (error.field or "").removeprefix("$.fields")
        raise table.refuse(error.expected, error.got, error.advice, at=named) from None


def _read_count(key: str) -> Callable[[JsonValue], int]:
    def read(table: JsonValue) -> int:
        table.object(key)
        return table.child(key).integer(2, MOST_RUNS)

    return read


def _read_model(table: JsonValue) -> StoredModel | Literal["own"]:
    if table.value == OWN_MODEL:
        return OWN_MODEL
    if not isinstance(table.value, Mapping):
        raise table.refuse("options by name, or 'own' for a model of your own")
    # The file of the initial weights may be gone: code that needs it looks for it.
    checked = {**table.object(), "image_weights": None, "fine_tune": False}
    ModelOptions.from_json(table.change(checked))
    path = table.document.path
    return StoredModel(dict(table.object()), None if path is None else Path(path))


_LOADS: Final[Mapping[str, Callable[[JsonValue], Any]]] = {
    "source": _read_paths,
    "data": _read_paths,
    "target": _read_names,
    "declared": _read_declared,
    "convert": ConvertTable.from_json,
    "fields": lambda table: dict(table.object()),
    "groups": lambda table: {name: list_of(JsonValue.text)(each) for name, each in table.children().items()},
    "ensemble": _read_count("members"),
    "folds": _read_count("number"),
    "model": _read_model,
    "train": TrainOptions.from_json,
    "facts": lambda table: RunFacts.from_json(table.change(table.value, advice=_ADVICE)),
}


def _dump_names(names: Names | None) -> str | list[str] | None:
    return list(names) if isinstance(names, tuple) else names
