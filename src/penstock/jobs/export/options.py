"""Options of an export, with their defaults, checked when they are made: one class, one group of flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypedDict, Unpack

from penstock.export.formats import FORMATS, FormatName
from penstock.foundation.option_checks import OptionChecks
from penstock.foundation.wording import check_keywords
from penstock.transform.map import MapFunction

CHECKED_ROWS: Final = 256
"""Number of rows that the check predicts."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        format: Format of the export: "bundle", for `penstock.Predictor`; "onnx", for `penstock.Predictor`
            without Keras; or "saved_model", for TensorFlow without Penstock.
        check: Whether to compare the export with the run, on 256 rows and in a new process. If they differ,
            nothing is written.
        check_data: Data for the check, as for `penstock.predict`; by default the data of the run.
        overwrite: Whether an existing export may be replaced. It is kept until the new one is complete.
        model: The `keras.Model` or a function that returns it, for a run with your own model.
        functions: Functions of the pipeline's maps by name, because no code is stored.

    Example:
        >>> ExportOptions(format="saved_model").check
        True
    """

    format: FormatName = "bundle"
    check: bool = True
    check_data: object = None
    overwrite: bool = False
    model: Any = None
    functions: Mapping[str, MapFunction] | None = None

    def __post_init__(self) -> None:
        checks = OptionChecks(self)
        checks.choice("format", tuple(FORMATS))
        checks.flags("check", "overwrite")
        checks.instance("functions", Mapping, "functions by name")


class ExportChoices(TypedDict, total=False):
    """Keyword arguments of `penstock.export_model`: the attributes of `ExportOptions`."""

    format: FormatName
    check: bool
    check_data: object
    overwrite: bool
    model: Any
    functions: Mapping[str, MapFunction] | None


def make_export_options(**choices: Unpack[ExportChoices]) -> ExportOptions:
    """Return the options of some keyword arguments.

    Raises:
        OptionError: An option does not exist, or its value is not valid.
    """
    check_keywords(choices, (each.name for each in fields(ExportOptions)), "export_model")
    return ExportOptions(**choices)
