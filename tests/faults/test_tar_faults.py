"""Tar archives that are damaged or hostile: no row is lost without an error, and memory stays bounded."""

import gzip
import resource
import tarfile
import zlib

import pytest

import penstock as ps
from penstock.errors import SourceError
from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source
from penstock.source.tar import MAX_HEADER_BYTES
from raising import containing, raises_with
from tar_files import make_samples, pack, pack_typed

BLOCK = 512
MEMBERS = {
    "0.txt": b"first",
    "0.cls": b"0",
    "1.txt": b"s" * 600,
    "1.cls": b"1",
    "2.txt": b"third",
    "2.cls": b"0",
}
DATA = pack(MEMBERS, tarfile.USTAR_FORMAT)
END = DATA.rindex(b"0", 0, len(DATA.rstrip(b"\0")))  # somewhere in the last member
ROWS = {"__key__": ["0", "1", "2"], "txt": [b"first", b"s" * 600, b"third"], "cls": [0, 1, 0]}


def read(path):
    """Return the rows of an archive by column."""
    blocks = list(open_source(path, TextFiles()).blocks())
    return {
        name: [cell for block in blocks for cell in block.columns[name].to_pylist()]
        for name in blocks[0].columns
    }


@pytest.fixture
def write(form, tmp_path):
    """Write an archive, plain or compressed."""

    def write(data: bytes, name: str = "a.tar"):
        path = tmp_path / name
        path.write_bytes(data if form == "plain" else gzip.compress(data, mtime=0))
        return path

    return write


def test_an_archive_that_is_cut_at_any_byte_is_an_error_or_complete(write):
    first_zeros = 7 * BLOCK + 6 * BLOCK  # six headers, seven blocks of content
    assert DATA[first_zeros : first_zeros + BLOCK] == bytes(BLOCK)
    for stop in (
        *range(0, first_zeros, 37),
        *range(BLOCK - 1, first_zeros + BLOCK, BLOCK),
        *range(0, first_zeros, BLOCK),
    ):
        with raises_with(SourceError, path=containing("a.tar")):
            read(write(DATA[:stop]))
    for stop in (first_zeros + BLOCK, first_zeros + BLOCK + 7, first_zeros + 2 * BLOCK, len(DATA)):
        assert read(write(DATA[:stop])) == ROWS


def test_an_archive_with_gzip_that_is_cut_at_any_byte_is_an_error(tmp_path):
    data = gzip.compress(DATA, mtime=0)
    path = tmp_path / "a.tar.gz"
    for stop in range(3, len(data)):
        path.write_bytes(data[:stop])
        with raises_with(SourceError, path=str(path)):
            read(path)
    path.write_bytes(data)
    assert read(path) == ROWS


@pytest.mark.parametrize("start", [member * BLOCK for member in (0, 2, 4, 7, 9, 11)])
def test_a_flipped_bit_in_a_header_is_an_error(start, write):
    for offset in (*range(3), 105, *range(124, 136, 3), *range(148, 155), 156, 200, 257, 300, 511):
        damaged = bytearray(DATA)
        damaged[start + offset] ^= 1
        with raises_with(SourceError, path=containing("a.tar"), offset=start):
            read(write(bytes(damaged)))


def forge(name: str, size: bytes, kind: bytes = b"0") -> bytes:
    """Return a header with a valid checksum and any bytes as the size."""
    header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
    header[124:136], header[156:157] = size.ljust(12, b"\0"), kind
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


SIZES = {
    "a gigabyte": b"%o" % (1 << 30),
    "all digits": b"7" * 11,
    "2^62": b"\x80" + (1 << 62).to_bytes(11, "big"),
    "2^80": b"\x80" + (1 << 80).to_bytes(11, "big"),
    "negative": b"\xff" * 12,
    "no digits": b"12x",
}


