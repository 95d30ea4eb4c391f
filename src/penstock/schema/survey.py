"""A survey of records: the counts that a schema is inferred from.

In: the dict of counts that the core returns. Out: `Survey`, with one `FieldSurvey` per feature and one
`ListSurvey` per feature list.
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
        key: Key in the records.
        total: Number of surveyed records, with or without the feature; for steps, the number of steps.
        kinds: Number of records by kind of list; only kinds that occur.
        num_unset: Number of records that have the key without a list.
        min_len: Minimum number of values in a list.
        max_len: Maximum number of values in a list.
        int_values: Distinct ints, sorted, or None if there are more than the core keeps.
        int_min: Smallest int; 0 if there are none.
        int_max: Largest int; 0 if there are none.
        num_distinct: Number of distinct ints or byte strings; estimated if there are more than 4096.
        mean_words: Average number of words of the first byte strings.
        num_bytes_values: Number of byte strings.
        min_bytes: Length of the shortest byte string.
        max_bytes: Length of the longest byte string.
        num_utf8: Number of byte strings that are UTF-8 without control characters.
        formats: Number of byte strings that begin like an image, by format; only formats that occur.
        strings: Distinct byte strings, sorted, or None if they are more or longer than the core keeps.
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
    int_min: int = 0
    int_max: int = 0
    num_distinct: int = 0
    mean_words: float = 0.0

    @classmethod
    def from_counts(cls, key: str, counts: Mapping[str, Any], total: int) -> FieldSurvey:
        """Make a survey of one feature from the core's counts."""
        ints, strings = counts["int_values"], counts["strings"]
        listed = [len(values) for values in (ints, strings) if values is not None]
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
            int_min=counts["int_min"],
            int_max=counts["int_max"],
            num_distinct=counts["distinct"] or max(listed, default=0),
            mean_words=counts["mean_words"],
        )

    @property
    def records(self) -> int:
        """Number of records with the feature."""
        return sum(self.kinds.values())

    @property
    def missing(self) -> int:
        """Number of records without the feature: without the key, or without a list."""
        return self.total - self.records

    @property
    def kind(self) -> KindFound | None:
        """Kind of list, `mixed` if there are several, None if there is none."""
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
        key: Key in the records.
        total: Number of surveyed records, with or without the list.
        records: Number of records with the list.
        min_steps: Minimum number of steps in a record with the list.
        max_steps: Maximum number of steps in a record with the list.
        steps: Counts over all steps.
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
        """Number of records without the list."""
        return self.total - self.records


@dataclass(frozen=True)
class Survey:
    """Counts over the records of some files.

    Attributes:
        records: Number of surveyed payloads.
        unparsable: Number of payloads that are not a protobuf message.
        featureless: Number of non-empty messages without any feature or feature list.
        empty: Number of empty payloads: Examples without features.
        with_lists: Number of payloads with feature lists.
        fields: Features by key, in the order of their first occurrence.
        lists: Feature lists by key, in the order of their first occurrence.
        is_sample: Whether there are more records than were surveyed; those may lack any field.
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
        # A payload that is not a message is an error with any schema; it does not make all fields optional.
        total = counts["records"] - counts["unparsable"]
        fields = {key: FieldSurvey.from_counts(key, c, total) for key, c in counts["fields"].items()}
        lists = {key: ListSurvey.from_counts(key, c, total) for key, c in counts["lists"].items()}
        # The core also reports keys of payloads that turned out not to be messages; these have no counts.
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
        """Kind of the records.

        It is `other` if fewer than one record in ten has a feature: other bytes may parse by accident, and
        some damaged Examples do not change the kind of the rest. ELWC records parse as SequenceExamples by
        accident, and count as such.
        """
        if not self.records:
            return "empty"
        carrying = self.records - self.unparsable - self.featureless - self.empty
        if 10 * carrying < self.records - self.empty:
            return "other"
        return "sequence_example" if self.with_lists else "example"
