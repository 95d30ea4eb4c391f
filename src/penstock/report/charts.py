"""Charts as SVG inside the page, drawn by matplotlib, in colours that the style sheet of the page decides.

In: numbers and labels. Out: `Markup`. matplotlib draws with placeholder colours, which become CSS variables,
so that one chart serves light, dark and print. What a browser does not need is removed: 2 to 5 KB per chart.
"""

from __future__ import annotations

import io
import math
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, ScalarFormatter

from penstock.score.evaluation import format_date

NUM_COLORS: Final = 8
"""Number of colours in the style sheet; more series repeat them."""

NUM_DASHES: Final = 4
"""Number of kinds of lines, solid and dashed; more series repeat them."""

Numbers: TypeAlias = Sequence[float | None]
Series: TypeAlias = Mapping[str, tuple[Numbers, Numbers]]

_DASHES: Final = ("-", (0, (4, 4)), (0, (1.3, 2.7)), (0, (7, 2, 1.3, 2)))  # equal curves show in gaps
_TEXT: Final = "#0a0c00"
_GRID: Final = "#0a0c01"
QUIET: Final = "#0a0c02"
"""Colour of lines between blocks."""
COLORS: Final = tuple(f"#0a0b{number:02x}" for number in range(NUM_COLORS))
"""Colours of series, which the style sheet decides."""
_VARIABLES: Final = {
    _TEXT: "currentColor",
    _GRID: "var(--grid)",
    QUIET: "var(--quiet)",
    **{color: f"var(--c{number})" for number, color in enumerate(COLORS)},
}
_SETTINGS: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "penstock",
    "text.parse_math": False,  # a name of a column is not a formula
    "axes.unicode_minus": True,
    "font.size": 10,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _TEXT,
    "xtick.major.pad": 6,  # below the label of the vertical axis at the origin
    "xtick.color": _GRID,
    "xtick.labelcolor": _TEXT,
    "ytick.color": _GRID,
    "ytick.labelcolor": _TEXT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "axes.formatter.limits": (-4, 300),  # large numbers have a separate formatter
    "axes.formatter.useoffset": False,
}
_WIDTH: Final = 4.4  # inches of 72 pixels: the text of a card is about as wide
_LINES: Final = 3.6  # narrower, as four may be in a row
_SQUARE: Final = 3.4
_MOST_CHARS: Final = 22
_LARGE_TICK: Final = 1e4
_LARGEST_UNIT: Final = 1e10
_LARGEST: Final = 1e290  # margins and ticks of larger numbers overflow
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_SPACE: Final = "{http://www.w3.org/2000/svg}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"


def draw_histogram(
    edges: Numbers, counts: Mapping[str, Sequence[int]], title: str, x_label: str = "", dates: str = "value"
) -> Markup:
    """Draw the shares of the values of each split: the first one filled, the others as lines.

    `title`: description of the chart for those who cannot see it. `dates`: "date" or "time" for numbers that
    are shown as such.
    """
    known = [_keep_drawable(each) for each in edges]
    if any(math.isnan(each) for each in known):
        return Markup("")
    with start_figure(_WIDTH, 1.7) as (figure, axes):
        for number, each in enumerate(counts.values()):
            total = sum(each)
            if not total:
                continue
            heights = [one / total for one in each]
            color = COLORS[number % NUM_COLORS]
            if number == 0:
                axes.stairs(heights, known, fill=True, color=color, alpha=0.45)
            else:
                axes.stairs(heights, known, color=color, linewidth=1.4, linestyle=_choose_dash(number - 1))
        axes.set_ylim(bottom=0)
        axes.grid(visible=False, axis="x")
        if dates in ("date", "time"):
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.xaxis.set_major_formatter(lambda value, _: (format_date(value, dates) or "")[:10])
        elif all((each - 0.5).is_integer() for each in known):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(_format_share)
        _label(axes, x_label)
        return finish_figure(figure, title)


def draw_bars(
    labels: Sequence[object], series: Mapping[str, Numbers], title: str, *, is_share: bool = False
) -> Markup:
    """Draw horizontal bars, one group per label and one bar per series; undefined numbers have none."""
    height = 0.4 + len(labels) * (0.11 + 0.09 * max(1, len(series)))
    with start_figure(_WIDTH, height) as (figure, axes):
        thickness = 0.8 / max(1, len(series))
        for number, values in enumerate(series.values()):
            places = [at + (number - (len(series) - 1) / 2) * thickness for at in range(len(labels))]
            axes.barh(
                places,
                [_keep_drawable(each) for each in values],
                thickness * 0.92,
                color=COLORS[number % NUM_COLORS],
            )
        axes.set_yticks(range(len(labels)), [_shorten(each) for each in labels])
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        if is_share:
            axes.xaxis.set_major_formatter(_format_share)
        return finish_figure(figure, title)


