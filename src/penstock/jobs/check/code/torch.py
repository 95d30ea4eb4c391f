"""Code of a small torch model for the inputs and targets of a pipeline, and its training loop.

In: features, tasks. Out: lines of code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Final

from penstock.jobs.check.code.keras import choose_width
from penstock.jobs.check.code.tensorflow import quote
from penstock.model.blueprint import make_stem
from penstock.model.feature import Feature
from penstock.model.task import Task

_LOSSES: Final = {
    "binary": "binary_cross_entropy_with_logits",
    "multiclass": "cross_entropy",
    "multilabel": "binary_cross_entropy_with_logits",
    "regression": "mse_loss",
}


def write_torch_model(
    features: list[Feature], tasks: Mapping[str, Task], *, has_weights: bool
) -> Iterator[str]:
    """Yield the lines of a module `Model` and of a function `find_loss`, with weights of records if any."""
    parts = [_Part(feature, number) for number, feature in enumerate(features)]
    yield "class Model(nn.Module):"
    yield '    """One vector per input, then a hidden layer, and one output per target."""'
    yield ""
    yield "    def __init__(self):"
    yield "        super().__init__()"
    for part in parts:
        yield from (f"        {line}" for line in part.layers())
    yield f"        self.hidden = nn.Linear({sum(part.width for part in parts)}, 64)"
    heads = ", ".join(f"nn.Linear(64, {task.units})" for task in tasks.values())
    yield f"        self.heads = nn.ModuleList([{heads}])"
    yield ""
    yield "    def forward(self, inputs):"
    yield "        vectors = ["
    for part in parts:
        yield f"            {part.call()},"
    yield "        ]"
    yield "        x = torch.relu(self.hidden(torch.cat(vectors, dim=1)))"
    names = ", ".join(map(quote, tasks))
    yield f"        return dict(zip([{names}], [head(x) for head in self.heads]))"
    yield ""
    yield ""
    yield f"def find_loss(outputs, targets{', weights' if has_weights else ''}):"
    yield '    """Return the sum of the losses of all targets."""'
    losses = [_write_loss(name, task, has_weights=has_weights) for name, task in tasks.items()]
    yield f"    return {' + '.join(losses)}"


def _write_loss(name: str, task: Task, *, has_weights: bool) -> str:
    arguments = f"outputs[{quote(name)}]{_write_target(name, task)}"
    if not has_weights:
        return f"nn.functional.{_LOSSES[task.kind]}({arguments})"
    losses = f'nn.functional.{_LOSSES[task.kind]}({arguments}, reduction="none")'
    if task.shape and task.kind != "multiclass":
        losses += ".flatten(1).mean(1)"
    return f"({losses} * weights[{quote(name)}]).mean()"


def _write_target(name: str, task: Task) -> str:
    if task.kind == "multiclass":
        return f", targets[{quote(name)}].long()"
    rows = "" if task.shape else "[:, 0]"
    return f"{rows}, targets[{quote(name)}].float()"


class _Part:
    """The layers of one input."""

    def __init__(self, feature: Feature, number: int) -> None:
        self.feature = feature
        self.name = f"{make_stem(feature.name)}_{number}"
        self.width = self._find_width()

    def _find_width(self) -> int:
        feature, shape = self.feature, self.feature.output.shape
        if feature.kind == "code":
            return choose_width(max(feature.sizes)) * (prod(dim or 1 for dim in shape) if shape else 1)
        if feature.kind in ("ids", "steps", "image"):
            return {"ids": 32, "steps": 16, "image": 32}[feature.kind]
        return prod(dim or 1 for dim in shape)

    def layers(self) -> Iterator[str]:
        """Yield the lines that create the layers."""
        feature, shape = self.feature, self.feature.output.shape
        if feature.kind in ("code", "ids"):
            size = max(feature.sizes)
            padding = f", padding_idx={int(feature.padding)}" if feature.kind == "ids" else ""
            width = 32 if feature.kind == "ids" else choose_width(size)
            layer = "EmbeddingBag" if feature.kind == "ids" else "Embedding"  # the mean without padding
            yield f"self.{self.name} = nn.{layer}({size}, {width}{padding})"
        elif feature.kind == "steps":
            yield f"self.{self.name} = nn.Conv1d({shape[1] if len(shape) > 1 else 1}, 16, 3, padding=1)"
        elif feature.kind == "image":
            yield f"self.{self.name} = nn.Sequential("
            yield f"    nn.Conv2d({shape[-1]}, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),"
            yield "    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),"
            yield ")"
        elif not feature.is_scaled:
            yield f"self.{self.name} = nn.BatchNorm1d({self.width})"

    def call(self) -> str:
        """Return the expression of the vector."""
        feature = self.feature
        value = f"inputs[{quote(feature.name)}]"
        if feature.kind == "code":
            return f"self.{self.name}({value}){'.flatten(1)' if feature.output.shape else ''}"
        if feature.kind == "ids":
            return f"self.{self.name}({value})"
        if feature.kind == "steps":
            is_row = len(feature.output.shape) == 1
            steps = f"{value}.float(){'.unsqueeze(1)' if is_row else '.transpose(1, 2)'}"
            return f"torch.relu(self.{self.name}({steps})).amax(2)"
        if feature.kind == "image":
            scale = " / 255" if feature.output.dtype == "uint8" else ""
            return f"self.{self.name}({value}.permute(0, 3, 1, 2).float(){scale}).mean((2, 3))"
        flat = f"{value}.float().reshape(-1, {self.width})"
        return flat if feature.is_scaled else f"self.{self.name}({flat})"
