"""Where the code of one field is written: its variables, its constants on top, how its records are parsed.

In: what the transforms ask for. Out: statements, and the feature descriptions by key.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from penstock.errors import OptionError
from penstock.foundation.program import DefineFunction, StatementBlock, Term
from penstock.schema.field import Field
from penstock.transform.vocabulary import Entry, as_bytes

LONGEST_LIST: Final = 1000
"""Entries of a vocabulary that are written out; longer ones are read from the pipeline's file."""

tf: Final = Term.name("tf")

# What programs call other things by.
_RESERVED: Final = ("tf", "json", "pathlib", "len", "prepare", "serialized", "parsed", "steps", "dataset")
_FUNCTIONS: Final = ("find_brightness", "find_orientation", "turn_upright")
_CONSTANTS: Final = (
    "FILES",
    "COMPRESSIONS",
    "BATCH_SIZE",
    "SHUFFLE",
    "SEED",
    "SHUFFLE_RECORDS",
    "FEATURES",
    "CONTEXT_FEATURES",
    "STEP_FEATURES",
    "PIPELINE",
    "PIPELINE_FILE",
)


class Names:
    """Hands out each name once, to variables and, in capitals, to constants."""

    def __init__(self) -> None:
        self._taken = {*keyword.kwlist, *keyword.softkwlist, *_RESERVED, *_FUNCTIONS, *_CONSTANTS}

    def take(self, wish: str) -> str:
        """Return an identifier that looks like what is wished for."""
        plain = re.sub(r"[^0-9a-zA-Z]+", "_", wish).strip("_") or "field"
        stem = plain if plain[0].isalpha() else f"field_{plain}"
        found, number = stem, 2
        while found in self._taken:
            found, number = f"{stem}_{number}", number + 1
        self._taken.add(found)
        return found


@dataclass
class Page:
    """What all fields of a program share.

    Attributes:
        names: That are taken.
        top: Constants and tables.
        functions: By name, those that the one below calls.
        body: Of the function that makes a batch.
        features: Descriptions by key, of Examples or of the context of SequenceExamples.
        steps: Descriptions by key, of feature lists.
        rows: How many records every batch has, if all have as many.
        uses_file: Whether something is read from the pipeline's file.
    """

    names: Names = field(default_factory=Names)
    top: StatementBlock = field(default_factory=StatementBlock)
    functions: dict[str, DefineFunction] = field(default_factory=dict)
    body: StatementBlock = field(default_factory=StatementBlock)
    features: dict[str, Term] = field(default_factory=dict)
    steps: dict[str, Term] = field(default_factory=dict)
    rows: int | None = None
    uses_file: bool = False


class Site:
    """The place of one field in a program.

    Attributes:
        page: The rest of the program.
        name: Of the field.
        field: What its records hold.
        variable: What its value is called.
    """

    def __init__(self, page: Page, name: str, field: Field) -> None:
        self.page = page
        self.name = name
        self.field = field
        self.variable = page.names.take(name.lower())

    def parse(self, feature: Term) -> Term:
        """Have the field parsed by a feature description; return the term for what that gives."""
        key = self.field.wire_key(self.name)
        if self.field.is_feature_list:
            self.page.steps[key] = feature
            return self.bind(Term.name("steps")[key])
        self.page.features[key] = feature
        return self.bind(Term.name("parsed")[key])

    def bind(self, value: Any) -> Term:
        """Give the field's variable another value."""
        return self.page.body.bind(self.variable, value)

    def bind_beside(self, suffix: str, value: Any) -> Term:
        """Bind another variable of the field."""
        return self.page.body.bind(self.page.names.take(f"{self.variable}_{suffix}"), value)

    def check(self, assertion: Term) -> None:
        """Add what must hold."""
        self.page.body.execute(assertion)

    def reshape(self, value: Term, shape: Sequence[int | None]) -> Term:
        """Return a value with records of a shape."""
        return tf.reshape(value, [self.page.rows or -1, *shape])

    def shape(self, value: Term, *dims: int | None) -> Term:
        """Return a value whose shape TensorFlow does not see, with what it is."""
        return tf.ensure_shape(value, [self.page.rows, *dims])

    def fix(self, value: Term, *dims: int | None) -> Term:
        """Return a value with how many records it has, if that is known: TensorFlow may not see it."""
        return value if self.page.rows is None else self.shape(value, *dims)

    def define_constant(self, word: str, value: Any) -> Term:
        """Return a constant on top, whose name ends with a word."""
        name = f"{self.variable.upper()}_{word}"
        return self.page.top.define_constant(self.page.names.take(name), value)

    def define_table(self, values: tuple[Entry, ...], first: int, unknown: int, *path: str) -> Term:
        """Return a table on top that finds the code of a value.

        Args:
            values: In the order of codes.
            first: The code of the first.
            unknown: The code of any other value.
            path: Where in the transform's JSON form the values are.
        """
        names, top = self.page.names, self.page.top
        name = names.take(self.variable.upper())
        is_text = not isinstance(values[0], int)
        plain = _plain_texts(values) if is_text else list(values)
        source = None
        if len(values) > LONGEST_LIST and isinstance(plain[0], int | str):
            self.page.uses_file = True
            source = Term.name("PIPELINE")["transforms"][self.name]
            for key in path:
                source = source[key]
        given = top.define_constant(name, plain, source)
        keys = tf.constant(given) if is_text else tf.constant(given, tf.int64)
        codes = tf.range(first, first + len(values))
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, codes), default_value=unknown
        )
        return top.bind(names.take(f"{name}_TABLE"), table)

    def refuse(self, expected: str, got: str) -> NoReturn:
        """Refuse what TensorFlow's operations cannot say."""
        raise refuse_field(self.name, expected, got)


def refuse_field(name: str, expected: str, got: str) -> OptionError:
    """Make the error for a field that TensorFlow's operations cannot give."""
    return OptionError(
        f"field {name!r} as TensorFlow operations",
        field=name,
        expected=expected,
        got=got,
        advice="Feed it by loader(…).to_tf(), which runs Penstock's own transforms, or leave the field out.",
    )


def _plain_texts(values: tuple[Entry, ...]) -> list[Any]:
    """Return texts as they are if all are such, else as the bytes that records hold."""
    if all(
        isinstance(value, str) and value.encode("utf-8", "replace") == as_bytes(value) for value in values
    ):
        return list(values)
    return [as_bytes(value) for value in values]
