"""Tables that line up, text that is safe to print, and lines that are overwritten."""

import io
import os
import sys
import termios

import pytest

from penstock.foundation.terminal import (
    LiveLines,
    display_width,
    escape,
    format_table,
    paint,
    rule,
    shorten,
    supports_styles,
    terminal_size,
)
from screen import Screen


@pytest.fixture(autouse=True)
def _xterm(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def draw_on(screen: Screen, **options) -> LiveLines:
    return LiveLines(screen, size=screen.size, **options)


def test_table_lines_up_and_aligns_numbers_to_the_right() -> None:
    lines = format_table(
        ("name", "n", "note"), [["a", "1", "x"], ["long", "1000", ""]], width=80, right=("n",)
    )
    assert lines == [
        "name     n  note",
        f"{rule(4)}  {rule(4)}  {rule(4)}",
        "a        1  x",
        "long  1000",
    ]


def test_table_wide_and_combining_letters_count_as_a_terminal_shows_them() -> None:
    lines = format_table(("a", "b"), [["大", "x"], ["e\u0301", "x"]], width=80)
    assert lines[2:] == ["大  x", "e\u0301   x"]


def test_table_widest_columns_give_way_to_the_width() -> None:
    row = ["x", "0123456789" * 10, "abcdefghij" * 2]
    lines = format_table(("a", "b", "c"), [row], width=45)
    assert lines[2] == "x  0123456789012345678…  abcdefghijabcdefghij"
    assert max(map(len, lines)) == 45


def test_table_numbers_are_never_cut() -> None:
    lines = format_table(("name", "count"), [["x" * 50, "1,234,567,890"]], width=30, right=("count",))
    assert lines[2] == "x" * 14 + "…  1,234,567,890"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_table_fits_the_width_with_wide_and_combining_letters(width) -> None:
    row = ["大きな動物" * 4, "e\u0301" * 40, "plain text " * 9, "12", "⚠\ufe0f sign"]
    lines = format_table(
        ("名前", "b", "c", "d", "e"), [row, ["x", "y", "z", "1", ""]], width=width, right=["d"]
    )
    assert max(map(display_width, lines)) <= width
    if width < 200:
        assert any("…" in line for line in lines)
    else:
        assert "plain text " * 9 in lines[2]


def test_table_whose_columns_would_be_too_narrow_is_a_list() -> None:
    header = ("field", "type", "values", "missing", "statistics", "example")
    rows = [[f"name {n}", "number", "scalar float32", "0", "4.8 to 5.2", "long " * 9] for n in range(2)]
    lines = format_table(header, rows, width=40, right=("missing",))
    assert lines[0] == "field       name 0"
    assert lines[3] == "missing     0"
    assert lines[5] == "example     long long long long long lo…"
    assert lines[6] == rule(20)
    assert lines[7] == "field       name 1"
    assert max(map(display_width, lines)) == 40


def test_table_in_a_list_leaves_out_empty_cells() -> None:
    lines = format_table(("a" * 15, "b" * 15), [["", "x"]], width=12, right=("a" * 15, "b" * 15))
    assert lines == ["bbbbb…  x"]


def test_table_cells_are_cut_when_they_are_huge() -> None:
    lines = format_table(("a", "b"), [["x" * 70_000, "y"]], width=10**6)
    assert lines[2] == "x" * 399 + "…  y"


def test_table_emphasizes_the_names_of_columns() -> None:
    rows = [["1", "2"]]
    assert format_table(("a", "b"), rows, width=80, emphasize=lambda text: f"<{text}>")[0] == "<a  b>"
    lines = format_table(("a" * 9, "b" * 9), rows, width=12, right=("a" * 9, "b" * 9), emphasize=str.upper)
    assert lines == ["AAAAA…  1", "BBBBB…  2"]


def test_table_without_rows_is_its_header() -> None:
    assert format_table(("a", "b"), [], width=80) == ["a  b", f"{rule(1)}  {rule(1)}"]


@pytest.mark.parametrize(
    ("variables", "on_terminal", "in_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": "0"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_styles_are_used_on_a_terminal_unless_the_user_objects(
    variables, on_terminal, in_pipe, monkeypatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (supports_styles(Screen()), supports_styles(io.StringIO())) == (on_terminal, in_pipe)
    assert paint("x", "red", Screen()) == ("\x1b[1;31mx\x1b[0m" if on_terminal else "x")


def test_styles_of_a_stream_that_is_closed_are_none() -> None:
    assert not supports_styles(None)


def test_shorten_keeps_the_beginning_that_fits() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"
    assert shorten("大大大", 4) == "大…"


def test_rule_in_an_output_without_unicode_is_of_hyphens(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert rule(3) == "---"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert rule(3) == "───"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 大きさ", "größe 大きさ"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\udc80", "\\udc80"),
        ("\x00", "\\x00"),
    ],
)
def test_escape_leaves_nothing_that_moves_a_terminal(text, shown) -> None:
    assert escape(text) == shown
    assert escape(text).isprintable()


def test_lines_drawn_again_replace_the_lines_before() -> None:
    screen = Screen()
    lines = draw_on(screen)
    for drawn in (["one"], ["a long first line", "second", "third"], ["b", "c"], ["d"], ["e", "f"]):
        lines.draw(drawn)
        assert screen.lines == drawn
        assert screen.is_cursor_shown
    lines.clear()
    assert screen.lines == []


def test_line_that_stays_is_above_the_lines_drawn_next() -> None:
    screen = Screen()
    with draw_on(screen) as lines:
        lines.print("first")
        lines.draw(["a", "b"])
        lines.print("second")
        lines.draw(["c"])
        assert screen.lines == ["first", "second", "c"]
    assert screen.lines == ["first", "second"]


def test_lines_fit_the_terminal() -> None:
    screen = Screen(columns=10, rows=3)
    draw_on(screen).draw(["0123456789", "大大大大大大", "x"])
    assert screen.lines == ["01234567…", "大大大大…"]


def test_lines_hold_no_control_character_and_nothing_that_the_stream_lacks() -> None:
    screen = Screen(columns=10, encoding="latin-1")
    lines = draw_on(screen)
    lines.draw(["\x1b[2J", "花" * 10])
    assert screen.lines == ["\\x1b[2J", "?????"]
    assert (lines.bar(0.5, 4), LiveLines(Screen()).bar(0.5, 4)) == ("##..", "██░░")


def test_bold_line_is_one_of_those_that_fit() -> None:
    screen = Screen(rows=3)
    lines = draw_on(screen)
    lines.draw(["a", "b", "c"], bold=1)
    assert "\x1b[1mb\x1b[0m" in screen.getvalue()
    lines.draw(["a", "b", "c"], bold=2)
    assert screen.getvalue().count("\x1b[1m") == 1


@pytest.mark.parametrize("kind", ["pipe", "dumb terminal"])
def test_pipe_and_dumb_terminal_get_the_lines_that_stay_alone(kind, monkeypatch) -> None:
    stream = io.StringIO() if kind == "pipe" else Screen()
    monkeypatch.setenv("TERM", "dumb" if kind == "dumb terminal" else "xterm")
    with LiveLines(stream) as lines:
        assert not lines.is_due()
        lines.draw(["a"])
        lines.print("b\r")
    assert stream.getvalue() == "b\\r\n"


def test_lines_are_due_after_the_silent_time_and_then_ten_times_per_second() -> None:
    now = 100.0
    lines = LiveLines(Screen(), clock=lambda: now, silent_seconds=2.0)
    due = []
    for step in range(300):
        now = 100.0 + step / 100
        if lines.is_due():
            due.append(step)
    assert due[0] == 200
    assert len(due) == 10


def test_stream_that_is_gone_ends_the_display(monkeypatch) -> None:
    screen = Screen()
    lines = draw_on(screen)
    lines.draw(["a"])
    tries = []

    def refuse(text: str) -> int:
        tries.append(text)
        raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(screen, "write", refuse)
    with lines:
        lines.draw(["b"])
        lines.print("c")
        lines.draw(["d"])
    assert len(tries) == 1
    assert lines.is_broken
    assert not lines.is_live


def test_size_is_the_size_of_the_terminal_that_is_written_to(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "24")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as stream:
        assert terminal_size(stream) == (120, 24)  # a terminal without a size: the size of the environment
        termios.tcsetwinsize(ours, (30, 70))
        assert terminal_size(stream) == (70, 30)
    os.close(ours)
    assert terminal_size(Screen()) == (120, 24)