def draw_lines(
    series: Series,
    title: str,
    *,
    x_label: str = "",
    y_label: str = "",
    is_square: bool = False,
    diagonal: bool = False,
    markers: bool = False,
) -> Markup:
    """Draw lines, each with different dashes; undefined numbers interrupt them.

    `title`: description of the chart for those who cannot see it. `is_square`: whether both axes go from 0 to
    1. `diagonal`: whether to draw the diagonal from (0, 0) to (1, 1).
    """
    with start_figure(*((_SQUARE, 2.8) if is_square else (_LINES, 1.9))) as (figure, axes):
        if diagonal:
            axes.plot([0, 1], [0, 1], color=_GRID, linewidth=1.2, linestyle=(0, (4, 3)))
        for number, (x, y) in enumerate(series.values()):
            points = [(_keep_drawable(a), _keep_drawable(b)) for a, b in zip(x, y, strict=True)]
            marker = "o" if markers or len(points) == 1 else None
            axes.plot(
                *zip(*points, strict=True),
                color=COLORS[number % NUM_COLORS],
                linestyle=_choose_dash(number),
                linewidth=1.6 if number else 2.4,
                marker=marker,
                markersize=3.5,
            )
        if is_square:
            axes.set_xlim(-0.01, 1.01)
            axes.set_ylim(-0.01, 1.01)
        elif all(isinstance(each, int) for x, _ in series.values() for each in x):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _label(axes, x_label, y_label)
        return finish_figure(figure, title)


def draw_points(x: Numbers, y: Numbers, title: str, *, x_label: str, y_label: str) -> Markup:
    """Draw points, and the line on which both numbers are equal."""
    with start_figure(_SQUARE, 2.9) as (figure, axes):
        numbers = [each for each in map(_keep_drawable, (*x, *y)) if not math.isnan(each)]
        ends = [min(numbers, default=0.0), max(numbers, default=1.0)]
        axes.plot(ends, ends, color=_GRID, linewidth=1.2, linestyle=(0, (4, 3)))
        pairs = [(_keep_drawable(a), _keep_drawable(b)) for a, b in zip(x, y, strict=True)]
        if pairs:
            axes.plot(
                *zip(*pairs, strict=True), "o", color=COLORS[0], markersize=3, markeredgewidth=0, alpha=0.5
            )
        _label(axes, x_label, y_label)
        return finish_figure(figure, title)


def draw_heat(matrix: Sequence[Sequence[int]], title: str) -> Markup:
    """Draw a matrix of counts as squares, each row relative to its sum."""
    color = (0.15, 0.45, 0.75)  # inside a picture, so that it cannot follow the style sheet
    shares = [[each / max(1, sum(row)) for each in row] for row in matrix]
    with start_figure(_SQUARE, 3.0) as (figure, axes):
        axes.imshow(
            [[(*color, share**0.6) for share in row] for row in shares],
            interpolation="nearest",
            aspect="auto",
        )
        axes.grid(visible=False)
        _label(axes, "predicted class", "true class")
        return finish_figure(figure, title)


def draw_spark(numbers: Numbers, title: str) -> Markup:
    """Draw the numbers of a sequence as a small line without axes."""
    with start_figure(2.2, 0.45) as (figure, axes):
        axes.plot([_keep_drawable(each) for each in numbers], color=COLORS[0], linewidth=1.2)
        axes.set_axis_off()
        figure.subplots_adjust(0.02, 0.08, 0.98, 0.92)
        return finish_figure(figure, title, has_layout=False)


