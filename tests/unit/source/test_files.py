"""Files of tables: Parquet, Arrow, CSV, one or several."""

import gzip
import hashlib
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from penstock.errors import ChangedFileError, OptionError, SourceError
from penstock.schema.scalar import Category
from penstock.settings.groups import TextFiles
from penstock.source.block import BLOCK_BYTES, BLOCK_ROWS, PeekedSource
from penstock.source.opening import open_source
from raising import containing, raises_with

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int32()),
        "s": ["a", None, "c"],
        "l": [[1.5], [], None],
        "d": pa.array(["x", "y", "x"]).dictionary_encode(),
        "i": [{"bytes": b"1", "path": None}, None, {"bytes": b"2", "path": "p"}],
    }
)
ROWS = {name: column.to_pylist() for name, column in zip(TABLE.column_names, TABLE.columns, strict=True)}


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def write_file(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "pets.parquet": pq.write_table,
    "pets.arrow": write_file,
    "pets.arrows": write_stream,
    "stream.ipc": write_stream,
    "pets.feather": pyarrow.feather.write_feather,
}


@pytest.mark.parametrize("name", WRITERS)
def test_typed_file_keeps_its_types_and_values(tmp_path, read, name):
    path = tmp_path / name
    WRITERS[name](TABLE, str(path))
    assert read(path) == ROWS
    block = next(open_source(path, TextFiles()).blocks())
    assert block.columns["n"].type == pa.int32()
    assert block.columns["d"].type == pa.string()
    assert (block.path, block.folder, block.row_in_file) == (str(path), str(tmp_path), 0)


@pytest.mark.parametrize("name", WRITERS)
def test_file_that_is_cut_is_refused_by_name(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](TABLE, str(path))
    path.write_bytes(path.read_bytes()[:60])
    with raises_with(SourceError, path=str(path)):
        list(open_source(path, TextFiles()).blocks())


def test_file_without_a_suffix_is_recognized_by_its_bytes(tmp_path, read):
    pq.write_table(TABLE, tmp_path / "pets")
    assert read(tmp_path / "pets")["s"] == ROWS["s"]


def test_parquet_blocks_do_not_depend_on_row_groups(tmp_path):
    table = pa.table({"n": range(40_000)})
    sizes = []
    for group in (1000, 40_000):
        path = tmp_path / f"{group}.parquet"
        pq.write_table(table, path, row_group_size=group)
        sizes.append([block.num_rows for block in open_source(path, TextFiles()).blocks()])
    assert sizes == [[BLOCK_ROWS, BLOCK_ROWS, 40_000 - 2 * BLOCK_ROWS]] * 2


def test_parquet_of_large_values_has_blocks_of_few_rows(tmp_path):
    path = tmp_path / "blobs.parquet"
    pq.write_table(pa.table({"b": [os.urandom(1 << 20) for _ in range(100)]}), path)
    rows = [block.num_rows for block in open_source(path, TextFiles()).blocks()]
    assert sum(rows) == 100
    assert set(rows[:-1]) == {BLOCK_BYTES >> 21}  # a MiB each, and a little more


def test_several_files_are_one_source_in_the_order_given(tmp_path):
    for name, data in {"b.csv": "x,y\n1,2\n", "a.csv": "y,x\n4,3\n6,5\n"}.items():
        (tmp_path / name).write_text(data)
    source = open_source([tmp_path / "b.csv", tmp_path / "a.csv"], TextFiles())
    blocks = list(source.blocks())
    assert [(b.first_row, b.num_rows, b.row_in_file, b.path) for b in blocks] == [
        (0, 1, 0, str(tmp_path / "b.csv")),
        (1, 2, 0, str(tmp_path / "a.csv")),
    ]
    assert [{name: c.to_pylist() for name, c in b.columns.items()} for b in blocks] == [
        {"x": ["1"], "y": ["2"]},
        {"x": ["3", "5"], "y": ["4", "6"]},
    ]
    assert source.name == "2 files"
    assert source.num_rows == 3


def test_glob_is_sorted_and_means_all_files(tmp_path, read):
    for i in (2, 10, 1):
        pq.write_table(pa.table({"n": [i]}), tmp_path / f"part-{i:02}.parquet")
    assert read(str(tmp_path / "*.parquet")) == {"n": [1, 2, 10]}


def test_file_of_other_columns_is_refused_naming_file_and_columns(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,z\n1,2\n")
    with raises_with(SourceError, f"{tmp_path / 'b.csv'} {tmp_path / 'a.csv'} 'y' 'z'"):
        open_source([tmp_path / "a.csv", tmp_path / "b.csv"], TextFiles())


def test_types_that_differ_between_files_become_one_or_are_refused(tmp_path, read):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.int32())}), paths[0])
    pq.write_table(pa.table({"n": [0.5]}), paths[1])
    assert read(paths) == {"n": [1.0, 2.0, 0.5]}
    pq.write_table(pa.table({"n": ["x"]}), paths[1])
    with raises_with(SourceError, f"{paths[1]} 'n' int32"):
        open_source(paths, TextFiles())


