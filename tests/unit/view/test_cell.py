"""Values as cells: every length is limited, whatever a record holds."""

import numpy as np
import pytest

from image_files import png, scene
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.view.cell import (
    CHART_HEIGHT,
    CHART_WIDTH,
    LONG_CHARS,
    MISSING,
    SHORT_CHARS,
    draw_lines,
    is_picture,
    make_cell,
)


def test_missing_value_has_a_separate_cell():
    assert make_cell(Number(), None) == MISSING


def test_text_is_cut_and_has_no_control_characters():
    cell = make_cell(Text(), "a\x00b\x1b[31m\n" + "x" * 10**6)
    assert cell.text.startswith("a\u2400b\u241b[31m\n")
    assert (len(cell.text), cell.is_cut) == (SHORT_CHARS, True)
    assert len(make_cell(Text(), "x" * 10**6, is_long=True).text) == LONG_CHARS
    assert not make_cell(Text(), "short").is_cut


def test_text_that_is_not_utf8_and_bytes_are_shown_as_hex():
    assert make_cell(Text(), b"\xff\xfe").text == "2 bytes: ff fe"
    assert make_cell(Bytes(), bytes(100)).is_cut
    assert make_cell(Category("int64"), 5).kind == "number"


def test_dates_are_shown_as_dates():
    assert make_cell(Date(), np.datetime64("2024-01-31")).text == "2024-01-31"
    assert (
        make_cell(Date("microseconds"), np.datetime64("2024-01-31T12:30", "us")).text == "2024-01-31 12:30:00"
    )
    assert make_cell(Date(), None) == MISSING


def test_image_has_its_size_and_other_bytes_are_not_one():
    cell = make_cell(Image(), png(scene(10, 20)))
    assert (cell.kind, cell.width, cell.height) == ("image", 20, 10)
    assert make_cell(Image(), b"<svg onload=alert(1)>").kind == "bytes"


def test_list_of_numbers_is_a_chart_within_its_frame():
    cell = make_cell(Sequence("float32"), np.sin(np.arange(1000, dtype=np.float32)))
    points = [tuple(map(float, each.split(","))) for each in cell.lines[0].points.split()]
    assert len(points) <= 120
    assert all(0 <= x <= CHART_WIDTH and 0 <= y <= CHART_HEIGHT for x, y in points)
    assert cell.is_cut


@pytest.mark.parametrize(
    "values", [[np.nan, np.inf], [1.0, np.nan, 3.0], [5.0, 5.0], [-1.7e308, 1.7e308], [0.0, 1e-320]]
)
def test_chart_of_extreme_numbers_has_only_finite_points(values):
    for line in draw_lines(np.array(values)[:, None]):
        assert "nan" not in line.points
        assert "inf" not in line.points


def test_steps_of_several_values_are_several_lines_and_ragged_ones_a_list():
    field = Sequence("float32", (2,), "feature_list")
    assert len(make_cell(field, np.ones((5, 2), np.float32)).lines) == 2
    ragged = Sequence("int64", None, "feature_list")
    assert make_cell(ragged, [np.array([1]), np.array([1, 2])]).kind == "list"
    assert make_cell(ragged, []).text == "empty list"
    assert make_cell(Sequence("string"), ["<b>", "two"]).text == "2 values: <b>, two"


def test_arrays_with_two_sides_are_pictures_and_others_charts():
    assert is_picture(Tensor((8, 8)))
    assert is_picture(Tensor((8, 8, 3)))
    assert not is_picture(Tensor((8, 8, 5)))
    assert not is_picture(Tensor((5000, 8)))
    assert make_cell(Tensor((4,)), np.arange(4.0)).kind == "chart"
    assert make_cell(Tensor(()), np.array(3.0)).kind == "number"
    assert make_cell(Tensor((2, 3, 4, 5)), np.zeros((2, 3, 4, 5))).kind == "chart"
