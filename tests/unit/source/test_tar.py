"""Members of tar archives."""

import gzip
import tarfile

import pytest

from penstock.errors import SourceError
from penstock.source.tar import TarReader, begins_like_tar
from raising import raises_with
from tar_files import pack, pack_typed

FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
FILES = {
    "a.txt": b"",
    "b/c.txt": b"x",
    "b/d.txt": b"y" * 512,
    "e.bin": bytes(range(256)) * 20,
    "f" * 90 + "/" + "g" * 90 + ".txt": b"prefix",
}
LONG = {"h" * 300 + ".txt": b"long", "é/日本.txt": b"unicode"}


@pytest.fixture(params=["plain", "gzip"])
def read(request, tmp_path):
    """Write an archive, plain and compressed, and return the names and bytes of its members."""

    def read(data: bytes, *, skip: bool = False):
        path = tmp_path / "a.tar"
        path.write_bytes(data if request.param == "plain" else gzip.compress(data))
        reader = TarReader(path)
        found = {each.name: None if skip else reader.read_member() for each in reader.members()}
        assert reader.position == path.stat().st_size
        return found

    return read


@pytest.mark.parametrize("form", FORMS)
def test_members_of_every_format_are_read(form, read):
    files = FILES if form == "ustar" else FILES | LONG
    data = pack(files, FORMS[form])
    assert begins_like_tar(data)
    assert read(data) == files
    assert list(read(data, skip=True)) == list(files)


def test_parts_of_a_member_are_read_and_the_rest_is_skipped(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(pack({"a": b"0123456789", "b": b"next"}))
    reader = TarReader(path)
    members = reader.members()
    assert next(members).num_bytes == 10
    assert (reader.read_member(3), reader.read_member(4)) == (b"012", b"3456")
    assert next(members).name == "b"
    assert (reader.read_member(100), reader.read_member()) == (b"next", b"")


def test_size_in_base_256_and_in_an_extended_header_is_read(read):
    header = tarfile.TarInfo("a").tobuf(tarfile.USTAR_FORMAT)
    binary = bytearray(header)
    binary[124:136] = b"\x80" + (3).to_bytes(11, "big")
    binary[148:156] = b" " * 8
    binary[148:156] = b"%06o\0 " % sum(binary)
    assert read(bytes(binary) + b"abc".ljust(512, b"\0") + bytes(1024)) == {"a": b"abc"}
    info = tarfile.TarInfo("a")
    info.pax_headers = {"size": "3", "comment": "x"}
    extended = info.tobuf(tarfile.PAX_FORMAT)
    assert read(extended + b"abc".ljust(512, b"\0") + bytes(1024)) == {"a": b"abc"}


def test_entries_of_extended_headers_that_no_member_needs_are_not_kept(tmp_path, monkeypatch):
    kept = []
    extend = TarReader._read_extension

    def read_extension(self, header, extended):
        extend(self, header, extended)
        kept.append(set(extended))

    monkeypatch.setattr(TarReader, "_read_extension", read_extension)
    headers = []
    for number in range(5):
        info = tarfile.TarInfo("a")
        info.pax_headers = {f"key{number}": "x" * 1000, f"GNU.sparse.{number}": "y", "path": "b"}
        headers.append(info.tobuf(tarfile.PAX_FORMAT)[: -tarfile.BLOCKSIZE])
    path = tmp_path / "a.tar"
    path.write_bytes(b"".join(headers) + tarfile.TarInfo("a").tobuf() + bytes(1024))
    with raises_with(SourceError, got="sparse file"):
        list(TarReader(path).members())
    assert kept == [{"path", "GNU.sparse."}] * 5


def test_checksum_of_signed_bytes_is_accepted(read):
    header = bytearray(tarfile.TarInfo("\xe9").tobuf(tarfile.USTAR_FORMAT, "latin-1"))
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(each - 256 if each > 127 else each for each in header)
    assert read(bytes(header) + bytes(1024)) == {"\\xe9": b""}


def test_folders_and_a_leading_dot_are_no_part_of_a_name(read):
    data = pack_typed(
        [("./", tarfile.DIRTYPE, b""), ("./b", tarfile.DIRTYPE, b""), ("./b//c", tarfile.REGTYPE, b"x")]
    )
    assert read(data) == {"b/c": b"x"}


def test_links_and_devices_are_counted_and_left_out(tmp_path):
    kinds = [
        tarfile.SYMTYPE,
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
    ]
    path = tmp_path / "a.tar"
    path.write_bytes(pack_typed([*((f"m{i}", kind, b"") for i, kind in enumerate(kinds)), ("n", b"0", b"x")]))
    reader = TarReader(path)
    assert [(each.name, reader.read_member()) for each in reader.members()] == [("n", b"x")]
    assert reader.left_out == {
        "symbolic link": (2, "m0"),
        "hard link": (1, "m2"),
        "device": (2, "m3"),
        "named pipe": (1, "m5"),
    }


@pytest.mark.parametrize("name", ["../a", "a/../b", "/etc/passwd", ".."])
def test_names_outside_the_archive_are_refused(name, read):
    with raises_with(SourceError, expected="a path inside the archive"):
        read(pack({name: b"x"}))


def test_a_file_of_another_format_is_named(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(b"PAR1" + bytes(600))
    with raises_with(SourceError, got="a Parquet file", path=str(path)):
        TarReader(path)
