"""A batch in the making: slices of its rows are transformed in any order, by any threads.

In: the columns of each slice. Out: the arrays of the batch. Arrays of a fixed shape are allocated once, and
each slice writes its rows; arrays whose shape depends on the batch are joined at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumns, Dense, Ragged, concat_rows, take_rows
from penstock.decode.row_columns import NativeRows, count_rows
from penstock.transform.draws import Draws

if TYPE_CHECKING:
    from penstock.transform.assembly import Assembly, Faults, Parts  # which begins these batches

_NOT_FILLED: Final = (0, 0)


class BatchBuilder(Protocol):
    """A batch in the making. Threads may work on different parts at the same time."""

    def begin_native(self, source: NativeRows, num_parts: int) -> _native.BatchSlices | None:
        """Return the parts of the batch for the core to make, or None.

        Parts that the core cannot make are prepared and filled here.
        """

    def prepare(self, first: int, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of the transforms.

        Args:
            first: Row of the batch that the first row of the columns becomes.
            columns: Columns of some rows.
            draws: Random draws of these rows.

        Returns:
            The columns, and the errors of rows by row number; remove these rows before `fill`.
        """

    def fill(self, part: int, first: int, columns: CodedColumns, num_rows: int, draws: Draws | None) -> None:
        """Transform the rows of a part.

        Args:
            part: Number of the part.
            first: Row of the batch that the first row of the columns becomes.
            columns: Columns that `prepare` returned, without the rows that are left out.
            num_rows: Number of rows.
            draws: Random draws of these rows.

        Raises:
            FieldError: A value cannot be transformed; `record` is its row number in the columns.
        """

    def finish(self, draws: Draws | None, chosen: NDArray[np.int64] | None = None) -> Parts:
        """Return the arrays of the batch, after all parts were filled.

        Args:
            draws: Random draws of all rows that were filled.
            chosen: Rows to return, as numbers among those that were filled; all of them if not given. The
                draws belong to these rows.

        Raises:
            FieldError: A map refuses a row; `record` is its number among the chosen rows.
        """


