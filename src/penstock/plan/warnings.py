"""Where a person should look: what a column may be beside what it is taken for.

In: facts of a column and the field that it becomes. Out: warnings, one sentence each, with what to type.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from penstock.foundation.wording import count, list_texts, show
from penstock.plan.profile import ColumnFacts, NumberStyle, TextFacts
from penstock.schema.array import Sequence, Tensor
from penstock.schema.declaration import Form
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes, Category, Number, Text

MAX_FEW_NUMBERS: Final = 20
MIN_ROWS_PER_NUMBER: Final = 100
"""So few whole numbers that come back so often may be codes of something."""

MIN_ROWS_PER_CODE: Final = 20
MIN_ROWS_PER_NAMED_CODE: Final = 3
"""Fewer rows will do where there is no 0, as counts have it; fewer still where the name speaks of codes."""

MIN_UNIQUE_ROWS: Final = 1_000
"""Whole numbers of which none comes twice in so many rows are more often keys than amounts."""

MAX_MISFITS: Final = 3
"""So few different texts among numbers are more likely to mean a missing value than something else."""

_STYLE_DOUBTS: Final[Mapping[NumberStyle, str]] = {
    "currency": "amounts with a currency sign, such as {example}, are kept as text: "
    "remove the sign, and any thousands separators, to make it a column of numbers.",
    "percent": "numbers with a percent sign, such as {example}, are kept as text: "
    "remove the sign to make it a column of numbers.",
    "grouped": "numbers with thousands separators, such as {example}, are kept as text: "
    "remove the separators to make it a column of numbers.",
    "comma": "numbers with a decimal comma, such as {example}, are kept as text: "
    "write a decimal point to make it a column of numbers.",
}

_FLOAT32_WHOLE: Final = 2**24
_CODE_NAME: Final = re.compile(
    r"(?i)(.*[^a-z])?(code|type|kind|class|category|group|label|status|level|zone|region)[0-9]*"
)
_KEY_NAME: Final = re.compile(r"(?i).*(id|key|no|nr|num|number|index|code|uuid|guid)")


def list_doubts(
    column: str, facts: ColumnFacts, field: Field, form: Form, *, is_declared: bool = False
) -> tuple[str, ...]:
    """Return what a person should look at, the gravest first.

    Args:
        column: The name of the column.
        facts: What was found in it.
        field: What it becomes.
        form: How the column holds the field.
        is_declared: Whether the type of the field was declared, rather than guessed.
    """
    if not facts.num_present:
        return tuple(_doubt_empty(column, facts, field))
    doubts = [
        *_doubt_twin(column, facts, field),
        *_doubt_use(column, facts, field),
        *_doubt_markers(column, facts),
        *_doubt_date(facts, field, form),
        *_doubt_number(column, facts, field),
        *_doubt_text(column, facts, field),
        *_doubt_items(column, facts, field),
        *(() if is_declared else _doubt_bytes(column, facts, field)),
    ]
    if 2 * facts.num_missing > facts.num_rows:
        doubts.append(f"missing in {facts.num_missing} of {facts.num_rows} rows.")
    return tuple(doubts)


def _doubt_empty(column: str, facts: ColumnFacts, field: Field) -> Iterator[str]:
    if facts.num_rows and isinstance(field, Text):
        yield (
            f"no value in the first {count(facts.num_rows, 'row')}, so it is taken for texts: "
            f"'--number {column}' or the like if it is something else, or '--drop {column}'."
        )


def _doubt_twin(column: str, facts: ColumnFacts, field: Field) -> Iterator[str]:
    if field.role == "input":
        for target in facts.determines:
            yield (
                f"it gives the target {show(target)} away: a model would read the answer from it. "
                f"Is it known beforehand? Else '--drop {column}'."
            )


def _doubt_use(column: str, facts: ColumnFacts, field: Field) -> Iterator[str]:
    if field.role != "input" and not (field.role == "target" and facts.num_distinct == 1):
        return
    if facts.num_distinct == 1 and facts.num_rows > 1 and not facts.num_nan and field.role == "target":
        yield "one value in all rows, so there is nothing to predict: name another with '--target NAME'."
    elif facts.num_distinct == 1 and facts.num_rows > 1 and not facts.num_nan:
        yield f"one value in all rows: a model learns nothing from it. '--drop {column}'?"
    elif _is_key(column, facts):
        yield (
            "no value comes twice, so it may name the rows: a model learns nothing that lasts from it. "
            f"'--id {column}' or '--drop {column}'?"
        )


def _is_key(column: str, facts: ColumnFacts) -> bool:
    if not facts.is_unique:
        return False
    if facts.reads_as == "text":
        text = facts.text  # texts that are nearly all numbers have another warning
        return text is not None and text.mean_words == 1 and not text.num_image_names and not text.num_tried
    if facts.reads_as != "int":
        return False
    is_named = _KEY_NAME.fullmatch(column) is not None
    return facts.num_present >= MIN_UNIQUE_ROWS or (facts.num_present >= 5 and (facts.is_counter or is_named))


def _doubt_markers(column: str, facts: ColumnFacts) -> Iterator[str]:
    if facts.markers:
        others = "dates" if facts.reads_as in ("date", "time") else "numbers"
        words, num_rows = list_texts(facts.markers), sum(facts.markers.values())
        yield (
            f"{words} in {num_rows} of {facts.num_rows} rows is taken as missing, as all other values are "
            f"{others}: '--text {column}' keeps it."
        )


def _doubt_date(facts: ColumnFacts, field: Field, form: Form) -> Iterator[str]:
    if form in ("date", "time") and not facts.type_text.startswith(("time32", "time64", "duration")):
        unit = "days" if form == "date" else "microseconds"
        yield f"dates become {unit} since 1970-01-01: large numbers that show no season and no weekday."
    elif facts.text is not None and facts.text.are_other_dates and field.type_name in ("text", "category"):
        yield "dates in a form that is not read: only 2024-01-31 and 2024-01-31T12:00:00 are."
    elif facts.reads_as == "int" and _are_plain_dates(facts):
        yield f"whole numbers that look like dates, {facts.low} to {facts.high}: no amounts."


def _are_plain_dates(facts: ColumnFacts) -> bool:
    if facts.low is None or facts.high is None or not 19000101 <= facts.low <= facts.high <= 21001231:
        return False
    return all(1 <= bound // 100 % 100 <= 12 and 1 <= bound % 100 <= 31 for bound in (facts.low, facts.high))


def _doubt_number(column: str, facts: ColumnFacts, field: Field) -> Iterator[str]:
    if facts.text is not None:
        yield from _doubt_digits(column, facts.text, field)
    if facts.reads_as not in ("int", "float"):
        return
    if facts.kind == "int" and isinstance(facts.high, int) and facts.high >= 2**63:
        yield (
            f"up to {facts.high}, which 64 bits with a sign do not hold: the conversion will stop there. "
            f"'--text {column}' keeps them as they are."
        )
    if facts.num_nan:
        yield f"{facts.num_nan} of {facts.num_rows} are NaN, and stay NaN: a loss that meets one is NaN too."
    if isinstance(field, Number):
        yield from _doubt_amount(column, facts, field)
    elif (
        isinstance(field, Category) and field.role == "target" and (facts.num_distinct or 0) > MAX_FEW_NUMBERS
    ):
        yield f"{facts.num_distinct} classes, or amounts? '--number {column}' in that case."


def _doubt_digits(column: str, text: TextFacts, field: Field) -> Iterator[str]:
    if text.num_leading_zeros:
        if isinstance(field, Number):
            yield f"{text.num_leading_zeros} texts have leading zeros, which a number loses: is it a code?"
        else:
            yield f"leading zeros, as codes have them: kept as text. '--number {column}' makes numbers of it."
    if not text.num_beyond_int64:
        return
    numbers = f"{count(text.num_beyond_int64, 'whole number')} beyond 64 bits"
    if isinstance(field, Number) and field.dtype == "int64":
        yield f"{numbers}, where the conversion will stop: '--text {column}' keeps them as they are."
    elif not isinstance(field, Number):
        yield (
            f"{numbers}, so that it is kept as text. In a plan file, "
            "'type: number, dtype: float64' rounds them to 16 digits."
        )


def _doubt_amount(column: str, facts: ColumnFacts, field: Number) -> Iterator[str]:
    low, high, distinct = facts.low, facts.high, facts.num_distinct or 0
    if low is None or high is None:
        return
    if field.dtype == "float32" and facts.is_whole and max(-low, high) > _FLOAT32_WHOLE:
        yield (
            f"whole numbers up to {high:.0f}: float32 rounds those above {_FLOAT32_WHOLE}; "
            "Number('float64') keeps them."
        )
    if field.role == "input" and facts.reads_as == "int" and low >= 0 and _may_be_codes(column, facts):
        yield f"only {distinct} different whole numbers: '--category {column}' if they are codes."
    elif field.role == "target" and facts.is_whole and 2 < distinct <= 1_000 and low >= 0:
        yield f"{distinct} different whole numbers: '--category {column}' if they are classes, not amounts."


def _may_be_codes(column: str, facts: ColumnFacts) -> bool:
    distinct = facts.num_distinct or 0
    if not 2 < distinct <= MAX_FEW_NUMBERS:
        return False
    enough = MIN_ROWS_PER_NUMBER if facts.low == 0 else MIN_ROWS_PER_CODE
    if _CODE_NAME.fullmatch(column):
        enough = MIN_ROWS_PER_NAMED_CODE
    return facts.num_present >= enough * distinct


def _doubt_text(column: str, facts: ColumnFacts, field: Field) -> Iterator[str]:
    text = facts.text
    if text is None or facts.kind != "text" or facts.reads_as != "text":
        return
    if not isinstance(field, Number) and not text.num_beyond_int64 and not text.num_leading_zeros:
        yield from _doubt_misfits(column, text)
    if 0 < text.num_image_names < facts.num_present and field.type_name != "image":
        yield (
            f"{text.num_image_names} of {facts.num_present} texts name image files, but not "
            f"{show(text.misfit)}: '--missing' if that means a missing value, or '--image {column}'."
        )
    elif text.num_image_names and field.type_name != "image":
        yield (
            f"names of image files, but none of the first {text.num_sought} was found: "
            f"'--image {column}' where the files lie beside the source."
        )
    distinct = facts.num_distinct
    if isinstance(field, Text) and distinct and 2 * distinct <= facts.num_present and text.mean_words < 3:
        often = f"{facts.num_present / distinct:.0f} times on average"
        yield f"{distinct} different texts, each {often}: '--category {column}'?"


def _doubt_misfits(column: str, text: TextFacts) -> Iterator[str]:
    """Yield why texts that are mostly numbers are kept as text, and what makes numbers of them."""
    num_words = text.num_tried - text.num_markers
    if text.style is not None and 10 * (text.num_numbers + text.num_styled) >= 9 * num_words > 0:
        example = show(text.misfit)
        if text.style == "spaced":
            yield f"numbers with white space around them, such as {example}: '--number {column}' reads them."
        else:
            yield _STYLE_DOUBTS[text.style].format(example=example)
    elif text.misfits and text.num_numbers and _are_few_misfits(text, num_words):
        flags = " ".join(f"--missing {shlex.quote(word)}" for word in text.misfits)
        more = "" if text.num_misfits == len(text.misfits) else ", and so on,"
        yield (
            f"{text.num_numbers} of {text.num_tried} texts are numbers, but not {list_texts(text.misfits)}: "
            f"kept as text. '{flags}'{more} if that means a missing value."
        )


def _are_few_misfits(text: TextFacts, num_words: int) -> bool:
    if 10 * text.num_numbers >= 9 * num_words:
        return True
    return text.num_misfits <= MAX_MISFITS and 2 * text.num_numbers >= num_words


def _doubt_bytes(column: str, facts: ColumnFacts, field: Field) -> Iterator[str]:
    if facts.is_decoded:
        yield f"byte strings that are UTF-8, taken as text: '--bytes {column}' keeps them as bytes."
    elif isinstance(field, Bytes) and field.role == "input":
        num_images = sum(number for name, number in facts.formats.items() if name != "unknown")
        images = f"; {num_images} of the first {sum(facts.formats.values())} are images" if num_images else ""
        yield (
            f"byte strings that are neither text in UTF-8 nor images{images}: no input of a model. "
            f"'--text {column}' or '--image {column}' if they are meant to be that, or '--drop {column}'."
        )


def _doubt_items(column: str, facts: ColumnFacts, field: Field) -> Iterator[str]:
    items = facts.items
    if items is None:
        return
    is_pixels = isinstance(field, Tensor) and field.dtype == "uint8" and field.shape[2:] in ((1,), (3,), (4,))
    if is_pixels:
        yield f"may be pixels: '--image {column}' stores them as PNG, without loss and smaller."
    if isinstance(field, Sequence) and items.dtype == "uint8" and facts.kind == "list" and items.step != ():
        yield f"arrays of several sizes: '--image {column}' if they are pixels of gray images."
    if (
        isinstance(field, Sequence)
        and items.shape is not None
        and items.max_len > 1
        and items.dtype != "string"
    ):
        dims = "x".join(map(str, items.shape))
        yield f"all have the shape {dims}: '--tensor {column}' if that is so of all rows."
