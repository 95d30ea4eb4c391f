"""Which code is which class: the codes that a model gets in place of the labels of a target.

In: fitted transforms of targets. Out: classes by target, as tables and lines, and a note where labels that
are whole numbers get other numbers as codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from penstock.foundation.wording import show
from penstock.schema.field import Field
from penstock.transform.base import Transform
from penstock.transform.category import Encode, join_classes
from penstock.transform.vocabulary import Entry, sort_key

MAX_SHOWN: Final = 20
"""Maximum number of classes in a table."""

_MAX_IN_LINE: Final = 10
_MAX_KEPT: Final = 1_000  # with more codes than labels, most outputs of a model would have no records


def find_classes(
    transforms: Mapping[str, Transform], roles: Mapping[str, Field]
) -> dict[str, tuple[Entry, ...]]:
    """Return the classes of each target in the order of their codes, from 0."""
    return {
        name: each.fitted.values
        for name, each in transforms.items()
        if isinstance(each, Encode)
        and roles[name].role == "target"
        and each.fitted is not None
        and each.output != "hash"
        and each.num_codes == len(each.fitted.values)
    }


def order_classes(field: Field, values: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the classes that the default transform of a target makes of its values, by code."""
    return tuple(sorted(join_classes(field, values), key=sort_key))


def describe_classes(classes: Sequence[Entry]) -> str:
    """Return the codes of classes in one line.

    Example:
        >>> describe_classes(("no", "yes"))
        "0 → 'no', 1 → 'yes'"
    """
    shown = ", ".join(f"{code} → {show(label)}" for code, label in enumerate(classes[:_MAX_IN_LINE]))
    return f"{shown}, … ({len(classes)} classes)" if len(classes) > _MAX_IN_LINE else shown


def list_class_rows(classes: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return a row of code and class for each class; of many classes, the first ones."""
    return [(str(code), show(label)) for code, label in enumerate(islice(classes, MAX_SHOWN))]


def draw_classes(found: Mapping[str, Sequence[Entry]]) -> Iterator[str]:
    """Yield the lines of a table of code and class for each target."""
    for name, classes in found.items():
        rows = [("code", f"class of {show(name)}"), *list_class_rows(classes)]
        yield ""
        width = max(len(code) for code, _ in rows)
        yield from (f"{code.rjust(width)}  {label}" for code, label in rows)
        if len(classes) > MAX_SHOWN:
            yield f"{'…'.rjust(width)}  {len(classes) - MAX_SHOWN:,} more: pipeline.classes"


def note_renumbered(found: Mapping[str, Sequence[Entry]]) -> dict[str, str]:
    """Return a note for each target of whole numbers whose codes are other numbers."""
    return {
        name: _describe_renumbered(name, classes) for name, classes in found.items() if _is_moved(classes)
    }


def _is_moved(classes: Sequence[Entry]) -> bool:
    return all(isinstance(each, int) for each in classes) and list(classes) != list(range(len(classes)))


def _describe_renumbered(name: str, classes: Sequence[Any]) -> str:
    numbers = f"its numbers are classes, and models get other numbers as codes: {describe_classes(classes)}"
    most = max(classes)
    if min(classes) < 0 or most >= _MAX_KEPT or list(classes) != sorted(classes):
        return f"{numbers}. A model of your own can take the numbers unchanged, with Keep()"
    vocabulary = ", ".join(map(str, range(most + 1))) if most < _MAX_IN_LINE else f"0, 1, …, {most}"
    argument = f"{name}=" if name.isidentifier() else ""
    return (
        f"{numbers}. To keep the numbers as codes: {argument}Encode(vocabulary=list(range({most + 1}))) in "
        f"Pipeline.fit, {{kind: encode, vocabulary: [{vocabulary}]}} for the field in a configuration file"
    )
