"""Assertions on errors by their class and attributes, so that the wording of messages can improve.

Where an error or a printed text has no attributes to compare, `mentions` compares the facts in it: names,
values, numbers and options, never the words around them.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Text in quotes, brackets or parentheses is one fact, spaces included.
_FACT = re.compile(r"""\S*?(?:'[^']*'|"[^"]*"|\([^()]*\)|\[[^\[\]]*\])\S*|\S+""")


def mentions(text: object, facts: str) -> bool:
    """Whether a text contains all facts, in their order, each as a whole word.

    Args:
        text: An error, or anything else that is compared by its text.
        facts: The facts, separated by spaces: `"'age' 0 300"`.

    >>> mentions("batch_size: expected a number of at least 1, got 0.", "batch_size 1 0")
    True
    >>> mentions("batch_size: expected a number of at least 1, got 0.", "0 1")
    False
    >>> mentions("expected 10 or 1.5", "1")
    False
    """
    found = _FACT.findall(facts)
    if not found:
        raise ValueError(f"no facts in {facts!r}: every text has them")
    return re.search(".*".join(map(_match_whole, found)), str(text), re.DOTALL) is not None


def _match_whole(fact: str) -> str:
    before = r"(?<![\w-])(?<!\d\.)" if re.match(r"\w", fact) else ""
    after = r"(?!\w)(?!\.\d)" if re.search(r"\w$", fact) else ""
    return before + re.escape(fact) + after


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
def raises_with(
    kind: type[BaseException] | tuple[type[BaseException], ...], facts: str = "", /, **attributes: object
) -> Iterator[pytest.ExceptionInfo]:
    """Expect an error of class `kind` whose message mentions the facts and whose attributes equal the values.

    Args:
        kind: Class of the error; a subclass is accepted too, as by `pytest.raises`.
        facts: Facts in the message, see `mentions`; "" if the attributes are enough.
        attributes: Values by name, such as `field="age", got=containing("'old'")`; `message` is the text.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert not facts or mentions(error, facts), f"{type(error).__name__}: {error}\ndoes not mention {facts}"
    found = {name: str(error) if name == "message" else getattr(error, name) for name in attributes}
    assert found == attributes, f"{type(error).__name__}: {error}\nhas {found}\ninstead of {attributes}"
