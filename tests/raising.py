"""Assertions on errors by their class and attributes, so that the wording of messages can improve."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class containing:  # noqa: N801 - reads like a function where it is used
    """Equal to everything whose text contains all given parts: names, values, options; no sentences.

    A number is found only as a whole: 1 is not in "10" or "1.5".

    >>> "between 1 and 20 values" == containing(1, 20)
    True
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *parts: object) -> None:
        self.parts = [str(part) for part in parts]

    def __eq__(self, other: object) -> bool:
        return other is not None and all(_is_in(part, str(other)) for part in self.parts)

    def __repr__(self) -> str:
        return f"containing({', '.join(map(repr, self.parts))})"


def _is_in(part: str, text: str) -> bool:
    before = r"(?<!\d)(?<!\d\.)" if part[:1].isdigit() else ""
    after = r"(?!\.?\d)" if part[-1:].isdigit() and not part.startswith("0x") else ""
    return re.search(before + re.escape(part) + after, text) is not None


@contextmanager
def raises_with(kind: type[BaseException], **attributes: object) -> Iterator[pytest.ExceptionInfo]:
    """Expect an error of class `kind` whose attributes equal the given values.

    Args:
        kind: Class of the error; a subclass is accepted too, as by `pytest.raises`.
        attributes: Values by name, such as `field="age", got=containing("'old'")`; `message` is the text.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    found = {name: str(error) if name == "message" else getattr(error, name) for name in attributes}
    assert found == attributes, f"{kind.__name__}: {error}\nhas {found}\ninstead of {attributes}"
