"""The way back: a data set as a Parquet or Arrow file."""

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import OptionError, PathError
from penstock.jobs.convert.table_file import write_table
from raising import containing, raises_with
from record_files import example, write_plain


def table(num_rows=30):
    return {
        "row": list(range(num_rows)),
        "word": [f"word {row}" for row in range(num_rows)],
        "age": [None if row % 7 == 0 else row for row in range(num_rows)],
        "clicks": [list(range(row % 4)) for row in range(num_rows)],
    }


@pytest.fixture
def made(tmp_path):
    ps.convert(table(), tmp_path / "made", id="row")
    return tmp_path / "made"


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        (".parquet", pq.read_table),
        (".arrow", lambda path: pa.ipc.open_file(path).read_all()),
        (".feather", pa.feather.read_table),
    ],
)
def test_table_holds_every_value_and_the_split(tmp_path, made, suffix, read):
    done = write_table(made, tmp_path / f"out{suffix}")
    found = read(done.out).to_pydict()
    assert (done.num_rows, done.num_bytes) == (30, done.out.stat().st_size)
    order = sorted(range(30), key=found["row"].__getitem__)
    for name, column in table().items():
        assert [found[name][at] for at in order] == column
    dataset = ps.open(made)
    assert {name: found["split"].count(name) for name in dataset.splits} == {
        name: len(dataset[name]) for name in dataset.splits
    }


def test_table_is_the_one_in_memory(tmp_path, made):
    # Not by way of Parquet, which calls the items of lists otherwise.
    done = write_table(made, tmp_path / "out.arrow")
    with pa.ipc.open_file(done.out) as file:
        assert file.read_all().equals(ps.open(made).to_arrow(), check_metadata=True)


def test_table_can_be_converted_again_to_the_same_splits(tmp_path, made):
    write_table(made, tmp_path / "out.parquet")
    again = ps.convert(tmp_path / "out.parquet", tmp_path / "again", split_by="split", id="row")
    before = ps.open(made)
    for name in before.splits:
        assert {row["row"]: row["word"] for row in again[name]} == {
            row["row"]: row["word"] for row in before[name]
        }


def test_bare_file_has_no_split_to_name(tmp_path):
    write_plain(tmp_path / "pets.tfrecord", [example(age=3)])
    write_table(tmp_path / "pets.tfrecord", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"age": [3]}


def test_field_that_is_named_split_is_kept(tmp_path):
    ps.convert({"split": ["left", "right"], "a": [1, 2]}, tmp_path / "made")
    write_table(tmp_path / "made", tmp_path / "out.parquet")
    assert sorted(pq.read_table(tmp_path / "out.parquet").to_pydict()["split"]) == ["left", "right"]


def test_existing_file_is_refused_unless_it_may_be_overwritten(tmp_path, made):
    (tmp_path / "out.parquet").write_text("mine")
    with raises_with(PathError, "out.parquet"):
        write_table(made, tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_text() == "mine"
    assert write_table(made, tmp_path / "out.parquet", overwrite=True).num_rows == 30


def test_error_on_the_way_leaves_no_file(tmp_path, made):
    def fail(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(made, tmp_path / "out.parquet", on_progress=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_other_suffix_is_refused(tmp_path, made):
    with raises_with(OptionError, "out", got="out.csv"):
        write_table(made, tmp_path / "out.csv")


def test_raw_data_is_refused_with_the_way_to_go(tmp_path):
    (tmp_path / "pets.csv").write_text("a\n1\n")
    with raises_with(OptionError, "source", expected=containing("TFRecords"), got=containing("pets.csv")):
        write_table(tmp_path / "pets.csv", tmp_path / "out.parquet")
