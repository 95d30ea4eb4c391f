"""Warnings about columns whose inferred type or role may not be what the user wants.

In: the profile of a column and the field that it becomes. Out: warnings for the plan, each with the option
that changes the decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from penstock.errors import shorten
from penstock.foundation.wording import argument, count, declare, list_texts, show
from penstock.plan.profile import ColumnProfile, DateMixture, NumberStyle, TextProfile
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import DATE_LIMITS, Date, show_date
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.schema.notation import DATE_MEANINGS
from penstock.schema.scalar import Bytes, Category, Number, Text
from penstock.schema.value_kind import MAX_FEW_CLASSES, MIN_NAMED_ROWS, has_key_name

MAX_FEW_NUMBERS: Final = 20
MIN_ROWS_PER_NUMBER: Final = 100
"""At most this many distinct whole numbers, each in at least this many rows on average, may be codes."""

MIN_ROWS_PER_CODE: Final = 20
MIN_ROWS_PER_NAMED_CODE: Final = 3
"""Rows per distinct number that are enough without a 0, which counts usually contain, and in a column whose
name suggests codes."""

MIN_UNIQUE_ROWS: Final = 1_000
"""Whole numbers that are all distinct in this many rows are more often keys than quantities."""

MAX_MISFITS: Final = 3
"""Up to this many distinct texts among numbers are more likely markers of missing values than real values."""

_STYLE_WARNINGS: Final[Mapping[NumberStyle, str]] = {
    "currency": "numbers with a currency sign, such as {example}, are kept as text. "
    "To get numbers, remove the sign and any thousands separators from the data.",
    "percent": "numbers with a percent sign, such as {example}, are kept as text. "
    "To get numbers, remove the sign from the data.",
    "grouped": "numbers with separators that may be those of thousands or of decimals, such as {example}, "
    "are kept as text. Use {separators} to read them as numbers.",
    "comma": "numbers with a decimal comma, such as {example}, are kept as text. "
    "Some are written in another way; if not, use `decimal=','` to read them as numbers.",
}

_MIXTURES: Final[Mapping[DateMixture, str]] = {
    "zones": "some times have a time zone and others have none, so the column is kept as text. "
    "Use {dates} to read the others as UTC.",
    "times": "some dates have a time of day and others have none, so the column is kept as text. "
    "Use {dates} to read the others as midnight.",
}

_LONG_NAME: Final = 100  # of a column; longer names are shortened
_FLOAT32_WHOLE: Final = 2**24
_CODE_NAME: Final = re.compile(
    r"(?i)(.*[^a-z])?(code|type|kind|class|category|group|label|status|level|zone|region)[0-9]*"
)


def list_warnings(
    column: str, profile: ColumnProfile, field: Field, form: Representation, *, is_declared: bool = False
) -> tuple[str, ...]:
    """Return warnings about a column, the most serious first."""
    if not profile.num_present:
        return _shorten_name(_warn_empty(column, profile, field), column)
    warnings = [
        *_warn_leakage(column, profile, field),
        *_warn_use(column, profile, field),
        *_warn_markers(column, profile),
        *_warn_format(column, profile, field),
        *_warn_date(column, profile, field, form),
        *_warn_number(column, profile, field, is_declared=is_declared),
        *_warn_text(column, profile, field),
        *_warn_items(column, profile, field),
        *(() if is_declared else _warn_bytes(column, profile, field)),
    ]
    if 2 * profile.num_missing > profile.num_rows:
        warnings.append(f"missing in {profile.num_missing} of {profile.num_rows} rows.")
    return tuple(warnings) if len(column) <= _LONG_NAME else _shorten_name(warnings, column)


def _shorten_name(warnings: Iterable[str], column: str) -> tuple[str, ...]:
    """Return the warnings; in the options that they advise, a name that is too long to read is shortened."""
    return tuple(warning.replace(column, shorten(column)) for warning in warnings)


def _warn_empty(column: str, profile: ColumnProfile, field: Field) -> Iterator[str]:
    if profile.num_rows and isinstance(field, Text):
        yield (
            f"no value in the first {count(profile.num_rows, 'row')}, so text is assumed. "
            f"Declare another type, for example {declare(column, 'Number()')}, or leave it out with "
            f"{argument('drop', [column])}."
        )


def _warn_leakage(column: str, profile: ColumnProfile, field: Field) -> Iterator[str]:
    if field.role == "input":
        for target in profile.determines:
            yield (
                f"possible target leakage: its values determine the target {show(target)}. Unless it is "
                f"known at prediction time, leave it out with {argument('drop', [column])}."
            )


def _warn_use(column: str, profile: ColumnProfile, field: Field) -> Iterator[str]:
    is_constant = profile.num_distinct == 1 and profile.num_rows > 1 and not profile.num_nan
    if is_constant and field.role == "target":
        yield (
            "constant target: all rows have the same value, so there is nothing to predict. "
            "Choose another target with `target=NAME`."
        )
    elif is_constant and field.role == "input":
        drop = argument("drop", [column])
        yield f"constant column: all rows have the same value. Leave it out with {drop}."
    elif field.role == "input" and _is_key(column, profile):
        yield (
            "all values are distinct, so it may be an identifier, which a model can only memorize. "
            f"Mark it with {argument('id', column)} or leave it out with {argument('drop', [column])}."
        )


def _is_key(column: str, profile: ColumnProfile) -> bool:
    if not profile.is_unique:
        return False
    if profile.reads_as == "text":
        text = profile.text  # texts that are nearly all numbers get another warning
        return text is not None and text.mean_words == 1 and not text.num_image_names and not text.num_tried
    if profile.reads_as != "int":
        return False
    return profile.num_present >= MIN_UNIQUE_ROWS or (
        profile.num_present >= MIN_NAMED_ROWS and (profile.is_counter or has_key_name(column))
    )


def _warn_markers(column: str, profile: ColumnProfile) -> Iterator[str]:
    if profile.unlabelled:
        words, num_rows = list_texts(profile.unlabelled), sum(profile.unlabelled.values())
        counts = "counts" if len(profile.unlabelled) == 1 else "count"
        yield (
            f"{words} in {num_rows} of {profile.num_rows} rows of this target {counts} as missing. To keep "
            f"them as classes: {declare(column, 'Category()')}."
        )
    if profile.markers:
        others = "dates" if profile.reads_as in ("date", "time") else "numbers"
        words, num_rows = list_texts(profile.markers), sum(profile.markers.values())
        counts, them = ("counts", "it") if len(profile.markers) == 1 else ("count", "them")
        yield (
            f"{words} in {num_rows} of {profile.num_rows} rows {counts} as missing, because all others "
            f"are {others}. Use {declare(column, 'Text()')} to keep {them} as text."
        )


def _warn_format(column: str, profile: ColumnProfile, field: Field) -> Iterator[str]:
    text = profile.text
    if text is None or text.numbers is None or text.example is None:
        return
    if not isinstance(field, Number) and not (isinstance(field, Category) and field.dtype == "int64"):
        return
    parts = []
    if text.numbers.decimal == "," and "," in text.example:
        parts.append("a decimal comma")
    if not parts or (text.numbers.thousands or " ") in text.example:
        parts.append(f"the thousands separator {text.numbers.thousands!r}")
    yield (
        f"numbers such as {show(text.example)} are read with {' and '.join(parts)}. "
        f"Use {declare(column, 'Text()')} to keep them as text."
    )


def _warn_order(text: TextProfile) -> Iterator[str]:
    """Yield why dates that are not in ISO 8601 are kept as text."""
    example = show(text.date_example)
    if len(text.date_orders) == 1 and text.reads_as is None:
        order = text.date_orders[0]
        yield (
            f"dates such as {example} have {DATE_MEANINGS[order]}, which is not the declared order, and are "
            f"kept as text. Use {argument('date_order', order)} to read them."
        )
    elif text.reads_as is None:
        yield (
            f"dates such as {example} may have the day or the month first, and are kept as text. Use "
            "`date_order='dmy'` if the day is first, or `date_order='mdy'` if the month is."
        )


def _warn_date(column: str, profile: ColumnProfile, field: Field, form: Representation) -> Iterator[str]:
    text, is_text = profile.text, field.type_name in ("text", "category")
    # isinstance() of an abstract class is slow for tables of 100,000 columns.
    if type(field) is Date or form in ("date", "time"):
        if type(field) is Date and profile.reads_as in ("int", "float"):
            yield from _warn_counts(profile, field)
        if profile.reads_as == "time" and _have_zones(profile):
            yield "times with a time zone are converted to UTC."
        if profile.date_order is not None and text is not None and text.date_example:
            example, order = show(text.date_example), DATE_MEANINGS[profile.date_order]
            kept = f"Use {declare(column, 'Text()')} to keep them as text."
            yield f"dates such as {example} are read with {order}. {kept}"
    elif is_text and text is not None and text.date_mixture:
        yield _MIXTURES[text.date_mixture].format(dates=declare(column, "Date('microseconds')"))
    elif is_text and text is not None and text.date_orders:
        yield from _warn_order(text)
    elif is_text and text is not None and text.are_other_dates:
        yield (
            "dates in a format that is not recognized are kept as text. "
            "Use ISO 8601, such as 2024-01-31 or 2024-01-31T12:00:00, or years of four digits in one order."
        )
    elif profile.reads_as == "int" and _are_plain_dates(profile):
        yield (
            f"whole numbers from {profile.low} to {profile.high} look like dates but are read as numbers. "
            "Write dates as 2024-01-31."
        )


def _warn_counts(profile: ColumnProfile, field: Date) -> Iterator[str]:
    """Show which dates whole numbers are: they may count seconds, or be written as 20240131."""
    low, high = profile.low, profile.high
    if low is None or high is None:
        return
    first, last = DATE_LIMITS[field.unit]
    is_shown = first <= low <= high <= last
    dates = f"{show_date(low, field.unit)} to {show_date(high, field.unit)}" if is_shown else "no dates"
    advice = " Write dates as 2024-01-31." if _are_plain_dates(profile) else ""
    yield (
        f"whole numbers from {low:.16g} to {high:.16g} are read as {field.unit} since 1970-01-01: {dates}."
        f"{advice}"
    )


def _have_zones(profile: ColumnProfile) -> bool:
    return "tz=" in profile.type_text or (profile.text is not None and profile.text.has_zone)


def _are_plain_dates(profile: ColumnProfile) -> bool:
    low, high = profile.low, profile.high
    if low is None or high is None or not 19000101 <= low <= high <= 21001231:
        return False
    return all(1 <= bound // 100 % 100 <= 12 and 1 <= bound % 100 <= 31 for bound in (low, high))


def _warn_number(column: str, profile: ColumnProfile, field: Field, *, is_declared: bool) -> Iterator[str]:
    if profile.text is not None:
        yield from _warn_digits(column, profile.text, field)
    if profile.reads_as not in ("int", "float"):
        return
    if profile.kind == "int" and isinstance(profile.high, int) and profile.high >= 2**63:
        yield (
            f"values up to {profile.high} exceed the range of int64, so the conversion will stop at them. "
            f"Use {declare(column, 'Text()')} to keep them as text."
        )
    if profile.num_nan:
        yield (
            f"{profile.num_nan} of {profile.num_rows} values are NaN and are kept as NaN, "
            "so a loss computed from them is NaN."
        )
    if isinstance(field, Number):
        yield from _warn_amount(column, profile, field)
    elif isinstance(field, Category) and field.role == "input" and not is_declared and profile.is_whole:
        yield (
            f"{profile.num_distinct} distinct whole numbers are read as codes because of the name of the "
            f"column. Use {declare(column, 'Number()')} if they are quantities."
        )
    elif (
        isinstance(field, Category)
        and field.role == "target"
        and (profile.num_distinct or 0) > MAX_FEW_CLASSES
    ):
        yield (
            f"read as {profile.num_distinct} classes. "
            f"Use {declare(column, 'Number()')} if the values are quantities to predict by regression."
        )


def _warn_digits(column: str, text: TextProfile, field: Field) -> Iterator[str]:
    if text.num_leading_zeros:
        if isinstance(field, Number):
            yield (
                f"{count(text.num_leading_zeros, 'value')} with leading zeros, which are lost in a number. "
                f"Use {declare(column, 'Text()')} if the values are codes."
            )
        else:
            yield (
                "values with leading zeros are probably codes, so the column is kept as text. "
                f"Use {declare(column, 'Number()')} to read numbers."
            )
    if not text.num_beyond_int64:
        return
    numbers = f"{count(text.num_beyond_int64, 'whole number')} outside the range of int64"
    if isinstance(field, Number) and field.dtype == "int64":
        kept = declare(column, "Text()")
        yield f"{numbers}: the conversion will stop there. Use {kept} to keep them as text."
    elif not isinstance(field, Number):
        yield (
            f"{numbers}, so the column is kept as text. To get numbers rounded to 16 digits, "
            "write 'type: number, dtype: float64' in a plan file."
        )


def _warn_amount(column: str, profile: ColumnProfile, field: Number) -> Iterator[str]:
    low, high, distinct = profile.low, profile.high, profile.num_distinct or 0
    if low is None or high is None:
        return
    if field.dtype == "float32" and profile.is_whole and max(-low, high) > _FLOAT32_WHOLE:
        yield (
            f"whole numbers up to {high:.0f}: float32 is not exact above {_FLOAT32_WHOLE}. "
            "Use Number('float64') to keep them exact."
        )
    if field.role == "input" and profile.reads_as == "int" and low >= 0 and _may_be_codes(column, profile):
        codes = declare(column, "Category('int64')")
        yield f"only {distinct} distinct whole numbers. Use {codes} if they are codes."
    elif field.role == "target" and profile.is_whole and 2 < distinct <= 1_000:
        classes = declare(column, "Category('int64')")
        yield (f"{distinct} distinct whole numbers, read as quantities. Use {classes} if they are classes.")


def _may_be_codes(column: str, profile: ColumnProfile) -> bool:
    distinct = profile.num_distinct or 0
    if not 2 < distinct <= MAX_FEW_NUMBERS:
        return False
    enough = MIN_ROWS_PER_NUMBER if profile.low == 0 else MIN_ROWS_PER_CODE
    if _CODE_NAME.fullmatch(column):
        enough = MIN_ROWS_PER_NAMED_CODE
    return profile.num_present >= enough * distinct


def _warn_text(column: str, profile: ColumnProfile, field: Field) -> Iterator[str]:
    text = profile.text
    if text is None or profile.kind != "text" or profile.reads_as != "text":
        return
    is_text = type(field) not in (Number, Date)
    if is_text and not text.num_beyond_int64 and not text.num_leading_zeros:
        yield from _warn_misfits(column, text)
    if 0 < text.num_image_names < profile.num_present and field.type_name != "image":
        yield (
            f"{text.num_image_names} of {profile.num_present} texts are names of image files, but not "
            f"{show(text.misfit)}. Use `missing=('', TEXT)` if that marks a missing value, or "
            f"{declare(column, 'Image()')}."
        )
    elif text.num_refused and field.type_name != "image":
        yield (
            f"names of image files, but {text.num_refused} of the first {text.num_sought} are not in the "
            "folder of the table, and were not read. Use `files_from=[URL]` if the table may read them."
        )
    elif text.num_image_names and field.type_name != "image":
        yield (
            f"names of image files, but none of the first {text.num_sought} files was found. "
            f"Put the files next to the source and use {declare(column, 'Image()')}."
        )
    distinct = profile.num_distinct
    if isinstance(field, Text) and distinct and 2 * distinct <= profile.num_present and text.mean_words < 3:
        mean = f"{profile.num_present / distinct:.0f}"
        yield (
            f"{distinct} distinct texts, each in {mean} rows on average. "
            f"Use {declare(column, 'Category()')} if they are categories."
        )


def _warn_misfits(column: str, text: TextProfile) -> Iterator[str]:
    """Yield why texts that are mostly numbers or dates are kept as text, and how to read them as such."""
    num_words = text.num_tried - text.num_markers
    if text.style is not None and 10 * (text.num_numbers + text.num_styled) >= 9 * num_words > 0:
        example = show(text.misfit)
        if text.style == "spaced":
            yield (
                f"numbers surrounded by white space, such as {example}, are kept as text. "
                f"Use {declare(column, 'Number()')} to read them as numbers."
            )
        else:
            separator = next((each for each in ",' " if each in (text.misfit or "")), ",")
            yield _STYLE_WARNINGS[text.style].format(
                example=example,
                separators="`thousands=','` or `decimal=','`"
                if separator == ","
                else argument("thousands", separator),
            )
    elif text.misfits and _are_few_misfits(text, num_words):
        words = argument("missing", ("", *text.misfits))
        more = "" if text.num_misfits == len(text.misfits) else " and so on"
        number, kind = (text.num_dates, "dates") if text.num_dates else (text.num_numbers, "numbers")
        yield (
            f"{number} of {text.num_tried} texts are {kind}, but not {list_texts(text.misfits)}, "
            f"so the column is kept as text. Use {words}{more} if they mark missing values."
        )


def _are_few_misfits(text: TextProfile, num_words: int) -> bool:
    number = text.num_numbers or text.num_dates
    if not number:
        return False
    return 10 * number >= 9 * num_words or (text.num_misfits <= MAX_MISFITS and 2 * number >= num_words)


def _warn_bytes(column: str, profile: ColumnProfile, field: Field) -> Iterator[str]:
    if profile.is_decoded:
        yield f"byte strings in UTF-8 are read as text. Use {declare(column, 'Bytes()')} to keep bytes."
    elif isinstance(field, Bytes) and field.role == "input":
        num_images = sum(number for name, number in profile.formats.items() if name != "unknown")
        images = (
            f" ({num_images} of the first {sum(profile.formats.values())} are images)" if num_images else ""
        )
        yield (
            f"byte strings that are neither UTF-8 text nor images{images} cannot be an input of a model. "
            f"Use {declare(column, 'Text()')}, {declare(column, 'Image()')} or {argument('drop', [column])}."
        )


def _warn_items(column: str, profile: ColumnProfile, field: Field) -> Iterator[str]:
    items = profile.items
    if items is None:
        return
    is_pixels = isinstance(field, Tensor) and field.dtype == "uint8" and field.shape[2:] in ((1,), (3,), (4,))
    if is_pixels:
        image = declare(column, "Image()")
        yield f"arrays that may be pixels. Use {image} to store them as PNG, lossless and smaller."
    if isinstance(field, Sequence) and items.dtype == "uint8" and profile.kind == "list" and items.step != ():
        image = declare(column, "Image()")
        yield f"arrays of different sizes. Use {image} if they are pixels of grayscale images."
    if (
        isinstance(field, Sequence)
        and items.shape is not None
        and items.max_len > 1
        and items.dtype != "string"
    ):
        dims = "x".join(map(str, items.shape))
        tensor = declare(column, f"Tensor({items.shape}, {items.dtype!r})")
        yield f"all values seen have the shape {dims}. Use {tensor} if all rows have it."
