"""Commands on a real terminal of any width: tables that fit, and colours that are used there alone."""

import json
import re

import pytest

from penstock.foundation.terminal import display_width
from record_files import example, flip, write_plain
from terminal_runs import run_on_terminal

CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LONG = "a_field_with_a_name_that_is_longer_than_most_terminals_are_wide"
ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A file with long and wide names and values."""
    values = {LONG: "words " * 40, "名前": "大きな動物" * 20, "age": 4.5, "tags": ["a", "b", "c"] * 9}
    return write_plain(tmp_path_factory.mktemp("wide") / "a.tfrecord", [example(**values)] * 12)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_table_fits_the_terminal(columns, records) -> None:
    out, _ = run_on_terminal(["inspect", records, "--head", "1"], columns=columns)
    lines = CODE.sub("", out).splitlines()
    table = lines[: lines.index("")]
    assert len(table) >= 6
    assert max(map(display_width, table)) <= columns
    assert (display_width(max(table, key=display_width)) > columns // 2) or columns == 200
    assert any("…" in line for line in table)
    assert "age" in "\n".join(table)


def test_variable_columns_overrides_the_terminal(records) -> None:
    out, _ = run_on_terminal(["inspect", records], columns=200, COLUMNS="60")
    lines = CODE.sub("", out).splitlines()
    assert max(map(display_width, lines[: lines.index("")])) <= 60


def test_table_in_a_pipe_is_whole_and_plain(records) -> None:
    out, err = run_on_terminal(["inspect", records], columns=40, stdout=False, stderr=True)
    assert LONG in out
    assert ("words " * 40).strip() in out
    assert "…" not in out.splitlines()[3]
    assert ESCAPE not in out
    assert err.startswith("\x1b[1mNext:\x1b[0m ")


def test_colours_of_stdout_and_stderr_are_separate(records) -> None:
    out, err = run_on_terminal(["inspect", records], stdout=True, stderr=False)
    assert out.startswith("\x1b[1m")
    assert err.startswith("Next: ")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"NO_COLOR": "no"}, {"TERM": "dumb"}])
def test_colours_are_left_out_if_the_user_objects(variables, records) -> None:
    assert ESCAPE not in "".join(run_on_terminal(["inspect", records], stderr=True, **variables))


def test_colours_in_a_pipe_can_be_forced(records) -> None:
    out, err = run_on_terminal(["inspect", records], stdout=False, FORCE_COLOR="1")
    assert out.startswith("\x1b[1m")
    assert err.startswith("\x1b[1mNext:\x1b[0m ")


def test_json_has_no_colour_even_if_it_is_forced(records) -> None:
    out, err = run_on_terminal(["inspect", records, "--json"], stderr=True, FORCE_COLOR="1")
    assert json.loads(out)["records"] == 12
    assert err == ""


def test_errors_are_red_and_the_result_of_damage_is_plain(records, tmp_path) -> None:
    _, err = run_on_terminal(["inspect", tmp_path / "none"], stderr=True)
    assert err.startswith("penstock: \x1b[1;31merror:\x1b[0m ")
    damaged = tmp_path / "a.tfrecord"
    damaged.write_bytes(flip(records.read_bytes(), 100))
    out, err = run_on_terminal(["verify", damaged], stderr=True)
    assert ESCAPE not in out
    assert err.endswith("a-repaired\n")


def test_quiet_on_a_terminal_writes_the_result_alone(records) -> None:
    out, err = run_on_terminal(["-q", "verify", records], stderr=True)
    assert (out.count("\n"), err) == (1, "")
