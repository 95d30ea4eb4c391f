"""Samples as people see them: a text table in a terminal, a grid with thumbnails in a notebook.

In: samples and their schema; errors in place of samples that cannot be read. Out: text, or HTML of limited
size. Nothing here raises because of a value, and the work does not grow with the length of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from penstock.decode.sample import Sample, show_value
from penstock.errors import importing
from penstock.foundation.html import (
    Html,
    display_safely,
    escape_html,
    make_block,
    make_grid,
    make_line,
    make_picture,
)
from penstock.foundation.terminal import escape, format_table, shorten
from penstock.foundation.wording import count
from penstock.schema.picture import read_picture
from penstock.schema.schema import Schema

MAX_SHOWN: Final = 8
"""Number of samples that the display of a split shows."""

MAX_FIELDS: Final = 12
"""Number of fields of a sample that are shown."""

_MAX_CARDS: Final = 24
_MAX_PICTURES: Final = 24
_LONGEST_SIDE: Final = 96  # of a thumbnail
_MAX_PICTURE_CHARS: Final = 300_000  # of all data URIs of a display
_MAX_IMAGE_PIXELS: Final = 30_000_000  # of all images that are decoded for a display
_JPEG_COST: Final = 0.25  # of a pixel: large ones are decoded at a part of their size
_MAX_TEXT_CHARS: Final = 120
_MAX_CELL_CHARS: Final = 24  # of a text table
_MAX_COLUMNS: Final = 8
_PICTURES: Final = ("image", "tensor")


class SampleList(list[Sample]):
    """A list of samples that is shown as a table in a terminal, and as a grid in a notebook.

    Attributes:
        schema: Schema of the samples.
    """

    def __init__(self, samples: Iterable[Sample], schema: Schema) -> None:
        super().__init__(samples)
        self.schema = schema

    def __repr__(self) -> str:
        names = choose_fields(self.schema)[:_MAX_COLUMNS]
        rows = [
            [str(at), *(shorten(escape(show_value(sample.get(name))), _MAX_CELL_CHARS) for name in names)]
            for at, sample in enumerate(self[:_MAX_CARDS])
        ]
        header = ["", *(shorten(escape(name), _MAX_CELL_CHARS) for name in names)]
        lines = format_table(header, rows)
        more = [f"… {count(len(self) - len(rows), 'more sample')}"] if len(self) > len(rows) else []
        hidden = len(self.schema) - len(names)
        more += [f"… {count(hidden, 'more field')}"] if hidden > 0 else []
        return "\n".join([*lines, *more])

    def _repr_html_(self) -> str:
        title = count(len(self), "sample")
        return display_safely(
            title, lambda: make_block(title, draw_samples(self.schema, enumerate(self), len(self)))
        )


def choose_fields(schema: Schema) -> list[str]:
    """Return the names of the fields in the order of their display: targets, pictures, other fields."""

    def rank(name: str) -> int:
        field = schema[name]
        return 0 if field.role == "target" else 1 if field.type_name in _PICTURES else 2

    return sorted(schema, key=rank)


def draw_samples(
    schema: Schema, found: Iterable[tuple[int, Sample | Exception]], num_samples: int, most: int = _MAX_CARDS
) -> Html:
    """Return samples as a grid of cards.

    `found`: number and sample of each record; an error in place of one that cannot be read. `most`: maximum
    number of cards. No more samples are taken from `found`.
    """
    names = choose_fields(schema)
    pictures = Thumbnails(_LONGEST_SIDE, _MAX_PICTURES, _MAX_PICTURE_CHARS, _MAX_IMAGE_PIXELS)
    cards = [
        _draw_card(number, sample, names, schema, pictures)
        for _, (number, sample) in zip(range(most), found, strict=False)
    ]
    left = num_samples - len(cards)
    more = make_line(f"… {left:,} more", is_faint=True) if left > 0 else Html()
    notes = Html("".join(make_line(note, is_faint=True) for note in pictures.notes))
    return Html(make_grid(cards) + more + notes) if cards else make_line("no records", is_faint=True)


def _draw_card(
    number: int, sample: Sample | Exception, names: Sequence[str], schema: Schema, pictures: Thumbnails
) -> Html:
    lines = [make_line(f"record {number:,}", is_faint=True)]
    if isinstance(sample, Exception):
        lines.append(make_line(f"{type(sample).__name__}: {sample}"))
        return Html("".join(lines))
    for name in names[:MAX_FIELDS]:
        value = sample.get(name)
        text = show_value(value, _MAX_TEXT_CHARS)
        if schema[name].type_name in _PICTURES and (uri := pictures.make(value)) is not None:
            lines.append(make_picture(uri, f"{name}: {text}"))
            continue
        shown = escape_html(text, _MAX_TEXT_CHARS)
        lines.append(Html(f"<div><b>{escape_html(name, 40)}</b> {shown}</div>"))
    if len(names) > MAX_FIELDS:
        lines.append(make_line(f"… {count(len(names) - MAX_FIELDS, 'more field')}", is_faint=True))
    return Html("".join(lines))


class Thumbnails:
    """Thumbnails of one display or page, limited in number, size and decoded pixels.

    Args:
        longest_side: Longest side of a thumbnail, in pixels.
        max_pictures: Maximum number of thumbnails.
        max_chars: Maximum number of characters of all data URIs.
        max_pixels: Maximum number of pixels of all images that are decoded.

    Attributes:
        notes: Packages whose absence leaves pictures out, as sentences, each once.
    """

    def __init__(self, longest_side: int, max_pictures: int, max_chars: int, max_pixels: int) -> None:
        self._longest_side = longest_side
        self._num_left = max_pictures
        self._chars_left = max_chars
        self._pixels_left = float(max_pixels)
        self.notes: list[str] = []

    def make(self, value: Any) -> str | None:
        """Return the data URI of a value; None if it is not a picture, or there are enough of them."""
        pixels = 0.0
        if isinstance(value, bytes):
            picture = read_picture(value)
            if picture is None:
                return None
            pixels = picture.width * picture.height * (_JPEG_COST if picture.format == "jpeg" else 1)
        if not self._num_left or pixels > self._pixels_left:
            return None
        try:
            with importing("a thumbnail", "images"):
                from penstock.decode.thumbnail import make_thumbnail  # noqa: PLC0415 - Pillow

                uri = make_thumbnail(value, self._longest_side)
        except ImportError as error:
            note = f"Some pictures are left out: {error}"
            if note not in self.notes:
                self.notes.append(note)
            return None
        except (ValueError, OSError):
            return None
        self._pixels_left -= pixels
        if uri is None or len(uri) > self._chars_left:
            return None
        self._num_left -= 1
        self._chars_left -= len(uri)
        return uri
