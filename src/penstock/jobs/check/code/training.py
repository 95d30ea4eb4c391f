"""A complete training script for given data, as text: Penstock with Keras or torch, or TensorFlow alone.

In: paths of a data set, and the declarations of its fields. Out: the code, which its reader owns.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from penstock.bridge.graph.program import find_source, make_program
from penstock.dataset import Dataset, open
from penstock.errors import OptionError, PayloadError
from penstock.jobs.check.code.small_model import write_keras_model, write_torch_model
from penstock.jobs.check.code.tensorflow import choose_split, quote
from penstock.jobs.check.inspect import read_schema
from penstock.jobs.given_dataset import Declaration
from penstock.model.feature import Feature, find_features
from penstock.model.task import Task, find_tasks
from penstock.read.dataset_files import declared_schema, list_files
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from penstock.settings.loading import GraphOptions
from penstock.storage.paths import PathLike
from penstock.transform.pipeline import Pipeline

Framework: TypeAlias = Literal["keras", "tf", "torch"]

_BATCH_SIZE: Final = 32
_EPOCHS: Final = 3
_ROLES: Final = ("target", "weight", "id")  # that are parameters of `open`
_VALIDATION: Final = ("validation", "val", "valid", "dev")


def write_training(
    paths: PathLike | Iterable[PathLike],
    framework: Framework,
    declaration: Declaration | None = None,
    read: ReadOptions | None = None,
) -> str:
    """Return the code of a script that trains a small model on the data.

    The inputs, types and shapes are those that are found in the data; vocabularies and scales of the code for
    TensorFlow come from its train split.

    `framework`: "keras" or "torch", fed by Penstock, or "tf" for TensorFlow and Keras without Penstock.
    `declaration`: types, shapes and roles of fields, such as the target.
    """
    script = _find_script(paths, declaration or Declaration(), read or ReadOptions())
    if framework == "tf":
        return script.write_tensorflow()
    return script.write_keras() if framework == "keras" else script.write_torch()


@dataclass(frozen=True)
class _Script:
    """What a script needs to know about the data.

    `opening` is the code of the call that opens it, `split` the split to train on, and `held` the split to
    validate with, if there is one.
    """

    opening: str
    data: Dataset
    split: str
    held: str | None
    pipeline: Pipeline
    features: list[Feature]
    tasks: dict[str, Task]

    def write_keras(self) -> str:
        """Return the script for Penstock and Keras."""
        model = write_keras_model(self.features, self.pipeline.inputs, self.tasks, is_named=False)
        lines = [
            '"""Train a Keras model on batches of Penstock; written by \'penstock inspect --code keras\'."""',
            "",
            "import keras",
            "",
            "import penstock as ps",
            "",
            *self._write_data(),
            "",
            *model,
            "",
            *self._write_loader("feed", self.split, "to_keras()", shuffle=True),
        ]
        held = ""
        if self.held is not None:
            lines += self._write_loader("held", self.held, "to_keras()", shuffle=False)
            held = "validation_data=held, "
        lines += [
            f"model.fit(feed, {held}epochs={_EPOCHS}, callbacks=[feed.callback])",
            'model.save("model.keras")',
        ]
        return "\n".join([*lines, ""])

    def write_torch(self) -> str:
        """Return the script for Penstock and torch."""
        has_weights = bool(self.pipeline.weights)
        weights = ", weights" if has_weights else ""
        lines = [
            '"""Train a torch model on batches of Penstock; written by \'penstock inspect --code torch\'."""',
            "",
            "import torch",
            "from torch import nn",
            "",
            "import penstock as ps",
            "",
            *self._write_data(),
            "",
            "",
            *write_torch_model(self.features, self.tasks, has_weights=has_weights),
            "",
            "",
            *self._write_loader("feed", self.split, "to_torch()", shuffle=True),
            "model = Model()",
            "optimizer = torch.optim.Adam(model.parameters(), 1e-3)",
            f"for epoch in range({_EPOCHS}):  # every iteration is the next epoch, in another order",
            "    model.train()",
            "    total = 0.0",
            f"    for inputs, targets{weights} in feed:",
            f"        loss = find_loss(model(inputs), targets{weights})",
            "        optimizer.zero_grad()",
            "        loss.backward()",
            "        optimizer.step()",
            "        total += loss.item()",
            '    print(f"epoch {epoch + 1}: loss {total / len(feed):.4f}")',
        ]
        if self.held is not None:
            lines += [
                "",
                *self._write_loader("held", self.held, "to_torch()", shuffle=False),
                "model.eval()",
                "with torch.no_grad():",
                "    losses = [",
                f"        find_loss(model(inputs), targets{weights}).item()",
                f"        for inputs, targets{weights} in held",
                "    ]",
                f'print(f"{self.held}: loss {{sum(losses) / len(losses):.4f}}")',
            ]
        return "\n".join([*lines, 'torch.save(model.state_dict(), "model.pt")', ""])

    def write_tensorflow(self) -> str:
        """Return the script for TensorFlow and Keras, without Penstock."""
        split = self.data[self.split]
        source = find_source(split.as_source(), self.data.payload)
        options = GraphOptions(batch_size=_BATCH_SIZE, shuffle=True, seed=7)
        program = make_program(source, self.pipeline, options, None)
        docstring = "Train a Keras model on TFRecords with TensorFlow alone, written by Penstock."
        steps = math.ceil(len(split) / _BATCH_SIZE)
        model = write_keras_model(self.features, self.pipeline.inputs, self.tasks, is_named=True)
        lines = [
            "",
            *model,
            "",
            f"# {len(split):,} records in batches of {_BATCH_SIZE}: TensorFlow does not count them.",
            f"model.fit(dataset.repeat(), steps_per_epoch={steps}, epochs={_EPOCHS}, shuffle=False)",
            'model.save("model.keras")',
        ]
        return program.write(docstring, ("import keras",)) + "\n".join([*lines, ""])

    def _write_data(self) -> Iterator[str]:
        yield f"data = {self.opening}"
        yield "# One transform per field, fitted to the train split; others are given by name."
        if any(each.kind == "image" for each in self.features):
            yield '# Images are not augmented: NAME={"augment": True} changes those of a field at random.'
        yield "pipeline = ps.Pipeline.fit(data)"

    def _write_loader(self, name: str, split: str, call: str, *, shuffle: bool) -> Iterator[str]:
        order = ", shuffle=True, seed=7" if shuffle else ""
        yield f"{name} = data[{quote(split)}].loader(pipeline, batch_size={_BATCH_SIZE}{order}).{call}"


