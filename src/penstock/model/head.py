"""What is predicted: a dense layer a target, which gives probabilities or numbers.

In: one vector, and the tasks. Out: the output of the model, or a dict of them by target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.foundation.program import Term
from penstock.model.blueprint import LAYERS, Blueprint, make_stem
from penstock.model.task import Task

_ACTIVATIONS: Final = {"binary": "sigmoid", "multiclass": "softmax", "multilabel": "sigmoid"}


def add_heads(blueprint: Blueprint, tasks: Mapping[str, Task], x: Term) -> Term:
    """Describe the heads; return the term for what the model gives."""
    blueprint.block.note("Predicted.")
    found = {name: _add_head(blueprint, task, x) for name, task in tasks.items()}
    if len(found) == 1:
        return blueprint.block.bind("outputs", *found.values())
    return blueprint.block.bind("outputs", found)


def _add_head(blueprint: Blueprint, task: Task, x: Term) -> Term:
    # float32 whatever the policy: probabilities of half precision round to 0 and 1.
    facts: dict[str, Any] = {"dtype": "float32"}
    costs, stem = blueprint.regularize(), make_stem(task.name)
    if task.kind != "regression":
        activation, name = _ACTIVATIONS[task.kind], blueprint.layer(stem)
        return LAYERS.Dense(task.units, activation=activation, **costs, **facts, name=name)(x)
    name = f"{stem}_dense"
    dense = LAYERS.Dense(task.units, **costs, **facts, name=blueprint.layer(name))
    dense = blueprint.finish(name, dense(x))
    # Learned near 0 and 1, given with the mean and the deviation of the target; a few digits of them do.
    deviation, mean = (float(f"{each:.6g}") for each in (task.deviation, task.mean))
    return LAYERS.Rescaling(deviation, mean, **facts, name=blueprint.layer(stem))(dense)
