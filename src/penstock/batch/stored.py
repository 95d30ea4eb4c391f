"""Batches of stored values, for loaders without a pipeline.

In: columns. Out: arrays of scalars and tensors as stored; texts, images and lists as their columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, CodedColumns, Dictionary, Pictures, Ragged
from penstock.errors import SchemaError
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema
from penstock.transform.assembly import Faults
from penstock.transform.builder import WholeBatch
from penstock.transform.draws import Draws
from penstock.transform.output import Output, align
from penstock.transform.padding import step_shape
from penstock.transform.pipeline import refuse_no_inputs

StoredBatch = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


class StoredValues:
    """Used in place of a pipeline: every input, target and weight as it is stored.

    A missing value shows as its field's default, or as 0.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.fields = tuple(name for name, field in schema.items() if field.role not in ("id", "unused"))
        self._roles = {name: schema[name].role for name in self.fields}

    @property
    def inputs(self) -> dict[str, Output]:
        """Inputs of a batch, by name."""
        return self._outputs("input")

    @property
    def targets(self) -> dict[str, Output]:
        """Targets of a batch, by name."""
        return self._outputs("target")

    @property
    def weights(self) -> dict[str, Output]:
        """Weights of a batch, by name."""
        return self._outputs("weight")

    @property
    def dictionaries(self) -> dict[str, Any]:
        """Empty: strings stay strings."""
        return {}

    def measure(self, name: str) -> None:
        """Return None: the lengths are the stored lengths."""

    def check_schema(self, schema: Schema) -> None:
        """Refuse another split whose values do not fit into the same arrays."""
        for name in self.fields:
            mine, given = self.schema[name], schema[name]
            if _facts(mine) != _facts(given):
                raise SchemaError(
                    f"field {show(name)}",
                    field=name,
                    expected=f"type {mine.type_name} ({mine.describe()}), as in the first split",
                    got=f"type {given.type_name} ({given.describe()})",
                    advice="Open both with one schema.",
                )

    def check_inputs(self) -> None:
        """Refuse data without inputs."""
        if not self.inputs:
            raise refuse_no_inputs(())

    def fingerprint(self) -> str:
        """Return a text that serves as the fingerprint of a pipeline."""
        return f"stored {self.schema.fingerprint()}"

    @property
    def augments(self) -> bool:
        """Whether training batches are augmented: never."""
        return False

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything: never."""
        return False

    def begin(self, num_rows: int, num_parts: int) -> WholeBatch:  # noqa: ARG002
        """Return a batch in the making, whose parts are concatenated."""
        return WholeBatch(self, num_parts)

    def prepare(self, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:  # noqa: ARG002
        """Return the columns unchanged."""
        return columns, {}

    def prepare_to_keep(
        self,
        columns: CodedColumns,
        *,
        augments: bool,  # noqa: ARG002
        room_bytes: int,  # noqa: ARG002
    ) -> tuple[CodedColumns, Faults]:
        """Return the columns unchanged."""
        return columns, {}

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None) -> StoredBatch:  # noqa: ARG002
        """Return inputs, targets and weights."""
        parts: dict[str, dict[str, NDArray[Any] | Bytes | Ragged | Dictionary | Pictures]] = {
            "input": {},
            "target": {},
            "weight": {},
        }
        for name, column in columns.items():
            value = column.unwrap()
            parts[self._roles[name]][name] = align(value) if isinstance(value, np.ndarray) else value
        return parts["input"], parts["target"], parts["weight"]

    def _outputs(self, role: str) -> dict[str, Output]:
        fields = {name: self.schema[name] for name in self.fields if self._roles[name] == role}
        return {name: OUTPUTS[type(field)](name, field) for name, field in fields.items()}


# Form of the values in a batch, by type of field.
OUTPUTS: dict[type[Field], Callable[[str, Any], Output]] = {
    Number: lambda name, field: Output(name, field.dtype, ()),
    Category: lambda name, field: Output(name, field.dtype, ()),  # int64 or string
    Date: lambda name, _: Output(name, "int64", ()),
    Text: lambda name, _: Output(name, "string", ()),
    Image: lambda name, _: Output(name, "string", ()),
    BytesField: lambda name, _: Output(name, "string", ()),
    Sequence: lambda name, field: Output(name, field.dtype, (None, *step_shape(field)), is_ragged=True),
    Tensor: lambda name, field: Output(name, field.dtype, field.shape),
}


def _facts(field: Field) -> tuple[object, ...]:
    return type(field), *(
        getattr(field, name, None) for name in ("dtype", "shape", "kind", "is_feature_list", "unit")
    )
