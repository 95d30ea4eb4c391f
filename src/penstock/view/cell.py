"""Values of records as cells of a page: short texts, small charts, and pictures.

In: a value of a sample and its field. Out: a `Cell`, which templates draw, or a PNG file of limited size.
Texts are cut here and escaped by the templates; pictures are decoded and drawn again, never sent as stored,
and an image is refused by its header before its pixels take memory.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from penstock.decode.pixels import PixelError
from penstock.decode.sample import describe_bytes, show_number
from penstock.decode.thumbnail import decode_small, draw_array
from penstock.foundation.wording import count
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date, show_time
from penstock.schema.field import Field
from penstock.schema.picture import is_picture_shape, read_picture
from penstock.schema.scalar import Bytes, Category, Image, Number, Text

Kind: TypeAlias = Literal["missing", "number", "text", "image", "chart", "list", "bytes"]

SHORT_CHARS: Final = 280
"""Characters of a text on a page of several records."""

LONG_CHARS: Final = 20_000
"""Characters of a text on the page of one record."""

CHART_WIDTH, CHART_HEIGHT = 120, 32
"""Size of a small chart, in the units of its drawing."""

_CHART_POINTS: Final = 120
_CHART_LINES: Final = 4
_SHORT_ITEMS: Final = 12
_LONG_ITEMS: Final = 400
_HEAD_BYTES: Final = 24
_MARGIN: Final = 2.0
# Characters that a page would not show, or that end a line: as the symbols that Unicode has for them.
_CONTROLS: Final = {code: 0x2400 + code for code in range(32) if code not in (9, 10, 13)} | {0x7F: 0x2421}
SIZES: Final = {"small": 224, "large": 1024}
"""Longest side in pixels, by the name of the size."""

MAX_PIXELS: Final = {"png": 20_000_000, "gif": 12_500_000, "webp": 12_500_000}
"""Most pixels by format: decoding takes up to 11 bytes per pixel of PNG, and 15 of GIF and WebP."""

_PNG_LEVEL: Final = 3


class Line(NamedTuple):
    """A line of a chart: its points, as SVG has them, and its number, which gives the colour."""

    points: str
    number: int


@dataclass(frozen=True)
class Cell:
    """A value, prepared for display.

    Attributes:
        kind: How it is drawn.
        text: Its text, or the text beside a chart or picture.
        is_cut: Whether the text has more characters or items.
        lines: Lines of a chart.
        width: Width of a picture in pixels, as stored.
        height: Height of a picture in pixels, as stored.
    """

    kind: Kind
    text: str = ""
    is_cut: bool = False
    lines: tuple[Line, ...] = ()
    width: int = 0
    height: int = 0


MISSING: Final = Cell("missing")


def make_cell(field: Field, value: Any, *, is_long: bool = False) -> Cell:
    """Return the cell of a value.

    `value`: the value, as in a sample; None if the record lacks it. `is_long`: whether to show as much as the
    page of a single record does.
    """
    return MISSING if value is None else CELLS[type(field)](field, value, is_long)


def show_text(text: str, most: int) -> tuple[str, bool]:
    """Return the beginning of a text without control characters, and whether it was cut."""
    return text[:most].translate(_CONTROLS), len(text) > most


def is_picture(field: Field) -> bool:
    """Whether the values of a field are drawn as pictures: images, and arrays with two sides."""
    return is_picture_shape(field.shape) if isinstance(field, Tensor) else isinstance(field, Image)


def _make_number(_: Field, value: Any, __: bool) -> Cell:
    return Cell("number", show_number(value))


def _make_date(_: Field, value: np.datetime64, __: bool) -> Cell:
    return Cell("number", show_time(value))


def _make_text(_: Field, value: Any, is_long: bool) -> Cell:
    if isinstance(value, int | np.integer):
        return Cell("number", str(int(value)))
    if isinstance(value, bytes):  # not UTF-8
        return _make_bytes(_, value, is_long)
    return Cell("text", *show_text(value, LONG_CHARS if is_long else SHORT_CHARS))


def _make_image(_: Field, value: bytes, __: bool) -> Cell:
    picture = read_picture(value)
    if picture is None or not picture.width:
        return Cell("bytes", f"not an image, {len(value):,} bytes: {value[:_HEAD_BYTES].hex(' ')}")
    return Cell("image", describe_bytes(value), width=picture.width, height=picture.height)


def _make_bytes(_: Field, value: bytes, __: bool) -> Cell:
    head = value[:_HEAD_BYTES].hex(" ")
    return Cell("bytes", f"{len(value):,} bytes: {head}", len(value) > _HEAD_BYTES)


def _make_sequence(field: Sequence, value: Any, is_long: bool) -> Cell:
    if isinstance(value, np.ndarray):
        return _make_chart(value, is_long)
    if field.dtype in ("string", "bytes") or not value:
        return _make_list(value, is_long)
    lengths = {len(step) for step in value}
    if len(lengths) == 1 and lengths != {0}:
        return _make_chart(np.stack(value), is_long)
    return _make_list(value, is_long)


def _make_list(items: Any, is_long: bool) -> Cell:
    most = _LONG_ITEMS if is_long else _SHORT_ITEMS
    shown = [_show_item(item) for item in items[:most]]
    text = f"{count(len(items), 'value')}: {', '.join(shown)}" if len(items) else "empty list"
    cut, is_cut = show_text(text, LONG_CHARS if is_long else SHORT_CHARS)
    return Cell("list", cut, is_cut or len(items) > most)


def _show_item(item: Any) -> str:
    if isinstance(item, bytes):
        return f"<{item[:_HEAD_BYTES].hex()}{'…' if len(item) > _HEAD_BYTES else ''}>"
    if isinstance(item, str):
        return item if len(item) <= SHORT_CHARS else f"{item[:SHORT_CHARS]}…"
    if isinstance(item, list | np.ndarray):
        inner = [_show_item(each) for each in item[:_SHORT_ITEMS]]
        return f"[{', '.join(inner)}{', …' if len(item) > _SHORT_ITEMS else ''}]"
    return show_number(item)


def _make_tensor(field: Tensor, value: NDArray[Any], is_long: bool) -> Cell:
    if is_picture(field):
        height, width = field.shape[:2]
        text = f"{' × '.join(map(str, field.shape))} {field.dtype}"
        return Cell("image", text, width=width, height=height)
    if value.ndim == 0:
        return Cell("number", show_number(value.item()))
    return _make_chart(value.reshape(-1), is_long)


def _make_chart(values: NDArray[Any], is_long: bool) -> Cell:
    flat = values.reshape(len(values), -1) if len(values) else values.reshape(0, 1)
    steps = count(len(values), "value" if values.ndim == 1 else "step")
    if values.ndim > 1:
        steps += f" of {count(flat.shape[1], 'value')}"
    most = _LONG_ITEMS if is_long else _SHORT_ITEMS
    shown = ", ".join(_show_item(item) for item in values[:most].tolist())
    text = f"{steps}: {shown}" if len(values) else "empty list"
    cut, is_cut = show_text(text, LONG_CHARS if is_long else SHORT_CHARS)
    lines = draw_lines(flat[:, :_CHART_LINES]) if len(values) > 1 else ()
    return Cell("chart" if lines else "list", cut, is_cut or len(values) > most, lines)


def draw_lines(values: NDArray[Any]) -> tuple[Line, ...]:
    """Return the lines of a chart of (steps, lines); of many steps, the means of neighbours.

    Steps that are not finite are left out; there is no line without finite steps.
    """
    if len(values) > _CHART_POINTS:
        edges = np.linspace(0, len(values), _CHART_POINTS + 1).astype(np.int64)
        with np.errstate(all="ignore"):
            values = np.stack([values[a:b].mean(axis=0, dtype=np.float64) for a, b in pairwise(edges)])
    values = values.astype(np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ()
    low, high = float(finite.min()), float(finite.max())
    span = high - low if math.isfinite(high - low) else 0.0
    room = CHART_HEIGHT - 2 * _MARGIN
    step = (CHART_WIDTH - 2 * _MARGIN) / max(1, len(values) - 1)
    lines = []
    for number, column in enumerate(values.T):
        points = [
            f"{_MARGIN + at * step:.1f},"
            f"{CHART_HEIGHT - _MARGIN - ((value - low) / span if span else 0.5) * room:.1f}"
            for at, value in enumerate(column.tolist())
            if math.isfinite(value)
        ]
        if points:
            lines.append(Line(" ".join(points), number))
    return tuple(lines)


# How the values of each type of field are shown.
CELLS: Final[dict[type[Field], Callable[[Any, Any, bool], Cell]]] = {
    Number: _make_number,
    Category: _make_text,
    Date: _make_date,
    Text: _make_text,
    Image: _make_image,
    Bytes: _make_bytes,
    Sequence: _make_sequence,
    Tensor: _make_tensor,
}


def draw_picture(field: Field, value: Any, size: str) -> bytes:
    """Return a value as a PNG file.

    `size`: "small" or "large".
    """
    if not is_picture(field):
        raise PixelError("a field with pictures", f"a {field.type_name}")
    if isinstance(field, Image):
        _check_pixels(value)
        pixels = decode_small(value, SIZES[size])
    else:
        pixels = draw_array(np.asarray(value), SIZES[size])
    file = io.BytesIO()
    PillowImage.fromarray(pixels).save(file, "PNG", compress_level=_PNG_LEVEL)
    return file.getvalue()


def _check_pixels(value: bytes) -> None:
    found = read_picture(value)
    most = None if found is None else MAX_PIXELS.get(found.format)
    if found is None or most is None or found.width * found.height <= most:
        return  # `decode_small` has a separate limit
    raise PixelError(f"a {found.format} of at most {most:,} pixels", f"{found.width} x {found.height}")
