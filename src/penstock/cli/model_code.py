"""The options of commands that use a trained model, with the model that `--model` names.

In: a `Call`. Out: the options of a verb. The file of the model is run when the model is needed.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from penstock.jobs.model_file import load_model
from penstock.settings.command_line import Call
from penstock.settings.commands import ModelOfRun
from penstock.settings.prediction import ModelCode

_M = TypeVar("_M", bound=ModelCode)


def read_with_model(call: Call, group: type[_M], **given: Any) -> _M:
    """Return the options that flags specify; `given` ones have no flag."""
    text = call.read(ModelOfRun).model
    if text is not None:
        given["model"] = partial(load_model, text)
    return call.read(group, **given)


def repeat_model(call: Call) -> list[str]:
    """Return `--model` with its value, for the next command, if the call has it."""
    text = call.read(ModelOfRun).model
    return [] if text is None else ["--model", text]
