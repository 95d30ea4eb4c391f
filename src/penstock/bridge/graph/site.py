"""One field in a generated program: its variables, its constants, how its records are parsed.

In: calls from the modules that write transforms as operations. Out: statements, and feature descriptions by
key.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, NoReturn, Protocol, TypeAlias

from penstock.codegen.program import StatementBlock, Term
from penstock.errors import OptionError
from penstock.schema.field import Field
from penstock.transform.vocabulary import Entry, as_bytes

LONGEST_LIST: Final = 1000
"""Maximum length of a vocabulary written into the code; a longer one is read from the pipeline's file."""

tf: Final = Term.name("tf")

Lack: TypeAlias = Literal["refuse", "fill", "mark"]
"""How to treat records without a value: raise an error, fill in the default, or also mark them."""


class Stored(NamedTuple):
    """Values of a field.

    Attributes:
        values: One value or array per record.
        present: Mask of the records that have a value; None if all have one.
    """

    values: Term
    present: Term | None


class ValueReader(Protocol):
    """Reads the values of fields from something else than serialized records."""

    def read_values(self, site: Site, lack: Lack, default: Any) -> Stored:
        """Return one value or array per record, in the type of the field."""

    def read_ragged(self, site: Site) -> Term:
        """Return lists of one value per record, or of none for a record without a value."""

    def read_lists(self, site: Site) -> Term:
        """Return lists of values or steps as a ragged tensor."""


# Names that generated programs use for other things.
_RESERVED: Final = ("tf", "json", "pathlib", "len", "prepare", "serialized", "parsed", "steps", "dataset")
_FUNCTIONS: Final = (
    *("find_brightness", "mark_inverted", "read_segment", "read_chunk", "find_part"),
    *("read_orientation", "turn_upright"),
)
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
    """Makes unique identifiers for the variables and constants of a program."""

    def __init__(self) -> None:
        self._taken = {*keyword.kwlist, *keyword.softkwlist, *_RESERVED, *_FUNCTIONS, *_CONSTANTS}

    def take(self, name: str) -> str:
        """Return an identifier that resembles a name and is not taken yet."""
        plain = re.sub(r"[^0-9a-zA-Z]+", "_", name).strip("_") or "field"
        stem = plain if plain[0].isalpha() else f"field_{plain}"
        found, number = stem, 2
        while found in self._taken:
            found, number = f"{stem}_{number}", number + 1
        self._taken.add(found)
        return found


@dataclass
class Page:
    """The parts of a program that all fields share.

    Attributes:
        names: Identifiers in use.
        top: Constants and lookup tables.
        functions: Functions that `prepare` calls, by name.
        body: Body of `prepare`, the function that makes a batch.
        features: Feature descriptions by key, of Examples or of the context of SequenceExamples.
        steps: Feature descriptions by key, of feature lists.
        rows: Number of records of every batch; None if it varies.
        uses_file: Whether the program reads the pipeline's JSON file.
        reader: Reads the values of fields; None for serialized records.
        most_values: Number of values of a vocabulary that the program contains; it reads longer ones from
            the pipeline's JSON file.
    """

    names: Names = field(default_factory=Names)
    top: StatementBlock = field(default_factory=StatementBlock)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    body: StatementBlock = field(default_factory=StatementBlock)
    features: dict[str, Term] = field(default_factory=dict)
    steps: dict[str, Term] = field(default_factory=dict)
    rows: int | None = None
    uses_file: bool = False
    reader: ValueReader | None = None
    most_values: int = LONGEST_LIST


class Site:
    """One field in a program.

    Attributes:
        page: Parts of the program that all fields share.
        name: Name of the field.
        field: The field in the schema.
        variable: Name of the variable that holds its value.
    """

    def __init__(self, page: Page, name: str, field: Field) -> None:
        self.page = page
        self.name = name
        self.field = field
        self.variable = page.names.take(name.lower())

    def parse(self, feature: Term) -> Term:
        """Parse the field by a feature description; return the term for its values."""
        key = self.field.wire_key(self.name)
        if self.field.is_feature_list:
            self.page.steps[key] = feature
            return self.bind(Term.name("steps")[key])
        self.page.features[key] = feature
        return self.bind(Term.name("parsed")[key])

    def bind(self, value: Any) -> Term:
        """Assign a value to the variable of the field."""
        return self.page.body.bind(self.variable, value)

    def bind_extra(self, suffix: str, value: Any) -> Term:
        """Assign a value to a further variable of the field."""
        return self.page.body.bind(self.page.names.take(f"{self.variable}_{suffix}"), value)

    def check(self, assertion: Term) -> None:
        """Add an assertion."""
        self.page.body.execute(assertion)

    def reshape(self, value: Term, shape: Sequence[int | None]) -> Term:
        """Reshape a value to one array of a shape per record."""
        return tf.reshape(value, [self.page.rows or -1, *shape])

    def shape(self, value: Term, *dims: int | None) -> Term:
        """Set the static shape of a value, which TensorFlow cannot infer."""
        return tf.ensure_shape(value, [self.page.rows, *dims])

    def fix(self, value: Term, *dims: int | None) -> Term:
        """Set the static shape of a value if all batches have the same number of records."""
        return value if self.page.rows is None else self.shape(value, *dims)

    def define_constant(self, word: str, value: Any) -> Term:
        """Define a constant whose name ends with a word; return the term for it."""
        name = f"{self.variable.upper()}_{word}"
        return self.page.top.define_constant(self.page.names.take(name), value)

    def define_table(self, values: tuple[Entry, ...], first: int, unknown: int, *path: str) -> Term:
        """Define a lookup table from values to codes; return the term for it.

        `path`: path of the values in the JSON form of the transform.
        """
        names, top = self.page.names, self.page.top
        name = names.take(self.variable.upper())
        is_text = not isinstance(values[0], int)
        plain = _plain_texts(values) if is_text else list(values)
        source = None
        if len(values) > self.page.most_values and isinstance(plain[0], int | str):
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
        """Raise the error for a transform that has no equivalent in TensorFlow operations."""
        raise refuse_field(self.name, expected, got)


def refuse_field(name: str, expected: str, got: str) -> OptionError:
    """Return the error for a field that TensorFlow operations cannot produce."""
    return OptionError(
        f"field {name!r} as TensorFlow operations",
        field=name,
        expected=expected,
        got=got,
        advice="Use loader(…).to_tf(), which runs Penstock's own transforms, or leave the field out.",
    )


def _plain_texts(values: tuple[Entry, ...]) -> list[Any]:
    """Return the values as strings if all are valid text, else as stored bytes."""
    if all(
        isinstance(value, str) and value.encode("utf-8", "replace") == as_bytes(value) for value in values
    ):
        return list(values)
    return [as_bytes(value) for value in values]
