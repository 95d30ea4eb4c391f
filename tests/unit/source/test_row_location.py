"""The number and the line of a row in its file, and how errors name them."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import SourceError, name_location
from penstock.settings.groups import TextFiles
from penstock.source.block import Block
from penstock.source.opening import open_source
from penstock.source.row_location import RowLines, locate_row
from raising import mentions

OPTIONS = TextFiles()


def test_row_of_a_file_without_lines_and_of_memory(tmp_path):
    (memory,) = open_source({"n": [1, 2, 3]}, OPTIONS).blocks()
    assert locate_row(memory, 2, OPTIONS) == (3, None)
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "x.parquet")
    (block,) = open_source(tmp_path / "x.parquet", OPTIONS).blocks()
    assert locate_row(block, 1, OPTIONS) == (2, None)


def test_lines_that_a_block_knows_are_taken():
    block = Block(10, 2, {}, path="x.csv", row_in_file=5, lines=np.array([8, 11]))
    assert locate_row(block, 1, OPTIONS) == (7, 11)


def test_rows_are_counted_from_the_beginning_of_each_file(tmp_path):
    (tmp_path / "a.csv").write_text("n\n1\n2\n")
    (tmp_path / "b.csv").write_text("\n\nn\n1\n\n2\n")
    first, second = open_source([tmp_path / "a.csv", tmp_path / "b.csv"], OPTIONS).blocks()
    assert locate_row(first, 1, OPTIONS) == (2, 3)
    assert locate_row(second, 1, OPTIONS) == (2, 6)


def test_rows_are_found_in_any_order_in_one_pass():
    passes = []

    def lines():
        passes.append(None)
        yield from [2, 3, 7, 8, 8 + 5]

    rows = RowLines(lines())
    assert [rows.find(row) for row in (3, 0, 4, 2, 1, 5)] == [8, 2, 13, 7, 3, None]
    assert len(passes) == 1


def test_lines_of_a_file_that_was_rewritten_are_counted_again(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n\n1\n")
    (block,) = open_source(path, OPTIONS).blocks()
    assert locate_row(block, 0, OPTIONS) == (1, 2)
    path.write_text("\n\nn\n1\n")
    assert locate_row(block, 0, OPTIONS) == (1, 4)


@pytest.mark.parametrize(
    ("row", "line", "words"), [(17, 19, "row 17 (line 19)"), (17, None, "row 17"), (None, 3, "line 3")]
)
def test_location_is_named(row, line, words):
    assert name_location(row, line) == words
    error = SourceError("text", path="a.csv", row=row, line=line)
    assert mentions(error, f"a.csv text {words}")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (str(again), again.row, again.line) == (str(error), row, line)
