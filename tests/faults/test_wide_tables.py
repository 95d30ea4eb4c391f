"""C16: the work of converting a table grows with its columns, and not faster."""

import sys
import threading

import pytest

from penstock.cli.main import main
from raising import containing


def write_cell(column, row):
    """Return the cell of a table of whole numbers, numbers, words and numbers that may be missing."""
    number = 7 * column + 13 * row
    missing = "" if row == 1 else str(number % 77)
    return (str(number % 1000), f"{number % 1000 / 8}", f"w{(column + row) % 5}", missing)[column % 4]


def count_calls(tmp_path, num_columns):
    """Return how many Python functions a conversion of three rows calls, in all threads."""
    path = tmp_path / f"{num_columns}.csv"
    rows = [[f"c{i}" for i in range(num_columns)]]
    rows += [[write_cell(i, row) for i in range(num_columns)] for row in range(3)]
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    counts = {}

    def count(frame, event, argument):
        if event == "call":
            thread = threading.get_ident()
            counts[thread] = counts.get(thread, 0) + 1

    before = sys.getprofile()
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        assert main(["convert", str(path), str(tmp_path / f"{num_columns}"), "--threads", "1"]) == 0
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return sum(counts.values())


@pytest.fixture(scope="module", autouse=True)
def everything_is_loaded(tmp_path_factory):
    # Importing calls functions, too.
    count_calls(tmp_path_factory.mktemp("first"), 3)


def test_c16_calls_grow_with_the_columns(tmp_path, capsys):
    few, many = (count_calls(tmp_path, num_columns) for num_columns in (2_000, 20_000))
    assert many < 10.5 * few
    assert many < 200 * 20_000


def test_c16_only_the_first_of_many_fields_are_printed(tmp_path, capsys):
    path = tmp_path / "wide.csv"
    path.write_text("".join(",".join(f"{cell}{i}" for i in range(1_002)) + "\n" for cell in ("c", 1, 2, 3)))
    assert main(["convert", str(path), str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:1_002]] == [f"c{i}" for i in range(1_000)]
    assert lines[1_002] == containing(2, "fields")
    assert "penstock inspect" in lines[1_002]
