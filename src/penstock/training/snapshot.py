"""Which stored array belongs to which weight of a model: by name, not by place alone.

In: the paths that weights had when they were written, and those of a model. Out: for each weight, the number
of its array; or an error that names the first that fits nowhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from keras.src.random.seed_generator import global_seed_generator
from numpy.typing import NDArray

from penstock.errors import StateError

_COUNTER = re.compile(r"_\d+(?=/|$)")


def pair_weights(stored: Sequence[str], wanted: Sequence[str], path: Path | None = None) -> list[int]:
    """Return, for each weight that is wanted, the number of the stored one that it is.

    Layers that nobody named are numbered by Keras through a process: `dense_3` of one is `dense` of another.
    Without those numbers, names must come in the same order; or each must be there once, in any order.

    Raises:
        StateError: There are more or fewer, or others.
    """
    if len(stored) != len(wanted):
        raise _refuse_weights("number of weights of the model", len(stored), len(wanted), path)
    if list(stored) == list(wanted):
        return list(range(len(stored)))
    if len(set(stored)) == len(stored) and set(stored) == set(wanted):
        return [list(stored).index(name) for name in wanted]
    plain, others = ([_COUNTER.sub("", name) for name in names] for names in (stored, wanted))
    if plain == others:
        return list(range(len(stored)))
    if len(set(plain)) == len(plain) and set(plain) == set(others):
        return [plain.index(name) for name in others]
    at = next(number for number, pair in enumerate(zip(plain, others, strict=True)) if pair[0] != pair[1])
    raise _refuse_weights(f"weight {at} of the model", repr(stored[at]), repr(wanted[at]), path)


def _refuse_weights(what: str, expected: object, got: object, path: Path | None) -> StateError:
    advice = "The model is another one than that of the run, or its layers have other names."
    return StateError(what, path=path, expected=expected, got=got, advice=advice)


# Of `Callback` itself; the model and what it was told by `fit` are there before anything is restored.
_NOT_STATE: Final = ("model", "_model", "params", "validation_data")
_ARRAYS: Final = "arrays"
_AIMED: Final = "is_aimed"


@dataclass(frozen=True)
class Snapshot:
    """What a run holds at a step.

    Attributes:
        arrays: By name: `model/7`, `optimizer/3`, `metrics/0`, `callback/0/best_weights/2`, ….
        paths: What each array of model, optimizer and metrics is, in words.
        callbacks: What callbacks remember, one a callback.
    """

    arrays: Mapping[str, NDArray[Any]]
    paths: Mapping[str, str] = field(default_factory=dict)
    callbacks: Sequence[Mapping[str, Any]] = ()


def copy_array(variable: Any) -> NDArray[Any]:
    """Return what a variable of Keras holds now, in memory of its own."""
    return np.array(variable.__array__())  # np.array(variable) warns: Keras does not know its `copy`


def take_snapshot(model: Any, callbacks: Sequence[Any]) -> Snapshot:
    """Return what a model and its callbacks hold now, as copies."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()  # while it trains, JAX has the variables elsewhere
    arrays: dict[str, NDArray[Any]] = {}
    paths = {}
    for group, variables in _list_groups(model).items():
        for number, variable in enumerate(variables):
            name = f"{group}/{number}"
            arrays[name] = copy_array(variable)
            paths[name] = str(variable.path)
    remembered = []
    for number, callback in enumerate(callbacks):
        state, held = _dump_callback(callback)
        remembered.append(state)
        arrays |= {f"callback/{number}/{name}": array for name, array in held.items()}
    return Snapshot(arrays, paths, remembered)


