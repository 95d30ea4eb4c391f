"""What a command is given beyond plain options: paths, types and roles of fields, and a user's own model.

In: a `Call`. Out: a `Declaration`, the options of a verb with the function that builds the model, or what a
job takes for its paths: one path or a list of them. Loaded by commands that run, not for their help.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from penstock.errors import OptionError, SchemaError
from penstock.foundation.wording import show
from penstock.jobs.given_dataset import Declaration
from penstock.jobs.model_file import load_model
from penstock.schema.declaration import ColumnDeclaration, TypeName, declare_field
from penstock.settings.command_line import Call
from penstock.settings.commands import ModelOfRun
from penstock.settings.groups import ColumnTypes, Roles
from penstock.settings.prediction import ModelCode

_M = TypeVar("_M", bound=ModelCode)

# NAME[:64x64x3[:float32[:raw]]]; a name may contain colons itself.
_TENSOR: Final = re.compile(
    r"(?P<name>.+?)(:(?P<shape>\d+(x\d+)*)(:(?P<dtype>\w+))?(:(?P<encoding>auto|list|raw))?)?", re.DOTALL
)


def one_or_all(paths: Sequence[str]) -> Any:
    """Return the only path, or a list of several."""
    return paths[0] if len(paths) == 1 else list(paths)


def read_declaration(call: Call) -> Declaration:
    """Return the types and roles that were declared."""
    given, roles = call.read(ColumnTypes), call.read(Roles)
    types: dict[str, TypeName | ColumnDeclaration] = {}
    for text in given.tensor:
        name, declared = _parse_tensor(text)
        _declare_once(types, name, declared)
    for each in ColumnTypes.list_settings():
        for name in getattr(given, each.name) if each.name != "tensor" else ():
            _declare_once(types, name, cast("TypeName", each.name))
    target = list(roles.target) if roles.target else None
    return Declaration(types=types, target=target, weight=roles.weight, id=roles.id)


def _parse_tensor(text: str) -> tuple[str, ColumnDeclaration]:
    match = _TENSOR.fullmatch(text)
    if match is None:
        expected = "NAME[:SHAPE[:DTYPE]], such as mask:64x64:uint8"
        raise OptionError("--tensor", field="tensor", expected=expected, got=show(text))
    name = match["name"]
    attributes: dict[str, str | list[int]] = {}
    if match["shape"] is not None:
        attributes["shape"] = [int(length) for length in match["shape"].split("x")]
    attributes |= {key: match[key] for key in ("dtype", "encoding") if match[key] is not None}
    try:
        declare_field(name, "tensor", {"shape": [1], **attributes})
    except SchemaError as error:
        raise OptionError(f"--tensor {name!r}", field=name, expected=error.expected, got=error.got) from error
    return name, ColumnDeclaration("tensor", attributes)


def _declare_once(
    types: dict[str, TypeName | ColumnDeclaration], name: str, declared: TypeName | ColumnDeclaration
) -> None:
    if types.setdefault(name, declared) != declared:
        raise OptionError(f"{name!r}", field=name, expected="one type", got="two", advice="Give it once.")


def read_with_model(call: Call, group: type[_M], **given: Any) -> _M:
    """Return the options that flags specify; `given` ones have no flag.

    The file of a model is run when the model is needed.
    """
    text = call.read(ModelOfRun).model
    if text is not None:
        given["model"] = partial(load_model, text)
    return call.read(group, **given)


def repeat_model(call: Call) -> list[str]:
    """Return `--model` with its value, for the next command, if the call has it."""
    text = call.read(ModelOfRun).model
    return [] if text is None else ["--model", text]
