"""The blocks of a model as a layered drawing: a column per rank, and an arrow from each block to its readers.

In: the ranks that `model_diagram.py` makes. Out: `Markup`. Arrows that pass over ranks have a separate
place in each column between, so that they cross no block. Columns are narrow: three fit the width of a phone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path

from penstock.foundation.terminal import display_width
from penstock.report import charts

MOST_ALIKE: Final = 12
"""Blocks of a rank with the same sources and readers; more of them are drawn as one."""
MOST_BLOCKS: Final = 120
"""Models with more blocks are not drawn, because so many arrows cannot be followed."""

_BOX: Final = 86.0  # units are pixels, before the page enlarges the drawing
_GAP: Final = 28.0
_LINE: Final = 12.0
_SPACE: Final = 9.0
_PASSING: Final = 6.0  # height of an arrow that passes
_MOST_CHARS: Final = 13
_MOST_LINES: Final = 3
_SWEEPS: Final = 4
_COLORS: Final = {"input": 2, "output": 1}
_UNREAD: Final = "unread"


class _Node:
    """A block, several like blocks, or the place where an arrow passes a column.

    Attributes:
        lines: Text of the box; none where an arrow passes.
        color: Colour of the box.
        is_read: Whether the model reads it; otherwise the box is dashed.
        y: Middle of the node.
    """

    def __init__(self, lines: Sequence[str] = (), kind: str = "layers") -> None:
        self.lines = lines
        self.is_read = kind != _UNREAD
        self.color = charts.COLORS[_COLORS.get(kind, 0)] if self.is_read else charts.QUIET
        self.y = 0.0

    @property
    def height(self) -> float:
        """Height of the box."""
        return len(self.lines) * _LINE + _SPACE if self.lines else _PASSING


def draw_model(ranks: Sequence[Sequence[Mapping[str, Any]]]) -> Markup:
    """Draw blocks and what each one reads; nothing for one block, and for more than `MOST_BLOCKS`.

    `ranks`: blocks by rank, with the numbers of the blocks that they read as `sources`.
    """
    columns, edges = _place_blocks(ranks)
    if not edges or sum(bool(node.lines) for column in columns for node in column) > MOST_BLOCKS:
        return Markup("")
    _order_columns(columns, edges)
    total = max(sum(node.height + _SPACE for node in column) for column in columns)
    for column in columns:
        y = (total - sum(node.height + _SPACE for node in column)) / 2
        for node in column:
            node.y = y + (node.height + _SPACE) / 2
            y += node.height + _SPACE
    width = len(columns) * (_BOX + _GAP) - _GAP + 2
    with charts.start_figure(width / 72, total / 72) as (figure, axes):
        axes.set_axis_off()
        axes.set_position((0, 0, 1, 1))
        axes.set_xlim(-1, width - 1)
        axes.set_ylim(total, 0)
        left = {id(node): at * (_BOX + _GAP) for at, column in enumerate(columns) for node in column}
        for source, target in edges:
            _draw_edge(axes, source, target, left[id(source)] + _BOX, left[id(target)])
        for column in columns:
            for node in column:
                _draw_node(axes, node, left[id(node)])
        drawing = charts.finish_figure(figure, _describe(ranks), has_layout=False)
    # Text of 10 to 16 pixels; a wide drawing scrolls on a phone.
    size = Markup("min-width: {:.0f}px; max-width: {:.0f}px; margin: auto").format(width, 1.6 * width)
    return Markup('<div style="{}">{}</div>').format(size, drawing)


def _place_blocks(
    ranks: Sequence[Sequence[Mapping[str, Any]]],
) -> tuple[list[list[_Node]], list[tuple[_Node, _Node]]]:
    """Return the nodes by column, and the edges between nodes of neighbouring columns."""
    readers: dict[int, set[int]] = {block["number"]: set() for rank in ranks for block in rank}
    for rank in ranks:
        for block in rank:
            for source in block["sources"]:
                readers[source].add(block["number"])
    columns: list[list[_Node]] = []
    nodes: dict[int, _Node] = {}
    places: dict[int, int] = {}
    for at, rank in enumerate(ranks):
        alike: dict[Any, list[Mapping[str, Any]]] = {}
        for block in rank:
            key = block["kind"], frozenset(block["sources"]), frozenset(readers[block["number"]])
            alike.setdefault(key, []).append(block)
        column = []
        for blocks in alike.values():
            num_shown = len(blocks) if len(blocks) <= MOST_ALIKE else MOST_ALIKE - 1
            kind = str(blocks[0]["kind"])
            found = [_Node(_wrap(f"{each['number']} {each['title']}"), kind) for each in blocks[:num_shown]]
            if num_shown < len(blocks):
                found.append(_Node(_wrap(f"and {len(blocks) - num_shown} more"), kind))
            for number, block in enumerate(blocks):
                nodes[block["number"]] = found[min(number, len(found) - 1)]
                places[block["number"]] = at
            column += found
        columns.append(column)
    edges: dict[tuple[int, int], tuple[_Node, _Node]] = {}
    passing: dict[tuple[int, int], _Node] = {}
    for source, targets in readers.items():
        for target in sorted(targets, key=lambda each: places[each]):
            node = nodes[source]
            for at in range(places[source] + 1, places[target]):
                # One arrow for all readers that are farther away.
                if (id(nodes[source]), at) not in passing:
                    passing[id(nodes[source]), at] = _Node()
                    columns[at].append(passing[id(nodes[source]), at])
                after = passing[id(nodes[source]), at]
                edges[id(node), id(after)] = node, after
                node = after
            edges[id(node), id(nodes[target])] = node, nodes[target]
    return columns, list(edges.values())


def _order_columns(columns: Sequence[list[_Node]], edges: Sequence[tuple[_Node, _Node]]) -> None:
    """Order each column by the mean place of the neighbours, to and fro, so that few arrows cross."""
    before: dict[int, list[_Node]] = {id(node): [] for column in columns for node in column}
    after: dict[int, list[_Node]] = {name: [] for name in before}
    for source, target in edges:
        after[id(source)].append(target)
        before[id(target)].append(source)
    place = {id(node): at / len(column) for column in columns for at, node in enumerate(column)}

    def find_mean(node: _Node, near: Mapping[int, list[_Node]]) -> float:
        places = [place[id(each)] for each in near[id(node)]]
        return sum(places) / len(places) if places else place[id(node)]

    for sweep in range(_SWEEPS):
        near = after if sweep % 2 else before
        for column in columns[::-1] if sweep % 2 else columns:
            means = {id(node): find_mean(node, near) for node in column}
            column.sort(key=lambda node: means[id(node)])
            place |= {id(node): at / len(column) for at, node in enumerate(column)}


def _draw_edge(axes: Any, source: _Node, target: _Node, start: float, stop: float) -> None:
    middle = (start + stop) / 2
    points = [(start, source.y), (middle, source.y), (middle, target.y), (stop, target.y)]
    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    axes.add_patch(PathPatch(Path(points, codes), fill=False, edgecolor=charts.QUIET, linewidth=1.1))
    if target.lines:
        tip = [(stop, target.y), (stop - 5, target.y - 3), (stop - 5, target.y + 3)]
        axes.add_patch(Polygon(tip, facecolor=charts.QUIET, linewidth=0))


def _draw_node(axes: Any, node: _Node, left: float) -> None:
    if not node.lines:  # an arrow that passes
        axes.plot([left, left + _BOX], [node.y, node.y], color=charts.QUIET, linewidth=1.1)
        return
    low = node.y - node.height / 2
    box = FancyBboxPatch(
        (left + 3, low + 3),
        _BOX - 6,
        node.height - 6,
        boxstyle="round,pad=3,rounding_size=3",
        fill=False,
        edgecolor=node.color,
        linewidth=1.4,
        linestyle="solid" if node.is_read else (0, (3, 2)),
    )
    axes.add_patch(box)
    for at, line in enumerate(node.lines):
        y = node.y + (at - (len(node.lines) - 1) / 2) * _LINE + 3.6  # base line of the text
        axes.text(left + _BOX / 2, y, line, ha="center", va="baseline", fontsize=10)


def _wrap(text: str) -> list[str]:
    """Return the lines of a text that fit a box; wide characters count twice."""
    text = " ".join(text.split())
    is_wide = display_width(text) > len(text)
    lines = textwrap.wrap(text, _MOST_CHARS // 2 if is_wide else _MOST_CHARS)
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1][: _MOST_CHARS - 1]}…"]
    return lines or [""]


def _describe(ranks: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Return the connections as text, for readers who cannot see the drawing."""
    titles = {block["number"]: f"{block['number']} {block['title']}" for rank in ranks for block in rank}
    read = [
        f"{titles[block['number']]} reads {', '.join(titles[each] for each in block['sources'])}"
        for rank in ranks
        for block in rank
        if block["sources"]
    ]
    unread = [
        f"No block reads {', '.join(block['inputs'])}"
        for rank in ranks
        for block in rank
        if block["kind"] == _UNREAD
    ]
    return f"Diagram of the model. {'; '.join([*read, *unread])}."