def _find_script(
    paths: PathLike | Iterable[PathLike], declaration: Declaration, read: ReadOptions
) -> _Script:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    schema = read_schema(given, declaration, read)
    if not any(field.role == "target" for field in schema.values()):
        raise OptionError(
            "--code",
            field="target",
            expected="a field with the role target, which the model learns to predict",
            got=f"only {', '.join(map(repr, schema))}" if schema else "no fields",
            advice="Name it: `target=NAME`.",
        )
    data = open(given, schema=schema, options=read)
    if data.payload not in ("example", "sequence_example"):
        raise PayloadError("code for training", expected="Examples", got="other payloads")
    split = choose_split(data)
    held = next((name for name in _VALIDATION if name in data.splits and name != split), None)
    pipeline = Pipeline.fit(data[split])
    tasks = find_tasks(pipeline)
    features = find_features(pipeline)
    opening = _write_opening(given, schema, declaration)
    return _Script(opening, data, split, held, pipeline, features, tasks)


def _write_opening(paths: list[PathLike], schema: Schema, declaration: Declaration) -> str:
    """Return the call that opens the data with this schema: by its manifest, or with the types as found."""
    listed = [os.fspath(path) for path in paths]
    path = quote(listed[0]) if len(listed) == 1 else f"[{', '.join(map(quote, listed))}]"
    roles = {role: [name for name, field in schema.items() if field.role == role] for role in _ROLES}
    is_dataset = declared_schema(list_files(paths).folders) is not None
    is_declared = bool(declaration.fields or declaration.types)
    if is_dataset and not (is_declared or declaration.target or declaration.weight or declaration.id):
        return f"ps.open({path})"
    lines = ["ps.open(", f"    {path},"]
    if not is_dataset or is_declared:
        lines.append("    fields={")
        lines += [f"        {quote(name)}: {_write_field(field)}," for name, field in schema.items()]
        lines.append("    },")
    for role, names in roles.items():
        if names:
            shown = ", ".join(map(quote, names))
            lines.append(f"    {role}={shown if len(names) == 1 else f'[{shown}]'},")
    return "\n".join([*lines, ")"])


def _write_field(field: Field) -> str:
    """Return the code of a field without its role, which is a separate parameter."""
    text = repr(replace(field, role="input") if field.role in _ROLES else field)
    for number in ("inf", "-inf", "nan"):
        if isinstance(field.default, float) and str(field.default) == number:
            text = text.replace(f"default={number}", f'default=float("{number}")')
    return f"ps.fields.{text}"
