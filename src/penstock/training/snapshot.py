"""Snapshots of a model and its callbacks: the state of all weights and variables, as arrays.

In: a model and callbacks. Out: a `Snapshot`, and both restored from one. Arrays are matched to the weights of
a model by name; an error names the first that does not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import keras
import numpy as np
from keras.src.random.seed_generator import global_seed_generator
from numpy.typing import NDArray

from penstock.errors import StateError

_COUNTER = re.compile(r"_\d+(?=/|$)")


def pair_weights(stored: Sequence[str], wanted: Sequence[str], path: Path | None = None) -> list[int]:
    """Return the index of the stored array for each weight of a model.

    Keras numbers layers without a name by process: `dense_3` in one is `dense` in another. Without those
    numbers, names must be in the same order; or each must occur once, in any order.
    """
    if len(stored) != len(wanted):
        raise _make_weight_error("number of weights of the model", len(stored), len(wanted), path)
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
    raise _make_weight_error(f"weight {at} of the model", repr(stored[at]), repr(wanted[at]), path)


def _make_weight_error(what: str, expected: object, got: object, path: Path | None) -> StateError:
    advice = "Pass the model that the run was trained with, with the same names of layers."
    return StateError(what, path=path, expected=expected, got=got, advice=advice)


# Attributes of `Callback` itself, which `fit` sets before anything is restored.
_NOT_STATE: Final = ("model", "_model", "params", "validation_data")
_ARRAYS: Final = "arrays"
_HAS_DIRECTION: Final = "is_aimed"  # as it is stored


@dataclass(frozen=True)
class Snapshot:
    """State of a model and its callbacks at a step.

    Attributes:
        arrays: Arrays by name: `model/7`, `optimizer/3`, `metrics/0`, `callback/0/best_weights/2`, ….
        paths: Path of the Keras variable of each array of model, optimizer and metrics.
        callbacks: State of each callback.
    """

    arrays: Mapping[str, NDArray[Any]]
    paths: Mapping[str, str] = field(default_factory=dict)
    callbacks: Sequence[Mapping[str, Any]] = ()


def copy_array(variable: Any) -> NDArray[Any]:
    """Return a copy of the value of a Keras variable or a tensor, on whatever device it is."""
    if keras.backend.backend() == "torch":  # whose __array__ refuses tensors on a GPU
        return np.array(keras.ops.convert_to_numpy(variable))
    return np.array(variable.__array__())  # np.array(variable) warns: Keras does not support `copy`


def take_snapshot(model: Any, callbacks: Sequence[Any]) -> Snapshot:
    """Return the current state of a model and its callbacks, as copies."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()  # during training, JAX holds the variables elsewhere
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
    """Restore the state of a model.

    `with_metrics`: whether to restore metrics too; not at the beginning of an epoch.
    """
    for group, variables in _list_groups(model).items():
        stored = [name for name in snapshot.arrays if name.startswith(f"{group}/")]
        if len(stored) != len(variables):
            raise _make_state_error(f"number of variables of the {group}", len(variables), len(stored))
        if group == "model":
            names = [snapshot.paths.get(f"model/{number}", "") for number in range(len(stored))]
            # The optimizer's variables are in the order of the model's, which must therefore be the same.
            if pair_weights(names, [str(each.path) for each in variables]) != list(range(len(stored))):
                raise _make_state_error(
                    "order of the model's variables", "the order of the run", "another order"
                )
        for number, variable in enumerate(variables):
            array = snapshot.arrays[f"{group}/{number}"]
            if tuple(variable.shape) != array.shape:
                what = f"shape of {variable.path!r}, variable {number} of the {group}"
                raise _make_state_error(what, tuple(variable.shape), array.shape)
            if group != "metrics" or with_metrics:
                variable.assign(array)


def restore_callbacks(callbacks: Sequence[Any], snapshot: Snapshot) -> None:
    """Restore the state of callbacks, after `fit` has reset it at the beginning."""
    kinds = [type(callback).__name__ for callback in callbacks]
    stored = [str(state.get("kind")) for state in snapshot.callbacks]
    if kinds != stored:
        raise _make_state_error("callbacks", ", ".join(stored) or "none", ", ".join(kinds) or "none")
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
        "seed": [global_seed_generator().state],  # for layers without their own seed generator
    }


def _dump_callback(callback: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the state of a callback: scalars, and lists of arrays such as the best weights."""
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
    return {"kind": kind, "values": values, _ARRAYS: lists, _HAS_DIRECTION: is_aimed}, arrays


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.dtype.itemsize <= 8


def _load_callback(callback: Any, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    if state.get(_HAS_DIRECTION) and callback.monitor_op is None:
        # Keras callbacks with a monitor set their direction at the first value, and then flip the sign of
        # another attribute: this must happen before restoring, or the restored value would be flipped again.
        callback._set_monitor_op()
    for name, value in state["values"].items():
        if name not in vars(callback):
            continue
        setattr(callback, name, float(value["float"]) if isinstance(value, Mapping) else value)
    for name, count in state[_ARRAYS].items():
        setattr(callback, name, [arrays[f"{name}/{at}"] for at in range(count)])


def _make_state_error(what: str, expected: object, got: object) -> StateError:
    advice = "Pass the model and the callbacks that the run was started with."
    return StateError(what, expected=expected, got=got, advice=advice)