@pytest.mark.parametrize("kind", [b"0", b"x", b"L", b"5"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_size_beyond_the_archive_is_refused_before_memory_is_taken(size, kind, write):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = DATA[: 13 * BLOCK] + forge("3.txt", size, kind) + b"x" * BLOCK + bytes(2 * BLOCK)
    with raises_with(SourceError, path=containing("a.tar")):
        read(write(data))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_extended_headers_are_limited(write):
    info = tarfile.TarInfo("a.txt")
    info.pax_headers = {"comment": "x" * (MAX_HEADER_BYTES + 1)}
    data = info.tobuf(tarfile.PAX_FORMAT) + bytes(2 * BLOCK)
    with raises_with(SourceError, expected=containing(str(MAX_HEADER_BYTES))):
        read(write(data))


@pytest.mark.parametrize(
    "records",
    [b"9 a=b\n", b"6 a=b\n\n", b"x a=b\n", b"6 a=bc", b"0 a=b\n", b"5 ab\n", b"99999999999999999999 a=b\n"],
)
def test_extended_headers_that_are_not_valid_are_refused(records, write):
    data = forge("x", b"%o" % len(records), b"x") + records.ljust(BLOCK, b"\0") + DATA
    with raises_with(SourceError, what="extended header"):
        read(write(data))


@pytest.mark.parametrize(
    "headers", [{"GNU.sparse.major": "1", "GNU.sparse.realsize": "9" * 15}, {"GNU.sparse.map": "0,1"}]
)
def test_sparse_files_are_refused(headers, write):
    info = tarfile.TarInfo("a.txt")
    info.pax_headers = headers
    for data in (info.tobuf(tarfile.PAX_FORMAT), forge("a.txt", b"0", b"S")):
        with raises_with(SourceError, got="sparse file"):
            read(write(data + DATA))


@pytest.mark.parametrize("name", ["../../evil.txt", "/evil.txt", "a/../../evil.txt"])
def test_names_that_lead_out_of_the_archive_are_refused(name, write, tmp_path):
    with raises_with(SourceError, what=containing("evil.txt"), expected="a path inside the archive"):
        read(write(pack({"0.txt": b"x", name: b"y"})))
    assert [each.name for each in tmp_path.iterdir()] == ["a.tar"]


def test_links_are_never_followed_and_counted_in_a_note(write, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    members = [
        ("0.txt", tarfile.REGTYPE, b"x"),
        ("0.cls", tarfile.SYMTYPE, b""),
        ("1.txt", tarfile.LNKTYPE, b""),
    ]
    path = write(pack_typed(members, target=str(tmp_path / "secret")))
    assert read(path) == {"__key__": ["0"], "txt": [b"x"]}
    notes = open_source(path, TextFiles()).notes
    assert [("1 symbolic link" in note, "1 hard link" in note) for note in notes] == [
        (True, False),
        (False, True),
    ]


def test_bytes_after_the_end_are_refused(write):
    for rest in (DATA, b"x", bytes(BLOCK) + b"\1"):
        with raises_with(SourceError, what="bytes follow the end of the archive", advice=containing("a.tar")):
            read(write(DATA + rest))
    with raises_with(SourceError, what="bytes follow the end of the archive"):
        read(write(DATA[: 2 * BLOCK] + bytes(BLOCK) + DATA[2 * BLOCK :]))


def test_a_decompression_bomb_is_refused(tmp_path):
    # A member of 64 GiB of zeros that packs 1:1029 would be 64 MiB; the check comes after the first 8 MiB.
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(forge("a.bin", b"\x80" + (64 << 30).to_bytes(11, "big")))]
    parts += [packer.compress(bytes(1 << 20)) for _ in range(64)]
    path = tmp_path / "a.tar.gz"
    path.write_bytes(b"".join([*parts, packer.flush()]))
    with raises_with(SourceError, what=containing("expands too much")):
        read(path)


def test_an_unpickled_array_is_refused(write, tmp_path):
    marker = tmp_path / "ran"
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    pickled = b"cos\nsystem\n(S'touch %s'\ntR." % str(marker).encode()
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + pickled
    with raises_with(SourceError, what=containing("'0.npy'"), advice=containing("unpickled")):
        read(write(pack({"0.npy": array})))
    assert not marker.exists()


def test_nothing_is_written_when_an_archive_is_damaged(write, tmp_path):
    path = write(pack(make_samples(20))[:9000])
    with pytest.raises(SourceError):
        ps.convert(path, tmp_path / "out", target="cls")
    assert not (tmp_path / "out").exists()
