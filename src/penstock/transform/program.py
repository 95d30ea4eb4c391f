"""A pipeline as a program of the core: all fields of some rows are transformed in one call.

In: fitted transforms, their outputs and groups. Out: `Program`, which writes rows of a batch's arrays. Steps
that the core does not have, such as images, stay with `Transform.apply`, the reference for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumns, Ragged
from penstock.decode.row_columns import NativeRows, PlainColumns, RowColumns
from penstock.transform.base import Transform
from penstock.transform.output import Output


class PieceOutput(NamedTuple):
    """An output whose shape depends on the batch, with the name of the output for its mask, or None."""

    name: str
    mask: str | None
    is_ragged: bool


class ArrayTarget(NamedTuple):
    """Where an output of a fixed shape is.

    Attributes:
        array: Name of the array: the name of the output, or of a group.
        columns: Columns of the output in the array of a group; None for a separate array.
        offset_bytes: Offset of the output in each row of the array.
    """

    array: str
    columns: int | slice | None
    offset_bytes: int


class Ran(NamedTuple):
    """The remaining work after a run of a program.

    Attributes:
        piece: The lists of the rows whose length in the batch is not known yet, or None.
        failed: Names of the fields whose step failed: `Transform.apply` raises the error, or transforms a
            column of a form that the core does not know.
    """

    piece: _native.Piece | None
    failed: Sequence[str]


class Program:
    """The steps of a pipeline that the core runs; any number of threads may run it.

    Attributes:
        arrays: Names of the arrays of a fixed shape: outputs, and groups.
        targets: Where each output of a fixed shape is, by name.
        pieces: Outputs whose shape depends on the batch and that the core makes, in order.
        others: Names of the fields that have no step in the program, in order.
    """

    def __init__(
        self,
        transforms: Mapping[str, Transform],
        arrays: Mapping[str, Output],
        members: Mapping[str, tuple[str, int | slice]],
    ) -> None:
        """Compile a program.

        `transforms`: fitted transforms by field name, in order. `arrays`: arrays of a fixed shape by name:
        outputs, and groups. `members`: group and columns in it, for each output that is a member of one.
        """
        self.arrays = tuple(arrays)
        self.targets = {name: ArrayTarget(name, None, 0) for name in arrays}
        for name, (group, columns) in members.items():
            start = columns if isinstance(columns, int) else columns.start
            offset = start * np.dtype(arrays[group].dtype).itemsize
            self.targets[name] = ArrayTarget(group, columns, offset)
        steps: list[dict[str, Any]] = []
        pieces: list[PieceOutput] = []
        fields: list[str] = []
        for name, transform in transforms.items():
            for step, outputs in transform.native_steps(transform.outputs(name)) or ():
                options = dict(step)
                if options["form"] in ("longest", "ragged"):
                    mask = outputs[1].name if len(outputs) > 1 else None
                    pieces.append(PieceOutput(name, mask, options["form"] == "ragged"))
                else:
                    for key, output in zip(("target", "extra"), outputs, strict=False):
                        target = self.targets[output.name]
                        options[key] = (self.arrays.index(target.array), target.offset_bytes)
                steps.append({**options, "field": len(fields)})
                fields.append(name)  # once per step
        self.pieces = tuple(pieces)
        self.others = tuple(name for name in transforms if name not in fields)
        self._fields = tuple(fields)
        shapes = [(output.dtype, output.shape) for output in arrays.values()]
        self._native = _native.Program(steps, shapes)
        self._numbers: dict[tuple[str, ...], NDArray[np.int64] | None] = {}

    def allocate(self, num_rows: int) -> _native.BatchArrays:
        """Return new arrays for a batch, in the order of `arrays`."""
        return self._native.allocate(num_rows)

    def run(self, arrays: _native.BatchArrays, first: int, columns: CodedColumns, num_rows: int) -> Ran:
        """Transform some rows; the first of them becomes row `first` of the arrays."""
        if not self._fields:
            return Ran(None, ())
        rows = None
        if isinstance(columns, RowColumns):
            storage, rows = columns.storage, columns.rows
        else:
            storage = PlainColumns(columns, num_rows)
        numbers = self._field_numbers(storage.names)
        if numbers is None:  # a column is missing, which is an error of its transform
            return Ran(None, self._fields)
        piece, failed = self._native.run(arrays, first, storage.native, numbers, rows)
        return Ran(piece, [self._fields[number] for number in failed] if failed else ())

    def begin_slices(
        self, arrays: _native.BatchArrays, source: NativeRows, num_parts: int
    ) -> _native.BatchSlices | None:
        """Return the slices of a batch, for the core to make; None if it cannot make all outputs."""
        if self.others or not self._fields:
            return None
        numbers = self._field_numbers(source.names)
        if numbers is None:
            return None
        return self._native.begin(arrays, source.source, numbers, source.rows, num_parts)

    def join(self, pieces: Sequence[_native.Piece]) -> dict[str, NDArray[Any] | Ragged]:
        """Return the outputs of several runs whose shape depends on the batch, joined, by name."""
        joined: dict[str, NDArray[Any] | Ragged] = {}
        if self.pieces:
            for each, (values, second) in zip(self.pieces, self._native.join(pieces), strict=True):
                joined[each.name] = Ragged(values, second) if each.is_ragged else values
                if each.mask is not None:
                    joined[each.mask] = second
        return joined

    def _field_numbers(self, names: tuple[str, ...]) -> NDArray[np.int64] | None:
        """Return the number of the column of each field; None if one is missing."""
        if names in self._numbers:
            return self._numbers[names]
        known = {name: number for number, name in enumerate(names)}
        is_whole = all(name in known for name in self._fields)
        numbers = np.array([known[name] for name in self._fields], np.int64) if is_whole else None
        if len(self._numbers) < 64:  # sources have few sets of columns
            self._numbers[names] = numbers
        return numbers
