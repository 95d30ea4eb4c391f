"""Parts of HTML for notebooks: escaped text, tables, curves, and errors in place of a display.

In: texts, rows of cells and numbers, which may come from files. Out: `Html`, small and without scripts. Only
`Html` is inserted as it is; all other text is escaped. No colour of background or text is set, so that
light and dark notebooks can both be read.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeGuard

from penstock.foundation.terminal import escape

MAX_ROWS: Final = 40
"""Number of rows of a table that are shown."""

MAX_CHARS: Final = 160
"""Number of characters of a text that are shown."""

_MAX_POINTS: Final = 200  # of a curve
_WIDTH, _HEIGHT = 280, 110  # of the area of curves
_LEFT, _TOP, _BOTTOM = 52, 6, 18
_COLORS: Final = ("#3b82f6", "#e8710a", "#16a34a", "#a855f7", "#db2777", "#0891b2")  # on white and on black
_FAINT: Final = "opacity:.65"


class Html(str):
    """Text that is HTML already; everything in it that comes from data has been escaped."""

    __slots__ = ()


def escape_html(value: object, max_chars: int = MAX_CHARS) -> Html:
    r"""Return a value as text for a page: cut, without control characters, escaped.

    Example:
        >>> escape_html("<b>\x00")
        '&lt;b&gt;\\x00'
    """
    if isinstance(value, Html):
        return value
    text = str(value)
    if len(text) > max_chars:
        text = f"{text[: max_chars - 1]}…"
    return Html(html.escape(escape(text)))


def make_block(title: object, *parts: Html) -> Html:
    """Return a title and the parts below it, as one block that scrolls if it is too wide."""
    body = "".join(parts)
    return Html(f'<div style="overflow-x:auto"><div><b>{escape_html(title)}</b></div>{body}</div>')


def make_line(text: object, *, is_faint: bool = False) -> Html:
    """Return a line of text."""
    style = f' style="{_FAINT}"' if is_faint else ""
    return Html(f"<div{style}>{escape_html(text, 4 * MAX_CHARS)}</div>")


def make_table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    right: Collection[int] = (),
    num_rows: int | None = None,
) -> Html:
    """Return a table of at most `MAX_ROWS` rows, and a line with the number of the others.

    `rows`: cells of each row: `Html`, or anything else as escaped text. No more rows than are shown are taken
    from it. `right`: numbers of the columns that are aligned to the right. `num_rows`: number of all rows; by
    default the length of `rows`.
    """
    total = num_rows if num_rows is not None else len(rows) if isinstance(rows, Sequence) else 0
    shown = [cells for _, cells in zip(range(MAX_ROWS), rows, strict=False)]
    lines = [_make_row("th", header, right), *(_make_row("td", cells, right) for cells in shown)]
    more = make_line(f"… {total - len(shown):,} more", is_faint=True) if total > len(shown) else ""
    return Html(f"<table>{''.join(lines)}</table>{more}")


def _make_row(tag: str, cells: Sequence[object], right: Collection[int]) -> str:
    parts = [
        f'<{tag} style="text-align:{"right" if at in right else "left"};vertical-align:top">'
        f"{escape_html(cell)}</{tag}>"
        for at, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(parts)}</tr>"


def make_picture(uri: str, description: str) -> Html:
    """Return a picture whose bytes are in its data URI."""
    label = escape_html(description)
    return Html(
        f'<img src="{html.escape(uri)}" alt="{label}" title="{label}" style="min-height:48px;max-width:100%">'
    )


def make_grid(cells: Iterable[Html]) -> Html:
    """Return blocks beside each other, in as many columns as there is room for."""
    style = "padding:.4em;border:1px solid rgba(128,128,128,.4);border-radius:4px;max-width:18em"
    boxes = "".join(f'<div style="{style};overflow:hidden">{cell}</div>' for cell in cells)
    return Html(f'<div style="display:flex;flex-wrap:wrap;gap:.5em;margin:.4em 0">{boxes}</div>')


def draw_curves(title: str, curves: Mapping[str, Sequence[float | None]]) -> Html:
    """Draw curves over the numbers 1, 2, … as SVG, with a legend.

    `curves`: values by name of the curve; those that are None or not finite interrupt it.
    """
    chosen = dict(list(curves.items())[: len(_COLORS)])
    finite = [each for values in chosen.values() for each in values if _is_drawable(each)]
    if not finite:
        return make_line(f"{title}: no finite values", is_faint=True)
    low, high = min(finite), max(finite)
    length = max(len(values) for values in chosen.values())
    paths = [
        f'<path d="{_trace(values, length, low, high)}" fill="none" stroke="{color}" stroke-width="1.8" '
        f'stroke-linejoin="round" stroke-linecap="round"/>'
        for values, color in zip(chosen.values(), _COLORS, strict=False)
    ]
    legend = " ".join(
        f'<span style="white-space:nowrap"><span style="color:{color}">&#9632;</span> '
        f"{escape_html(name, 40)}</span>"
        for name, color in zip(chosen, _COLORS, strict=False)
    )
    bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    axes = f"M{_LEFT} {_TOP}V{bottom}H{right}"
    labels = [
        _label(_LEFT - 4, _TOP + 9, "end", f"{high:.4g}"),
        *([_label(_LEFT - 4, bottom, "end", f"{low:.4g}")] if high > low else []),
        _label(_LEFT, bottom + 13, "start", "1"),
        *([_label(right, bottom + 13, "end", f"{length}")] if length > 1 else []),
    ]
    label = escape_html(f"{title}: from {low:.4g} to {high:.4g}")
    return Html(
        f'<div style="display:inline-block;margin:.3em 1.2em .3em 0"><div>{escape_html(title, 60)}</div>'
        f'<svg role="img" aria-label="{label}" width="{right + 6}" height="{bottom + _BOTTOM}" '
        f'viewBox="0 0 {right + 6} {bottom + _BOTTOM}">'
        f'<path d="{axes}" fill="none" stroke="currentColor" stroke-opacity=".35"/>'
        f"{''.join(labels)}{''.join(paths)}</svg><div>{legend}</div></div>"
    )


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="10" fill="currentColor" '
        f'fill-opacity=".75">{html.escape(text)}</text>'
    )


def _trace(values: Sequence[float | None], length: int, low: float, high: float) -> str:
    """Return the path of a curve; of many values, some at even distances and the last one."""
    step = max(1, -(-length // _MAX_POINTS))
    chosen = sorted({*range(0, len(values), step), len(values) - 1} - {-1})
    half = high / 2 - low / 2  # halves: the distance of two doubles may not be a double
    parts, is_open = [], False
    for at in chosen:
        value = values[at]
        if not _is_drawable(value):
            is_open = False
            continue
        share = 0.5 if half == 0 else (value / 2 - low / 2) / half
        x = _LEFT + (_WIDTH * at / (length - 1) if length > 1 else _WIDTH / 2)
        parts.append(f"{'L' if is_open else 'M'}{x:.1f} {_TOP + _HEIGHT * (1 - share):.1f}")
        if not is_open:
            parts.append("h0")  # a single value is a dot
        is_open = True
    return "".join(parts)


def _is_drawable(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def display_safely(owner: str, draw: Callable[[], str]) -> str:
    """Return the HTML that a function draws; if it fails, the name of the owner and the error instead.

    A notebook hides an object whose display raises behind a traceback, so a damaged file or a folder that
    no longer exists must not make a display fail.
    """
    try:
        return str(draw())
    except Exception as error:
        return str(make_block(owner, make_line(f"{type(error).__name__}: {error}")))
