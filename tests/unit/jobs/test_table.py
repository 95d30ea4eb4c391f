"""Tables that line up."""

import io
import sys

from penstock.jobs.table import format_table, rule, shorten


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


def test_table_last_column_gives_way_to_the_width() -> None:
    lines = format_table(("a", "b"), [["x", "0123456789" * 10]], width=30)
    assert lines[2] == "x  01234567890123456789012345…"
    assert max(map(len, lines)) == 30


def test_table_other_columns_are_cut_when_they_are_huge() -> None:
    lines = format_table(("a", "b"), [["x" * 70_000, "y"]], width=80)
    assert lines[2] == "x" * 59 + "…  y"


def test_table_without_rows_is_its_header() -> None:
    assert format_table(("a", "b"), [], width=80) == ["a  b", f"{rule(1)}  {rule(1)}"]


def test_shorten_keeps_what_fits() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"
    assert shorten("大大大", 4) == "大…"


def test_rule_in_an_output_without_unicode_is_of_hyphens(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert rule(3) == "---"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert rule(3) == "───"