def restore_model(model: Any, snapshot: Snapshot, *, with_metrics: bool = True) -> None:
    """Bring a model to what a snapshot holds.

    Args:
        model: The model.
        snapshot: What it held.
        with_metrics: Whether metrics go on counting; not where an epoch begins.

    Raises:
        StateError: It is that of another model.
    """
    for group, variables in _list_groups(model).items():
        stored = [name for name in snapshot.arrays if name.startswith(f"{group}/")]
        if len(stored) != len(variables):
            raise _refuse(f"number of variables of the {group}", len(variables), len(stored))
        if group == "model":
            names = [snapshot.paths.get(f"model/{number}", "") for number in range(len(stored))]
            # The optimizer's variables come in the order of the model's: that must be the same.
            if pair_weights(names, [str(each.path) for each in variables]) != list(range(len(stored))):
                raise _refuse("order of the model's variables", "that of the run", "another one")
        for number, variable in enumerate(variables):
            array = snapshot.arrays[f"{group}/{number}"]
            if tuple(variable.shape) != array.shape:
                what = f"shape of {variable.path!r}, variable {number} of the {group}"
                raise _refuse(what, tuple(variable.shape), array.shape)
            if group != "metrics" or with_metrics:
                variable.assign(array)


def restore_callbacks(callbacks: Sequence[Any], snapshot: Snapshot) -> None:
    """Bring callbacks to what a snapshot holds; they have begun, and forgotten what they knew.

    Raises:
        StateError: They are others.
    """
    kinds = [type(callback).__name__ for callback in callbacks]
    stored = [str(state.get("kind")) for state in snapshot.callbacks]
    if kinds != stored:
        raise _refuse("callbacks", ", ".join(stored) or "none", ", ".join(kinds) or "none")
    for number, (callback, state) in enumerate(zip(callbacks, snapshot.callbacks, strict=True)):
        prefix = f"callback/{number}/"
        held = {
            name[len(prefix) :]: each for name, each in snapshot.arrays.items() if name.startswith(prefix)
        }
        _load_callback(callback, state, held)


def _list_groups(model: Any) -> dict[str, list[Any]]:
    optimizer = getattr(model, "optimizer", None)
    return {
        "model": list(model.variables),  # `weights` would lack the seeds of dropout
        "optimizer": [] if optimizer is None else list(optimizer.variables),
        "metrics": list(model.metrics_variables),
        "seed": [global_seed_generator().state],  # of layers that draw without one of their own
    }


def _dump_callback(callback: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a callback remembers: scalars, and lists of arrays such as the best weights."""
    values: dict[str, Any] = {}
    lists: dict[str, int] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in vars(callback).items():
        if name in _NOT_STATE:
            continue
        if isinstance(value, np.generic):
            value = value.item()  # noqa: PLW2901 - the same value
        if value is None or isinstance(value, bool | int | str):
            values[name] = value
        elif isinstance(value, float):
            values[name] = value if math.isfinite(value) else {"float": str(value)}
        elif isinstance(value, list) and value and all(map(_is_numeric, value)):
            lists[name] = len(value)
            arrays |= {f"{name}/{at}": np.array(each) for at, each in enumerate(value)}
    kind = type(callback).__name__
    is_aimed = getattr(callback, "monitor_op", None) is not None
    return {"kind": kind, "values": values, _ARRAYS: lists, _AIMED: is_aimed}, arrays


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.dtype.itemsize <= 8


def _load_callback(callback: Any, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    if state.get(_AIMED) and callback.monitor_op is None:
        # Those of Keras that watch a metric find out whether it is to rise when they first see it, and turn
        # the sign of another attribute then: once, or what is restored would be turned again.
        callback._set_monitor_op()
    for name, value in state["values"].items():
        if name not in vars(callback):
            continue
        setattr(callback, name, float(value["float"]) if isinstance(value, Mapping) else value)
    for name, count in state[_ARRAYS].items():
        setattr(callback, name, [arrays[f"{name}/{at}"] for at in range(count)])


def _refuse(what: str, expected: object, got: object) -> StateError:
    advice = "Give the model and the callbacks that the run was begun with."
    return StateError(what, expected=expected, got=got, advice=advice)
