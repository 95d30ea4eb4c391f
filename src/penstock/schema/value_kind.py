"""What whole numbers and strings stand for: one set of rules, for raw columns and for TFRecords.

In: the name of a column or feature, and counts of its values. Out: "classes", "codes", "identifier", "index",
"quantity"; or "category", "identifier", "text". Pure decisions: no data is read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from penstock.schema.scalar import MAX_CATEGORIES

NumberKind: TypeAlias = Literal["classes", "codes", "identifier", "index", "quantity"]
"""What whole numbers are: classes to predict; codes without an order, such as postal codes; names of records;
numbers of rows; or amounts."""

StringKind: TypeAlias = Literal["category", "identifier", "text"]
"""What strings are: values of a category, names of records, or text."""

MAX_FEW_CLASSES: Final = 12
"""Up to this many whole numbers that are close together, such as stars from 1 to 5, or that occur often are
classes of a target. More of them are classes only if they are numbered from 0 without gaps, or if the name
suggests classes."""

MAX_CLASSES: Final = 100
"""Maximum number of whole numbers that are read as classes of a target without a hint from the name."""

MAX_NAMED_CLASSES: Final = 10_000
"""Maximum number of classes of a target whose name suggests classes, such as `label`."""

MIN_ROWS_PER_VALUE: Final = 10
"""Texts of several words that occur this often on average are categories; below that, repetition may be
chance."""

MIN_ROWS_PER_TOKEN: Final = 2
"""Strings of a single word, and codes, that occur this often on average are categories."""

MAX_SMALL_DOMAIN: Final = 20
"""Up to this many distinct texts are categories if each occurs twice on average: small tables have them
too."""

MAX_CATEGORY_WORDS: Final = 4.0
"""Names of categories are short: texts with more words on average are prose, however often they repeat."""

MAX_TOKEN_WORDS: Final = 1.05
"""Strings with at most this many words on average are single words, with rare exceptions."""

MIN_NAMED_ROWS: Final = 5
"""Distinct values in this many rows are identifiers, if the name of the column says so."""

MIN_INDEX_ROWS: Final = 1_000
"""Numbers of rows are recognized by their values alone in this many rows."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OWNER: Final = (
    "(?:account|article|artist|booking|case|client|contract|country|customer|device|document|employee|file|"
    "group|host|image|invoice|item|line|listing|member|merchant|movie|order|page|part|passenger|patient|person|"
    "phone|photo|policy|post|postal|product|record|region|row|sample|sequence|serial|session|shop|state|station|"
    "store|student|subject|ticket|track|transaction|user|vehicle|vendor|zip)"
)
_KEY: Final = re.compile(
    "id|key|pk|uuid|guid|sku|ean|upc|isbn|issn|asin|iban|ssn|zip|post(?:al)?code|plz|"
    f"{_OWNER}(?:id|no|nr|key|code|number|index|idx)"
)
"""Last word, or last two words, of the name of a key or of a code."""
_KEY_ALONE: Final = ("index", "idx", "no", "nr")
"""Whole names of keys; at the end of a longer name, they may be quantities: `heat_index`."""
_CLASS_NAME: Final = re.compile(r"(?i)(.*[^a-z])?(class|label|category|type|kind|code|status|species)[0-9]*")


@dataclass(frozen=True)
class ValueCounts:
    """Counts of the values of a column or feature.

    Attributes:
        num_values: Number of values.
        num_distinct: Number of distinct values, which may be estimated; None if nearly all are distinct.
        low: Smallest whole number; None for strings.
        high: Largest whole number; None for strings.
        mean_words: Average number of words of the strings.
    """

    num_values: int
    num_distinct: int | None
    low: int | float | None = None
    high: int | float | None = None
    mean_words: float = 1.0

    @property
    def are_distinct(self) -> bool:
        """Whether all values are distinct, or nearly all, as a count of distinct values may be estimated."""
        return self.num_values > 1 and (
            self.num_distinct is None or self.num_distinct >= 0.95 * self.num_values
        )

    def repeat(self, num_rows: int) -> bool:
        """Return whether each value occurs in at least so many rows on average."""
        return self.num_distinct is not None and num_rows * self.num_distinct <= self.num_values


