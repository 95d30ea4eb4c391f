"""What was counted in the records of some files: the evidence that a schema is inferred from.

In: the plain dict of counts that the core returns. Out: `Survey`, with one `FieldSurvey` a feature and one
`ListSurvey` a feature list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from penstock.columns import Kind, Payload
from penstock.schema.scalar import ImageFormat

KindFound: TypeAlias = Literal["int64", "float", "bytes", "mixed"]

_KINDS: tuple[Kind, ...] = get_args(Kind)
_FORMATS: tuple[ImageFormat, ...] = get_args(ImageFormat)


@dataclass(frozen=True)
class FieldSurvey:
    """Counts of one feature over records, or of the steps of one feature list.

    Attributes:
        key: The key in the records.
        total: Records looked at, whether or not they carry the feature; for steps, all steps.
        kinds: How many of them carry each kind of list; kinds that none carries are left out.
        num_unset: How many have the key with no kind set.
        min_len: Fewest values where a kind is set.
        max_len: Most values where a kind is set.
        int_values: The distinct ints, sorted, or None where they are more than the core keeps.
        num_bytes_values: How many byte strings there are.
        min_bytes: Length of the shortest of them.
        max_bytes: Length of the longest of them.
        num_utf8: How many of them are UTF-8 without control characters.
        formats: How many of them begin as an image of each format; formats that none has are left out.
        strings: The distinct byte strings, sorted, or None where they are more or longer than the core keeps.
    """

    key: str
    total: int
    kinds: Mapping[Kind, int]
    num_unset: int
    min_len: int
    max_len: int
    int_values: tuple[int, ...] | None
    num_bytes_values: int
    min_bytes: int
    max_bytes: int
    num_utf8: int
    formats: Mapping[ImageFormat, int]
    strings: tuple[bytes, ...] | None

    @classmethod
    def from_counts(cls, key: str, counts: Mapping[str, Any], total: int) -> FieldSurvey:
        """Make a survey of one feature from the core's counts."""
        ints, strings = counts["int_values"], counts["strings"]
        return cls(
            key=key,
            total=total,
            kinds={kind: counts[kind] for kind in _KINDS if counts[kind]},
            num_unset=counts["unset"],
            min_len=counts["min_len"],
            max_len=counts["max_len"],
            int_values=None if ints is None else tuple(sorted(ints)),
            num_bytes_values=counts["num_values"],
            min_bytes=counts["min_bytes"],
            max_bytes=counts["max_bytes"],
            num_utf8=counts["utf8"],
            formats={name: counts[name] for name in _FORMATS if counts[name]},
            strings=None if strings is None else tuple(sorted(strings)),
        )

    @property
    def records(self) -> int:
        """How many carry the feature with a kind."""
        return sum(self.kinds.values())

    @property
    def missing(self) -> int:
        """How many lack the feature: no key, or no kind set."""
        return self.total - self.records

    @property
    def kind(self) -> KindFound | None:
        """The one kind found, `mixed` where there are several, None where it is never set."""
        if len(self.kinds) > 1:
            return "mixed"
        return next(iter(self.kinds), None)

    @property
    def has_fixed_len(self) -> bool:
        """Whether every list has the same number of values."""
        return self.min_len == self.max_len

    @property
    def is_text(self) -> bool:
        """Whether there are byte strings, and all are UTF-8 without control characters."""
        return 0 < self.num_bytes_values == self.num_utf8


@dataclass(frozen=True)
class ListSurvey:
    """Counts of one feature list of SequenceExamples.

    Attributes:
        key: The key in the records.
        total: Records looked at, whether or not they carry the list.
        records: How many carry it.
        min_steps: Fewest steps of a record that carries it.
        max_steps: Most steps of a record that carries it.
        steps: The counts over all steps.
    """

    key: str
    total: int
    records: int
    min_steps: int
    max_steps: int
    steps: FieldSurvey

    @classmethod
    def from_counts(cls, key: str, counts: Mapping[str, Any], total: int) -> ListSurvey:
        """Make a survey of one feature list from the core's counts."""
        num_steps = sum(counts[kind] for kind in _KINDS) + counts["unset"]
        return cls(
            key=key,
            total=total,
            records=counts["records"],
            min_steps=counts["min_steps"],
            max_steps=counts["max_steps"],
            steps=FieldSurvey.from_counts(key, counts, num_steps),
        )

    @property
    def missing(self) -> int:
        """How many records lack the list."""
        return self.total - self.records


@dataclass(frozen=True)
class Survey:
    """Counts over the records of some files.

    Attributes:
        records: Sound payloads looked at.
        unparsable: Those that are no message.
        featureless: Those that are a message, not an empty one, without any feature or feature list.
        empty: Those of no bytes: Examples without features.
        with_lists: Those that carry feature lists.
        fields: By key, in the order first seen.
        lists: By key, in the order first seen.
        is_sample: Whether there are more records than were looked at, which may lack any field.
    """

    records: int
    unparsable: int
    featureless: int
    empty: int
    with_lists: int
    fields: Mapping[str, FieldSurvey]
    lists: Mapping[str, ListSurvey]
    is_sample: bool = False

    @classmethod
    def from_counts(cls, counts: Mapping[str, Any], *, is_sample: bool = False) -> Survey:
        """Make a survey from the dict of counts that the core returns."""
        # A payload that is no message fails whatever the schema says; it does not make every field optional.
        total = counts["records"] - counts["unparsable"]
        fields = {key: FieldSurvey.from_counts(key, c, total) for key, c in counts["fields"].items()}
        lists = {key: ListSurvey.from_counts(key, c, total) for key, c in counts["lists"].items()}
        # The core knows the keys of records that proved to be no message, too; they were never counted.
        return cls(
            records=counts["records"],
            unparsable=counts["unparsable"],
            featureless=counts["featureless"],
            empty=counts["empty"],
            with_lists=counts["with_lists"],
            fields={key: field for key, field in fields.items() if field.records or field.num_unset},
            lists={key: entry for key, entry in lists.items() if entry.records},
            is_sample=is_sample,
        )

    @property
    def payload(self) -> Payload:
        """What the records are.

        `other` is for records of which fewer than one in ten carries a feature: bytes of something else may
        parse by accident, and some damaged Examples do not make the others something else. ELWC records
        parse as SequenceExamples by accident, and are taken as such.
        """
        if not self.records:
            return "empty"
        carrying = self.records - self.unparsable - self.featureless - self.empty
        if 10 * carrying < self.records - self.empty:
            return "other"
        return "sequence_example" if self.with_lists else "example"
