"""The plot of `scaling.py`: throughput by number of threads, one panel per part, as SVG.

In: measurements. Out: the text of an SVG file; no package draws it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rounds import Results, find_rate, pick_turns
from scaling_feeds import BASELINE, ENTRIES, PARTS, Part

COLOURS = {"penstock": "#0b6fb8", "torch": "#d9541e", "tf-tuned": "#8a6d00", "simplejpeg": "#5b5b5b"}
IDEAL = "#b5b5b5"
NUM_COLUMNS = 3
PANEL_WIDTH, PANEL_HEIGHT = 300, 240
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 34, 36
HEADER, FOOTER = 10, 34
NUM_TICKS = 4
LABEL_WIDTH = 13

Points = list[tuple[int, float]]


def draw_plot(score: Results, machine: Mapping[str, Any]) -> str:
    """Draw one panel per part that was measured, and a legend below."""
    parts = [part for part in PARTS.values() if any(turn.dataset == part.name for turn in score.turns)]
    num_rows = -(-len(parts) // NUM_COLUMNS) or 1
    width, height = NUM_COLUMNS * PANEL_WIDTH, HEADER + num_rows * PANEL_HEIGHT + FOOTER
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, part in enumerate(parts):
        row, column = divmod(number, NUM_COLUMNS)
        x, y = column * PANEL_WIDTH, HEADER + row * PANEL_HEIGHT
        lines.append(f'<g transform="translate({x} {y})">')
        lines += _draw_panel(part, _list_lines(score, part))
        lines.append("</g>")
    lines += _draw_legend({turn.entry for turn in score.turns}, height - FOOTER + 12)
    about = f"{machine['cpu']}, {machine['num_cores']} cores, {machine['measured_at'][:10]}"
    lines.append(f'<text x="{LEFT}" y="{height - 6}" fill="#666">{escape(about)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _list_lines(score: Results, part: Part) -> dict[str, Points]:
    """Return for each feed its rate by number of threads."""
    found: dict[str, Points] = {}
    for entry in ENTRIES:
        threads = sorted(
            {turn.num_cores for turn in score.turns if (turn.entry, turn.dataset) == (entry.name, part.name)}
        )
        rates = [(n, find_rate(pick_turns(score, entry.name, part.name, n))) for n in threads]
        points = [(n, rate) for n, rate in rates if rate is not None]
        if points:
            found[entry.name] = points
    return found


def _draw_panel(part: Part, lines: Mapping[str, Points]) -> list[str]:
    threads = sorted({n for points in lines.values() for n, _ in points})
    highest = max(rate for points in lines.values() for _, rate in points)
    step = _choose_step(highest)
    top = step * math.ceil(highest / step)

    def place(n: float, rate: float) -> tuple[float, float]:
        across = LEFT + n / threads[-1] * (PANEL_WIDTH - LEFT - RIGHT)
        return round(across, 1), round(PANEL_HEIGHT - BOTTOM - rate / top * (PANEL_HEIGHT - TOP - BOTTOM), 1)

    title, unit = escape(part.title), escape(part.unit)
    drawn = [f'<text x="{LEFT}" y="16" font-weight="bold">{title}</text>']
    for number in range(round(top / step) + 1):
        x, y = place(0, number * step)
        drawn.append(f'<path d="M{x} {y}H{PANEL_WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        drawn.append(f'<text x="{x - 6}" y="{y + 4}" text-anchor="end">{_shorten(number * step)}</text>')
    right = -math.inf
    for n in threads:
        x, _ = place(n, 0)
        if x - right >= LABEL_WIDTH:  # on machines with many cores the first labels would overlap
            drawn.append(f'<text x="{x}" y="{PANEL_HEIGHT - 20}" text-anchor="middle">{n}</text>')
            right = x
    drawn.append(f'<text x="{LEFT}" y="{PANEL_HEIGHT - 6}" fill="#666">{unit} by threads</text>')
    if BASELINE in lines:
        first, rate = lines[BASELINE][0]
        last = min(threads[-1], first * top / rate)  # it ends at the top of the panel
        places = [place(n, rate * n / first) for n in (first, last)]
        drawn.append(_draw_line(places, IDEAL, 'stroke-dasharray="4 3"'))
    for name, points in lines.items():
        places = [place(*point) for point in points]
        drawn.append(_draw_line(places, COLOURS[name], 'stroke-width="2"'))
        drawn += [f'<circle cx="{x}" cy="{y}" r="3" fill="{COLOURS[name]}"/>' for x, y in places]
    return drawn


def _draw_line(places: Sequence[tuple[float, float]], colour: str, style: str) -> str:
    path = " ".join(f"{x},{y}" for x, y in places)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" {style}/>'


def _draw_legend(names: set[str], y: float) -> list[str]:
    shown = [(entry.title, COLOURS[entry.name]) for entry in ENTRIES if entry.name in names]
    drawn, x = [], float(LEFT)
    for title, colour in [*shown, ("Penstock's first rate times threads", IDEAL)]:
        drawn.append(f'<path d="M{x} {y - 4}h18" stroke="{colour}" stroke-width="2"/>')
        drawn.append(f'<text x="{x + 23}" y="{y}">{escape(title)}</text>')
        x += 40 + 5.6 * len(title)
    return drawn


def _choose_step(highest: float) -> float:
    """Return a round number; a few steps of it reach the highest rate."""
    least = highest / NUM_TICKS
    scale = 10 ** math.floor(math.log10(least))
    return next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= least)


def _shorten(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"