def test_provenance_names_files_relative_to_each_other_with_their_hash(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text(f"n\n{folder}\n")
    source = open_source([tmp_path / "a/x.csv", tmp_path / "b/x.csv"], TextFiles())
    list(source.blocks())
    digest = hashlib.sha256(b"n\na\n").hexdigest()
    first, second = source.provenance()
    assert first == {"name": "a/x.csv", "bytes": 4, "sha256": digest, "rows": 1}
    assert second["name"] == "b/x.csv"


def test_file_that_changes_between_two_passes_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("n\n1\n")
    source = open_source(path, TextFiles())
    list(source.blocks())
    path.write_text("n\n1\n2\n")
    with raises_with(ChangedFileError, expected=4, got=6):
        list(source.blocks())


def test_column_without_a_name_is_called_by_its_number(tmp_path, read):
    path = tmp_path / "x.csv"
    path.write_text(",a\n0,x\n")
    assert read(path) == {"column_1": ["0"], "a": ["x"]}
    assert open_source(path, TextFiles()).notes == (containing("x.csv", 1, "'column_1'"),)


def test_row_longer_than_a_piece_of_the_parser_is_read(tmp_path, read):
    path = tmp_path / "x.csv"
    long = "y" * (10 << 20)
    path.write_text("a,b\n" + "1,x\n" * 1000 + f'2,"{long}"\n3,z\n')
    rows = read(path)
    assert rows["a"] == ["1"] * 1000 + ["2", "3"]
    assert rows["b"][-2:] == [long, "z"]


def test_gzip_that_is_cut_is_refused(tmp_path):
    path = tmp_path / "x.csv.gz"
    data = gzip.compress(b"a,b\n" + os.urandom(100_000).hex().encode() + b",2\n", mtime=0)
    path.write_bytes(data[: len(data) // 2])
    with raises_with(SourceError, "compressed", path=str(path)):
        list(open_source(path, TextFiles()).blocks())


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("x.txt", "delimiter"),
        ("x.bin", "'.bin'"),
        ("x", "''"),
    ],
)
def test_file_of_unknown_kind_is_refused_with_advice(tmp_path, name, facts):
    (tmp_path / name).write_bytes(b"some bytes")
    with raises_with(OptionError, facts):
        open_source(tmp_path / name, TextFiles())


def test_table_of_another_name_is_recognized_by_its_content(tmp_path, read):
    (tmp_path / "x.txt").write_text("a;b\n1;2\n3;4\n")
    assert read(tmp_path / "x.txt") == {"a": ["1", "3"], "b": ["2", "4"]}
    (tmp_path / "x.dat").write_text('[{"a": 1}]')
    assert read(tmp_path / "x.dat") == {"a": [1]}
    (tmp_path / "y.txt").write_text("a sentence, with a comma\nand another; one\n")
    with raises_with(OptionError, "delimiter"):
        open_source(tmp_path / "y.txt", TextFiles())


def test_text_file_is_a_csv_once_its_delimiter_is_given(tmp_path, read):
    (tmp_path / "x.txt").write_text("a b\n1 2\n")
    assert read(tmp_path / "x.txt", delimiter=" ") == {"a": ["1"], "b": ["2"]}


def test_csv_that_is_something_else_is_refused(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"<!DOCTYPE html><html></html>")
    with raises_with(SourceError, got=containing("HTML")):
        open_source(tmp_path / "x.csv", TextFiles())


def test_duplicate_column_of_parquet_is_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "x.parquet")
    with raises_with(SourceError, "column 1", field="a"):
        open_source(tmp_path / "x.parquet", TextFiles())


def test_file_named_twice_is_read_once_with_a_note(tmp_path):
    path = tmp_path / "p1.csv"
    path.write_text("a\n1\n")
    source = open_source([path, str(path), path], TextFiles())
    assert source.num_bytes == path.stat().st_size
    assert source.notes == (containing("p1.csv"),)


def test_column_that_parquet_keeps_as_codes_is_declared_a_category(tmp_path):
    table = pa.table({"c": pa.array(["a", None]).dictionary_encode(), "t": ["x", "y"]})
    pq.write_table(table, tmp_path / "x.parquet")
    source = open_source(tmp_path / "x.parquet", TextFiles())
    assert source.declared == {"c": Category()}
    assert [block.columns["c"].to_pylist() for block in source.blocks()] == [["a", None]]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_many_files_are_not_open_at_once(tmp_path, suffix):
    for number in range(60):
        data = b"n,s\n1,a\n2,b\n"
        path = tmp_path / f"{number:02}{suffix}"
        path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    peeked = PeekedSource(open_source(tmp_path, TextFiles()), num_threads=2)
    assert len(list(descriptors.iterdir())) <= before + 5
    assert sum(block.num_rows for block in peeked.blocks()) == 120