@contextmanager
def start_figure(width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes; nothing of matplotlib's own state changes."""
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # Of characters that its font lacks: the browser has others.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(width, height), dpi=72, facecolor="none")
        axes = figure.add_subplot(facecolor="none")
        yield figure, axes


def _choose_dash(number: int) -> Any:
    return _DASHES[number % NUM_DASHES]


def _keep_drawable(value: float | None) -> float:
    """Return a number; NaN, which matplotlib leaves out, for None and for numbers that it cannot draw."""
    return math.nan if value is None or abs(value) > _LARGEST else value


def _format_share(value: float, _: object = None) -> str:
    return f"{100 * value:.3g} %"


def _label(axes: Any, x_label: str, y_label: str = "") -> None:
    if x_label:
        axes.set_xlabel(_shorten(x_label, 2 * _MOST_CHARS))
    if y_label:
        axes.set_ylabel(_shorten(y_label, 2 * _MOST_CHARS))


def _shorten(value: object, most: int = _MOST_CHARS) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shorten_ticks(figure: Any) -> None:
    """Label axes with large numbers as 20 k or 1.5 M, rather than with a power of ten at their end."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ends = max(map(abs, axis.get_view_interval()))
            if ends >= _LARGE_TICK and isinstance(axis.get_major_formatter(), ScalarFormatter):
                axis.set_major_formatter(EngFormatter() if ends < _LARGEST_UNIT else "{x:.3g}")


def finish_figure(figure: Any, title: str, *, has_layout: bool = True) -> Markup:
    """Return the figure as SVG for a page.

    `figure`: the figure that `start_figure` made. `title`: description of the figure for those who cannot see
    it. `has_layout`: whether to fit the axes and their labels into the figure.
    """
    _shorten_ticks(figure)
    if has_layout:
        figure.tight_layout(pad=0.4)
    text = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(text, metadata=nothing)  # `savefig` would draw it twice
    root = ElementTree.fromstring(text.getvalue())  # noqa: S314 - matplotlib has just written it
    _reduce(root)
    prefix = f"c{zlib.crc32(f'{title}{text.getvalue()}'.encode()):08x}"
    _rename(root, prefix)
    body = "".join(ElementTree.tostring(each, "unicode") for each in root)
    label = escape(title)
    return Markup(  # noqa: S704 - the label is escaped, and the body was serialized as XML
        f'<svg class="chart" role="img" aria-label="{label}" viewBox="{root.get("viewBox")}">{body}</svg>'
    )


def _reduce(element: ElementTree.Element) -> None:
    """Remove what a page does not need: namespaces, groups, clip paths, invisible paths, digits."""
    kept: list[ElementTree.Element] = []
    for child in list(element):
        child.tag = child.tag.removeprefix(_SPACE)
        child.tail = None
        if child.tag in ("metadata", "clipPath", "style") or child.get("style") == "fill: none":
            continue
        if child.tag != "text":
            child.text = None
        _reduce(child)
        _tidy(child)
        if child.tag == "g" and not set(child.attrib) - {"id"}:
            kept += list(child)
        elif child.tag != "defs" or len(child):
            kept.append(child)
    element[:] = kept


def _tidy(element: ElementTree.Element) -> None:
    given = element.attrib
    given.pop("clip-path", None)
    if element.tag != "path":
        given.pop("id", None)
    if _LINK in given:
        given["href"] = given.pop(_LINK)
    if given.get("transform", "").startswith("rotate(-0 "):
        del given["transform"]
    for name in ("d", "x", "y", "transform", "width", "height"):
        if name in given:
            rounded = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), given[name])
            given[name] = " ".join(rounded.split())
    if "style" in given:
        given["style"] = _tidy_style(given["style"], element.tag)


def _tidy_style(style: str, tag: str) -> str:
    rules = dict(rule.strip().split(": ", 1) for rule in style.split(";") if ": " in rule)
    for name in ("font-family", "font", "stroke-linejoin", "stroke-linecap", "stroke-miterlimit"):
        rules.pop(name, None)
    if tag == "text":
        rules.setdefault("fill", _TEXT)
    return "; ".join(f"{name}: {_VARIABLES.get(value, value)}" for name, value in rules.items())


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Make the ids of markers unique in the page, and remove ids that nothing refers to."""
    used = {each.get("href", "")[1:] for each in root.iter("use")}
    names = {name: f"{prefix}{number}" for number, name in enumerate(sorted(used))}
    for each in root.iter():
        name = each.get("id")
        if name is not None and name not in used:
            del each.attrib["id"]
        elif name is not None:
            each.set("id", names[name])
    styles = {each.get("href", "")[1:]: each.get("style", "") for each in root.iter("use")}
    for each in root.iter("use"):
        name = each.get("href", "")[1:]
        each.set("href", f"#{names[name]}")
        if each.get("style") == styles[name]:
            del each.attrib["style"]  # the marker itself has it
    for each in root.iter("path"):
        for name, style in styles.items():
            if each.get("id") == names[name] and style:
                each.set("style", style)
