"""C16: the work of converting a table grows with its columns, and not faster."""

import sys
import threading

import pytest

from penstock.cli.main import main


def count_calls(tmp_path, num_columns):
    """Return how many Python functions a conversion of three rows calls, in all threads."""
    path = tmp_path / f"{num_columns}.csv"
    rows = [[f"c{i}" for i in range(num_columns)]]
    rows += [[str((7 * i + 13 * row) % 1000) for i in range(num_columns)] for row in range(3)]
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
        assert main(["convert", str(path), str(tmp_path / f"{num_columns}"), "--workers", "1"]) == 0
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return sum(counts.values())


@pytest.fixture(scope="module", autouse=True)
def everything_is_loaded(tmp_path_factory):
    # Importing calls functions, too.
    count_calls(tmp_path_factory.mktemp("first"), 3)


def test_c16_calls_grow_with_the_columns(tmp_path, capsys):
    few, many = (count_calls(tmp_path, num_columns) for num_columns in (500, 5_000))
    assert many < 11 * few
    assert many < 400 * 5_000


@pytest.mark.long
def test_c16_calls_grow_with_the_columns_up_to_100_000(tmp_path, capsys):
    few, many = (count_calls(tmp_path, num_columns) for num_columns in (10_000, 100_000))
    assert many < 11 * few
