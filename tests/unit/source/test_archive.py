"""Tables in archives and compressed files."""

import bz2
import json
import lzma
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CellError, NoSuchPathError, OptionError, SourceError
from penstock.jobs.convert.convert import convert
from penstock.schema.scalar import Number
from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source
from penstock.source.recognition import is_dataset
from raising import containing, raises_with


@pytest.fixture
def pack(tmp_path):
    """Write an archive of some members."""

    def pack(name="data.zip", **options):
        def write(members):
            path = tmp_path / name
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for member, data in members.items():
                    archive.writestr(member, data)
            return path

        return write

    return pack()


def opened(path):
    return open_source(path, TextFiles())


def test_zip_with_one_table_is_read_with_the_digest_of_the_archive(pack, read):
    path = pack(
        {"folder/": b"", "folder/pets.csv": b"a;b\n1;2\n", "README.md": b"x", "__MACOSX/._pets.csv": b""}
    )
    assert read(path) == {"a": ["1"], "b": ["2"]}
    source = opened(path)
    assert source.notes == (containing("pets.csv", "delimiter ';'"),)
    (entry,) = source.provenance()
    assert (entry["name"], entry["bytes"]) == ("data.zip", path.stat().st_size)


def test_zip_with_a_table_and_a_tar_archive_is_the_table(pack, read):
    assert read(pack({"pets.csv": "age\n1\n", "photos.tar": "x"})) == {"age": ["1"]}


def test_zip_with_json_or_parquet_is_read(pack, read, tmp_path):
    assert read(pack({"a.json": json.dumps([{"a": 1}, {"a": 2}])})) == {"a": [1, 2]}
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
    assert read(pack({"a.parquet": (tmp_path / "a.parquet").read_bytes()})) == {"a": [1, 2]}


def test_zip_with_several_tables_lists_them_and_reads_the_one_that_is_named(pack, read):
    path = pack({"a.csv": "x\n1\n", "sub/b.csv": "y\n2\n"})
    with raises_with(
        SourceError, got=containing("'a.csv'", "'sub/b.csv'"), advice=containing("data.zip/a.csv")
    ):
        opened(path)
    assert read(path / "a.csv") == {"x": ["1"]}
    assert read(str(path / "sub" / "b.csv")) == {"y": ["2"]}
    assert not is_dataset([str(path / "a.csv"), str(path / "sub" / "b.csv")])
    with raises_with(NoSuchPathError, what=containing("c.csv"), advice=containing("'a.csv'")):
        opened(path / "c.csv")


@pytest.mark.parametrize("members", [{}, {"a.png": b"x", "b.png": b"y"}])
def test_zip_without_a_table_is_refused(pack, members):
    with raises_with(SourceError, what=containing("tables"), expected="one"):
        opened(pack(members))


def test_zip_with_one_file_of_another_name_is_read_if_it_is_a_table(pack, read):
    assert read(pack({"pets": b"a,b\n1,2\n"})) == {"a": ["1"], "b": ["2"]}
    path = pack({"a.txt": b"x"})
    with raises_with(OptionError, what="kind of file", path=str(path)):
        opened(path)


def test_zip_that_names_other_folders_writes_nothing_there(pack, read, tmp_path):
    path = pack({"../../escaped.csv": b"a\n1\n"})
    assert read(path) == {"a": ["1"]}
    assert not list(tmp_path.parent.rglob("escaped.csv"))


def test_zip_bomb_is_refused(pack):
    path = pack({"a.csv": b"a\n" + b"1" * (64 << 20)})
    with raises_with(SourceError, what=containing("expands")):
        opened(path)


def test_zip_with_a_password_is_refused(pack):
    path = pack({"a.csv": b"a\n1\n"})
    data = bytearray(path.read_bytes())
    for magic, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flags of both headers
        data[data.index(magic) + flag] |= 1
    path.write_bytes(bytes(data))
    with raises_with(SourceError, what=containing("encrypted")):
        opened(path)


@pytest.mark.parametrize("cut", [5, 40, -30])
def test_zip_that_is_damaged_is_refused(pack, cut):
    path = pack({"a.csv": b"a,b\n" + b"1,2\n" * 100})
    path.write_bytes(path.read_bytes()[:cut])
    with raises_with(SourceError, advice=containing("damaged")):
        opened(path)


def test_zip_errors_name_the_archive_and_the_line(pack, tmp_path):
    path = pack({"a.csv": b"a,b\n1,2\n3\n"})
    with raises_with(SourceError, path=str(path), line=3):
        list(opened(path).blocks())
    path = pack({"a.csv": b"a\n1\nx\n"})
    with raises_with(CellError, path=str(path), row=2, line=3):
        convert(path, tmp_path / "out", fields={"a": Number()})


@pytest.mark.parametrize(("suffix", "compress"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_other_compressions_are_read(tmp_path, read, suffix, compress):
    path = tmp_path / f"pets.csv{suffix}"
    path.write_bytes(compress(b"a,b\n1,2\n"))
    assert read(path) == {"a": ["1"], "b": ["2"]}
    path.write_bytes(compress(b"a,b\n1,2\n")[:-9])
    with raises_with(SourceError, path=str(path), advice=containing("damaged")):
        opened(path)
