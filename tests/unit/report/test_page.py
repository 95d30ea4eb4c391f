"""The page: escaped, complete in itself, small, and drawn for anything that the figures may hold."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
import penstock.report as package
from image_files import saved
from penstock.decode.sample_view import Thumbnails
from penstock.report import charts, data_report, page
from penstock.report.page import draw_page
from penstock.report.report import write_report
from report_pages import check_page

HOSTILE = '</style><script>alert("1")</script><img src=x onerror=alert(2)>&amp;\x00\x1b[31m\u202e$\\frac{'


def test_hostile_names_and_values_are_text(tmp_path):
    rows = [
        {
            HOSTILE: HOSTILE if number % 3 else "plain",
            "note": f"{HOSTILE} {number}",
            "y": f"{HOSTILE}{number % 2}",
        }
        for number in range(90)
    ]
    fields = {HOSTILE: ps.fields.Category(), "note": ps.fields.Text()}
    dataset = ps.convert(rows, tmp_path / "pets", target="y", fields=fields)
    out = tmp_path / "report.html"
    write_report(dataset, out)
    page = out.read_text(encoding="utf-8")
    read = check_page(page)
    assert any('<script>alert("1")</script>' in text for text in read.texts)
    assert "\x00" not in page
    assert "\x1b" not in page


def test_texts_that_are_not_unicode_are_written(tmp_path):
    report = write_report(ps.convert([{"x": 1, "y": 0}, {"x": 2, "y": 1}], tmp_path / "d", target="y"), None)
    report["notes"] = ["half a pair: \ud800", "\ufffe"]
    check_page(draw_page(report)).texts.index("half a pair: \ufffd")
    draw_page(report).encode()


def test_sizes_are_written_as_on_the_command_line(tmp_path):
    report = write_report(ps.convert([{"x": 1, "y": 0}, {"x": 2, "y": 1}], tmp_path / "d", target="y"), None)
    report["data"]["bytes"] = 12345
    assert "12.3 kB" in check_page(draw_page(report)).texts


def test_page_of_many_fields_and_classes_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "_MOST_CHARTED", 6)
    rows = [
        {**{f"x{at}": float((number * 7 + at) % 13) for at in range(150)}, "y": f"class {number % 300}"}
        for number in range(600)
    ]
    out = tmp_path / "wide.html"
    found = write_report(ps.convert(rows, tmp_path / "wide", target="y"), out)
    assert found["data"]["num_fields"] == 151
    assert out.stat().st_size < 200_000
    assert out.read_text().count('<svg class="chart"') == 7  # the chart of the target twice
    check_page(out.read_text())


def test_photos_become_thumbnails_of_some_kilobytes(tmp_path):
    draws = np.random.default_rng(1)
    rows = [
        {"photo": saved(draws.integers(0, 256, (400, 600, 3), np.uint8), "jpeg"), "y": number % 2}
        for number in range(20)
    ]
    out = tmp_path / "photos.html"
    found = write_report(ps.convert(rows, tmp_path / "photos", target="y"), out)
    pictures = [
        value["picture"]
        for each in found["data"]["samples"]
        for value in each["values"]
        if "picture" in value
    ]
    assert len(pictures) == 12
    assert max(map(len, pictures)) < 40_000
    assert out.stat().st_size < 3_000_000


def test_pictures_beyond_the_limits_of_a_page_are_described(tmp_path, monkeypatch):
    few = lambda: Thumbnails(160, max_pictures=5, max_chars=10**6, max_pixels=10**9)  # noqa: E731
    monkeypatch.setattr(data_report, "start_pictures", few)
    rows = [{"photo": saved(np.zeros((40, 60, 3), np.uint8), "png"), "y": n % 2} for n in range(20)]
    found = write_report(ps.convert(rows, tmp_path / "d", target="y", split="train=1.0"), None)
    photos = [
        value for each in found["data"]["samples"] for value in each["values"] if value["name"] == "photo"
    ]
    assert ["picture" in value for value in photos] == [True] * 5 + [False] * 7
    assert {value["text"].split(",")[0] for value in photos} == {"png 60 × 40"}


def test_damaged_image_is_shown_as_its_description(tmp_path):
    photo = saved(np.zeros((40, 60, 3), np.uint8), "png")[:60]
    rows = [{"photo": photo, "y": float(number)} for number in range(30)]
    fields = {"photo": ps.fields.Image()}
    found = write_report(ps.convert(rows, tmp_path / "d", fields=fields), tmp_path / "d.html")
    values = [value for each in found["data"]["samples"] for value in each["values"]]
    assert {value["text"] for value in values if value["name"] == "photo"} == {"png 60 × 40, 60 bytes"}
    assert not [value for value in values if "picture" in value]


def test_missing_decoder_is_a_note_in_the_page(tmp_path, monkeypatch):
    pixels = np.zeros((40, 60, 3), np.uint8)
    rows = [
        {"photo": saved(pixels, "jpeg"), "icon": saved(pixels, "png"), "y": number % 2}
        for number in range(20)
    ]
    dataset = ps.convert(rows, tmp_path / "d", target="y")
    assert write_report(dataset, None)["data"]["picture_notes"] == []
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    monkeypatch.delitem(sys.modules, "penstock.decode.jpeg", raising=False)
    found = write_report(dataset, tmp_path / "d.html")["data"]
    assert {value["name"] for each in found["samples"] for value in each["values"] if "picture" in value} == {
        "icon"
    }
    assert len(found["picture_notes"]) == 1
    assert "pip install 'penstock[images]'" in found["picture_notes"][0]
    assert found["picture_notes"][0] in check_page((tmp_path / "d.html").read_text()).texts
    assert "penstock[images]" in dataset["train"]._repr_html_()


def test_figures_are_json_and_the_page_comes_from_them_alone(tmp_path):
    found = write_report(
        ps.convert([{"x": 1.5, "y": 0}] * 40 + [{"x": 2.5, "y": 1}] * 40, tmp_path / "d", target="y"),
        tmp_path / "a.html",
    )
    again = json.loads(json.dumps(found, allow_nan=False))
    assert draw_page(again) == (tmp_path / "a.html").read_text()


@pytest.mark.parametrize("numbers", [[1.0], [None, None], [1e308, -1e308], [0.0] * 5])
def test_charts_are_drawn_for_any_numbers(numbers):
    x = list(range(len(numbers)))
    for chart in (
        charts.draw_lines({"a": (x, numbers)}, "t"),
        charts.draw_bars([HOSTILE] * len(numbers), {"a": numbers}, HOSTILE),
        charts.draw_points(numbers, numbers, "t", x_label="x", y_label="y"),
        charts.draw_spark(numbers, "t"),
    ):
        assert re.fullmatch(r"<svg [^>]*>.*</svg>", str(chart), re.DOTALL)
        assert "<script" not in str(chart)
        assert "nan" not in str(chart)


def test_chart_follows_the_style_sheet_and_is_small():
    edges = np.linspace(0, 1, 31).tolist()
    counts = {"train": list(range(30)), "test": list(range(30, 0, -1))}
    chart = str(charts.draw_histogram(edges, counts, "a & b"))
    assert len(chart) < 5000
    assert 'aria-label="a &amp; b"' in chart
    assert {"var(--c0)", "var(--c1)", "var(--grid)", "currentColor"} <= set(
        re.findall(r"var\(--\w+\)|currentColor", chart)
    )
    assert not re.findall(r"#[0-9a-f]{6}", chart)


STYLE = (Path(package.__file__).parent / "templates" / "style.css").read_text()


def read_schemes():
    """Return the colours of the style sheet: light, dark, print."""
    found, known = [], {}
    for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL):
        known = known | dict(re.findall(r"--([\w-]+): ([^;]+);", block))
        found.append(known)
    return dict(zip(("light", "dark", "print"), found, strict=True))


def read_color(text):
    if text.startswith("#"):
        digits = text[1:] if len(text) == 7 else "".join(2 * each for each in text[1:])
        return [int(digits[at : at + 2], 16) for at in (0, 2, 4)]
    return [int(each) for each in text.split(",")]


def measure_contrast(one, other):
    """Return the ratio of luminances as WCAG 2 defines it."""

    def find_luminance(color):
        parts = [each / 255 for each in color]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((find_luminance(one), find_luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_texts_can_be_read_on_every_background(scheme):
    colors = {name: read_color(value) for name, value in read_schemes()[scheme].items()}
    for text, back in (
        *(("text", back) for back in ("page", "card", "note-back", "serious-back")),
        *(("quiet", back) for back in ("page", "card", "note-back")),
        *(("link", back) for back in ("page", "card")),
        ("serious", "serious-back"),
    ):
        assert measure_contrast(colors[text], colors[back]) >= 4.5, (text, back)
    # The darkest cell of a confusion matrix: three quarters of its colour over the colour of a card.
    mixed = [0.75 * a + 0.25 * b for a, b in zip(colors["heat"], colors["card"], strict=True)]
    assert measure_contrast(colors["text"], mixed) >= 4.5
    for number in range(charts.NUM_COLORS):
        assert measure_contrast(colors[f"c{number}"], colors["card"]) >= 3, number


def test_axes_with_large_numbers_have_short_labels():
    chart = str(charts.draw_lines({"a": ([1, 2], [2e5, 8e5])}, "t"))
    assert "400 k" in chart
    assert "1e5" not in chart


def test_equal_curves_show_in_the_gaps_of_each_other():
    points = ([1, 2, 3], [0.5, 0.4, 0.3])
    chart = str(charts.draw_lines(dict.fromkeys("abc", points), "t"))
    lines = [each for each in re.findall(r'style="([^"]*)"', chart) if "var(--c" in each]
    dashes = [re.search(r"stroke-dasharray: ([^;]*)", each) for each in lines]
    assert dashes[0] is None  # solid, and wider than those above it
    assert len({each[1] for each in dashes[1:]}) == 2
    widths = [float(re.search(r"stroke-width: ([\d.]+)", each)[1]) for each in lines]
    assert widths[0] > widths[1] == widths[2]


@pytest.mark.parametrize(
    ("number", "columns"), [(0, 1), (1, 1), (4, 4), (5, 3), (7, 4), (8, 4), (9, 3), (40, 4)]
)
def test_cards_leave_as_little_of_a_row_empty_as_possible(number, columns):
    assert page._choose_columns(number) == columns
