"""Several inputs side by side in one.

In: arrays of inputs that are numbers or vectors. Out: one array (rows, sum of their widths).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.transform.output import Output


class Group:
    """Inputs that are concatenated, in order.

    Attributes:
        name: Of the new input.
        members: Names of the inputs that it is made of, which are no inputs any more.
        output: What it will be.
    """

    __slots__ = ("_places", "members", "name", "output")

    def __init__(self, name: str, members: tuple[str, ...], inputs: Mapping[str, Output]) -> None:
        """Make a group.

        Raises:
            OptionError: A member varies in its length, has several dimensions, or another element type; or
                the name is none.
        """
        if not isinstance(name, str) or not name:
            raise OptionError(f"group {name!r}", expected="a text as its name", got=show(name))
        self.name = name
        self.members = members
        self._places: list[tuple[str, int | slice]] = []
        width = 0
        for member in members:
            output = inputs[member]
            first = inputs[members[0]]
            if len(output.shape) > 1 or None in output.shape or output.dtype != first.dtype:
                raise OptionError(
                    f"group {name!r}",
                    field=member,
                    expected=f"numbers or vectors of one length, all {first.dtype}",
                    got=f"{output.describe()} of {member!r}",
                    advice="Leave it out of the group, or give the field another transform.",
                )
            size = output.shape[0] if output.shape else None
            self._places.append((member, width if size is None else slice(width, width + size)))
            width += size or 1
        self.output = Output(name, inputs[members[0]].dtype, (width,))

    def apply(self, inputs: dict[str, Any], num_rows: int) -> None:
        """Put the members of a batch together, and take them out of the inputs."""
        joined = _native.empty((num_rows, *self.output.shape), self.output.dtype)  # type: ignore[arg-type]
        for member, place in self._places:
            joined[:, place] = inputs.pop(member)
        inputs[self.name] = joined
