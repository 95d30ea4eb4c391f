"""Parts of HTML: escaped, of limited size, and never an exception."""

import math
from xml.etree import ElementTree

import pytest

from penstock.foundation.html import (
    MAX_CHARS,
    MAX_ROWS,
    Html,
    display_safely,
    draw_curves,
    escape_html,
    make_block,
    make_line,
    make_picture,
    make_table,
)

HOSTILE = '</td><script>alert("1")</script>\'\x00\ud800'


def test_text_is_escaped_once_and_can_be_encoded():
    text = escape_html(HOSTILE)
    assert "<" not in text
    assert '"' not in text
    assert "'" not in text
    text.encode()
    assert escape_html(text) is text


@pytest.mark.parametrize(
    "page",
    [
        make_block(HOSTILE),
        make_line(HOSTILE),
        make_table([HOSTILE], [[HOSTILE]]),
        make_picture(f"data:{HOSTILE}".replace("\ud800", ""), HOSTILE),
        draw_curves(HOSTILE, {HOSTILE: [1.0, 2.0]}),
        draw_curves(HOSTILE, {}),
        display_safely(HOSTILE, lambda: 1 / 0),
    ],
)
def test_no_part_lets_text_become_markup(page):
    assert "<script" not in page
    assert "background" not in page


def test_long_text_and_long_table_are_cut():
    assert len(escape_html("x" * 10_000)) == MAX_CHARS
    page = make_table(["a"], ([n] for n in range(10**9)), num_rows=10**9)
    assert page.count("<tr>") == MAX_ROWS + 1
    assert f"{10**9 - MAX_ROWS:,} more" in page


def test_html_is_kept_as_it_is():
    assert "<b>x</b>" in make_table(["a"], [[Html("<b>x</b>")]])


def list_paths(page):
    paths = ElementTree.fromstring(f"<div>{page.partition('<svg')[1]}{page.partition('<svg')[2]}")  # noqa: S314
    return [each.get("d") for each in paths.iter("path")][1:]


def test_curve_goes_from_the_first_value_to_the_last():
    (path,) = list_paths(draw_curves("loss", {"loss": [4.0, 2.0, 0.0]}))
    assert path == "M52.0 6.0h0L192.0 61.0L332.0 116.0"


def test_curve_is_interrupted_where_a_value_is_not_finite():
    values = [1.0, math.nan, None, math.inf, 2.0, 1.0]
    (path,) = list_paths(draw_curves("loss", {"loss": values}))
    assert path.count("M") == 2
    assert path.count("L") == 1


def test_curve_without_finite_values_is_a_line_of_text():
    page = draw_curves("loss", {"loss": [math.nan, None]})
    assert "<svg" not in page


def test_curves_of_extreme_and_of_many_values_are_small():
    page = draw_curves("loss", {"a": [1.7e308, -1.7e308], "b": [0.5] * 100_000})
    assert "nan" not in page
    assert "inf" not in page.replace("info", "")
    assert len(page) < 20_000


def test_error_of_a_display_is_shown_in_its_place():
    def fail():
        raise ValueError("<i>no such file</i>")

    page = display_safely("Split 'train'", fail)
    assert "ValueError: &lt;i&gt;no such file&lt;/i&gt;" in page