class AssembledBatch:
    """A batch of a pipeline in the making."""

    def __init__(self, assembly: Assembly, num_rows: int, num_parts: int) -> None:
        self._assembly = assembly
        self._program = assembly.program
        self._num_rows = num_rows
        self._batch = self._program.allocate(num_rows)
        self._arrays = dict(zip(self._program.arrays, self._batch.arrays, strict=True))
        self._filled = [_NOT_FILLED] * num_parts  # first row and number of rows of each part
        # Outputs whose shape depends on the batch: from the core, and from `Transform.apply`.
        self._pieces: list[_native.Piece | None] = [None] * num_parts
        self._made: list[dict[str, Any]] = [{}] * num_parts
        self._mapped: list[CodedColumns] = [{}] * num_parts
        self._slices: _native.BatchSlices | None = None

    def begin_native(self, source: NativeRows, num_parts: int) -> _native.BatchSlices | None:
        """Return the parts of the batch for the core to make, or None."""
        if not self._assembly.prepares and not self._assembly.maps:
            self._slices = self._program.begin_slices(self._batch, source, num_parts)
        return self._slices

    def prepare(self, first: int, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of the transforms."""
        if not self._assembly.prepares:
            return columns, {}
        num_rows = count_rows(columns)
        outs = {
            name: self._arrays[name][first : first + num_rows]
            for name in self._assembly.preparing
            if name in self._arrays
        }
        return self._assembly.prepare(columns, draws, outs)

    def fill(self, part: int, first: int, columns: CodedColumns, num_rows: int, draws: Draws | None) -> None:
        """Transform the rows of a part."""
        program = self._program
        self._pieces[part], failed = program.run(self._batch, first, columns, num_rows)
        made: dict[str, Any] = {}
        if program.others or failed:
            for outputs in self._assembly.transform(columns, draws, {*program.others, *failed}):
                made |= outputs
            for name in [name for name in made if name in program.targets]:
                _put(self._view(name)[first : first + num_rows], made.pop(name))
        self._made[part] = made
        self._filled[part] = (first, num_rows)
        if self._assembly.maps:
            self._mapped[part] = {name: columns[name] for name in self._assembly.mapped}

    def finish(self, draws: Draws | None, chosen: NDArray[np.int64] | None = None) -> Parts:
        """Return the arrays of the batch."""
        if self._slices is not None:
            self._take_native(self._slices)
        num_rows = sum(count for _, count in self._filled)
        rows = self._rows_filled(num_rows, chosen)
        joined = self._join(rows, chosen)
        if self._assembly.maps:
            columns: CodedColumns = concat_rows(self._mapped)
            if chosen is not None:
                columns, num_rows = take_rows(columns, chosen), len(chosen)
            self._assembly.apply_maps(joined, columns, num_rows, draws)
        for group in self._assembly.groups:
            array = _take(self._arrays[group.name], rows)
            for member, place in group.columns:
                if member in joined[0]:  # made by a map
                    array[:, place] = joined[0].pop(member)
            joined[0][group.name] = array
        return joined

    def _take_native(self, slices: _native.BatchSlices) -> None:
        """Record the parts that the core has made: all that were not filled here."""
        self._slices = None
        for part in range(slices.num_parts):
            if self._filled[part] is _NOT_FILLED:
                first = part * self._num_rows // slices.num_parts
                self._filled[part] = (first, (part + 1) * self._num_rows // slices.num_parts - first)
                self._pieces[part] = slices.take_piece(part)

    def _view(self, name: str) -> NDArray[Any]:
        """Return the array of an output of a fixed shape; of a member of a group, its columns there."""
        target = self._program.targets[name]
        array = self._arrays[target.array]
        return array if target.columns is None else array[:, target.columns]

    def _rows_filled(self, num_rows: int, chosen: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Return the chosen rows as numbers in the common arrays; None for all rows of these."""
        if chosen is None and num_rows == self._num_rows:
            return None
        rows = np.concatenate([np.arange(first, first + count) for first, count in self._filled])
        return rows if chosen is None else rows[chosen]

    def _join(self, rows: NDArray[np.int64] | None, chosen: NDArray[np.int64] | None) -> Parts:
        """Return the outputs of transforms, in the order of the fields, without members of groups."""
        joined: Parts = ({}, {}, {})
        varying = self._join_varying()
        for number, name in self._assembly.transformed:
            if name in self._arrays:
                array = self._arrays[name]
                joined[number][name] = array if rows is None else _take(array, rows)
            elif name in varying:
                value: Any = varying[name]
                if chosen is not None:
                    value = _take(value, chosen) if isinstance(value, np.ndarray) else value.take(chosen)
                joined[number][name] = value
        return joined

    def _join_varying(self) -> dict[str, NDArray[Any] | Ragged]:
        """Return the outputs whose shape depends on the batch, by name."""
        if not self._program.pieces and not any(self._made):
            return {}
        joined = self._program.join([piece for piece in self._pieces if piece is not None])
        for name in dict.fromkeys(name for made in self._made for name in made):
            parts = [
                made[name] if name in made else self._program.join([] if piece is None else [piece])[name]
                for made, piece in zip(self._made, self._pieces, strict=True)
            ]
            joined[name] = join_pieces(parts, self._assembly.padding(name))
        return joined


def join_pieces(pieces: Sequence[NDArray[Any] | Ragged], padding: float) -> NDArray[Any] | Ragged:
    """Return arrays, or lists, one after the other; arrays are padded to the longest of them."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    if isinstance(first, Ragged):
        return Ragged.concat(pieces)
    arrays: list[Any] = list(pieces)
    shape = tuple(max(sizes) for sizes in zip(*(array.shape[1:] for array in arrays), strict=True))
    joined = _native.empty((sum(map(len, arrays)), *shape), first.dtype.name)
    at = 0
    for array in arrays:
        rows = joined[at : at + len(array)]
        if array.shape[1:] != shape:
            rows[...] = padding
        rows[tuple(slice(size) for size in array.shape)] = array
        at += len(array)
    return joined


class Preparing(Protocol):
    """Turns columns into arrays in two steps."""

    def prepare(self, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of `apply`; return the columns, and errors by row number."""

    def apply(self, columns: CodedColumns, num_rows: int, draws: Draws | None) -> Parts:
        """Return inputs, targets and weights of some records."""


class WholeBatch:
    """A batch whose parts are prepared one by one, and transformed together at the end."""

    def __init__(self, transform: Preparing, num_parts: int) -> None:
        self._transform = transform
        self._columns: list[CodedColumns] = [{}] * num_parts
        self._counts = [0] * num_parts

    def begin_native(self, source: NativeRows, num_parts: int) -> None:
        """Return None: the parts are transformed together."""

    def prepare(
        self,
        first: int,  # noqa: ARG002
        columns: CodedColumns,
        draws: Draws | None,
    ) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of the transforms."""
        return self._transform.prepare(columns, draws)

    def fill(
        self,
        part: int,
        first: int,  # noqa: ARG002
        columns: CodedColumns,
        num_rows: int,
        draws: Draws | None,  # noqa: ARG002
    ) -> None:
        """Keep the columns of a part."""
        self._columns[part] = columns
        self._counts[part] = num_rows

    def finish(self, draws: Draws | None, chosen: NDArray[np.int64] | None = None) -> Parts:
        """Return the arrays of the batch."""
        columns: CodedColumns = concat_rows(self._columns)
        num_rows = sum(self._counts)
        if chosen is not None:
            columns, num_rows = take_rows(columns, chosen), len(chosen)
        return self._transform.apply(columns, num_rows, draws)


def _put(rows: NDArray[Any], value: Any) -> None:
    """Write a value to rows of an array, unless it was written there already."""
    if value.__array_interface__["data"][0] != rows.__array_interface__["data"][0] or not len(rows):
        rows[...] = value


def _take(array: Any, rows: NDArray[np.int64] | None) -> NDArray[Any]:
    taken: NDArray[Any] = array if rows is None else Dense(array).take(rows).values
    return taken