def has_key_name(name: str) -> bool:
    """Return whether a name suggests codes or identifiers: `id`, `CustomerId`, `zip_code`, `article no`.

    Example:
        >>> [has_key_name(name) for name in ("RowNumber", "paid", "ring_number", "Unnamed: 0", "userid")]
        [True, False, False, True, True]
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[0] == "unnamed":  # pandas calls the index of a table without a name "Unnamed: 0"
        return bool(words) or not name.strip()
    if words[0] in _KEY_ALONE and len(words) == 1:
        return True
    return any(_KEY.fullmatch("".join(words[-number:])) for number in (1, 2))


def classify_numbers(name: str, counts: ValueCounts, *, is_target: bool) -> NumberKind:
    """Return the kind of a column of whole numbers.

    Example:
        >>> classify_numbers("stars", ValueCounts(900, 5, 1, 5), is_target=True)
        'classes'
        >>> classify_numbers("rings", ValueCounts(4177, 28, 1, 29), is_target=True)
        'quantity'
        >>> classify_numbers("zip_code", ValueCounts(9000, 800, 10115, 99998), is_target=False)
        'codes'
    """
    if is_target:
        return "classes" if _are_classes(name, counts) else "quantity"
    low, high = counts.low, counts.high
    if low is None or high is None or low < 0:
        return "quantity"
    is_named = has_key_name(name)
    enough = MIN_NAMED_ROWS if is_named else MIN_INDEX_ROWS
    # The rows of one split, of a half at least, have numbers up to twice their number. Without a name they
    # must begin at about 0: days and counters also rise by one, and are quantities.
    is_dense = high - low < 2 * counts.num_values and (is_named or low <= 0.01 * counts.num_values)
    if counts.are_distinct and counts.num_values >= enough and is_dense:
        return "index"
    if not is_named or counts.num_values < MIN_NAMED_ROWS:
        return "quantity"
    if counts.repeat(MIN_ROWS_PER_TOKEN) and (counts.num_distinct or 0) <= MAX_CATEGORIES:
        return "codes"
    return "identifier"


def classify_strings(name: str, counts: ValueCounts, *, is_target: bool) -> StringKind:
    """Return the kind of a column of strings.

    Example:
        >>> classify_strings("city", ValueCounts(20_000, 3_000), is_target=False)
        'category'
        >>> classify_strings("review", ValueCounts(20_000, 3_000, mean_words=9.0), is_target=False)
        'text'
    """
    distinct, words = counts.num_distinct, counts.mean_words
    is_token = words <= MAX_TOKEN_WORDS
    if distinct is not None and distinct <= MAX_CATEGORIES:
        if distinct == 1 < counts.num_values or (is_target and counts.repeat(2)):
            return "category"
        enough = MIN_ROWS_PER_TOKEN if is_token or distinct <= MAX_SMALL_DOMAIN else MIN_ROWS_PER_VALUE
        is_short = words <= MAX_CATEGORY_WORDS or distinct <= MAX_SMALL_DOMAIN
        if is_short and counts.repeat(enough):
            return "category"
    is_key = is_token and not is_target and counts.num_values >= MIN_NAMED_ROWS and has_key_name(name)
    return "identifier" if is_key else "text"


def _are_classes(name: str, counts: ValueCounts) -> bool:
    distinct, low, high = counts.num_distinct, counts.low, counts.high
    if distinct is None or low is None or high is None:
        return False
    if distinct <= 2:
        return True
    if not counts.repeat(2):
        return False
    if _CLASS_NAME.fullmatch(name) is not None:
        return distinct <= MAX_NAMED_CLASSES
    is_close, is_numbered = low >= -1 and high - low < 2 * distinct, low == 0 and high == distinct - 1
    if is_numbered:
        return distinct <= MAX_CLASSES
    return distinct <= MAX_FEW_CLASSES and (is_close or counts.repeat(MIN_ROWS_PER_VALUE))
