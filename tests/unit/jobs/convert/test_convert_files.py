"""Photos in class folders, read by several threads: the same files and the same errors for any number."""

import hashlib
import json
import struct

import numpy as np
import pytest

import penstock as ps
from penstock.errors import CellError, ChangedFileError

THREADS = (1, 2, 3, 8, 16)
SHARDS = "bbdda91445e64ced"
STATISTICS = "a89ccb2577ae1fba"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Write 700 photos, and four files that are not: their rows are 101, 402, 403 and 704."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(7)
    for number in range(700):
        path = folder / f"class-{number % 3}" / f"{number:03}.gif"
        path.parent.mkdir(exist_ok=True)
        size = struct.pack("<HH", *rng.integers(1, 500, 2).tolist())
        path.write_bytes(b"GIF89a" + size + rng.bytes(int(rng.integers(0, 9000))))
    (folder / "class-0" / "300b.gif").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    (folder / "class-1" / "501b.gif").write_bytes(b"")
    (folder / "class-1" / "501c.gif").symlink_to(folder / "none.gif")
    (folder / "class-2" / "zzz.gif").write_bytes(b"GIF89a")
    return folder


def digest(values):
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def digest_files(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_files_and_skipped_rows_are_the_same_for_any_number_of_threads(photos, tmp_path):
    found = {}
    for num_threads in THREADS:
        out = tmp_path / str(num_threads)
        pets = ps.convert(photos, out, num_threads=num_threads, num_shards=3, on_error="skip")
        found[num_threads] = digest_files(out), [(each.row, str(each)) for each in pets.rejected]
    files, errors = found[1]
    assert all(each == (files, errors) for each in found.values())
    assert [row for row, _ in errors] == [102, 403, 404, 704]
    reasons = ("a Git LFS pointer", "no bytes", "no such file", "a GIF image whose header is damaged")
    for (_, text), reason in zip(errors, reasons, strict=True):
        assert reason in text
    # These are the bytes of versions that read the files of a block one after the other.
    form = json.loads((tmp_path / "1" / "penstock.json").read_text())
    assert digest({name: sha256 for name, sha256 in files.items() if name.endswith(".tfrecord")}) == SHARDS
    assert digest(form["statistics"]) == STATISTICS


@pytest.mark.parametrize("num_threads", THREADS)
def test_first_file_that_is_no_photo_is_the_error(photos, tmp_path, num_threads):
    with pytest.raises(CellError) as caught:
        ps.convert(photos, tmp_path / "out", num_threads=num_threads)
    assert caught.value.row == 102
    assert caught.value.got == f"'{photos}/class-0/300b.gif', a Git LFS pointer"
    assert "on_error='skip'" in caught.value.advice


@pytest.mark.parametrize("num_threads", [1, 4])
def test_photo_that_changes_after_it_was_read_is_an_error(photos, tmp_path, monkeypatch, num_threads):
    from penstock.shards.conversion import Conversion  # noqa: PLC0415

    folder = tmp_path / "photos"
    for number in range(100):
        path = folder / "a" / f"{number}.gif"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"GIF89a" + struct.pack("<HH", 3, 4) + bytes([number]) * 5000)
    write_shards = Conversion._write_shards

    def change(self, *given):
        path = folder / "a" / "50.gif"
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        return write_shards(self, *given)

    monkeypatch.setattr(Conversion, "_write_shards", change)
    with pytest.raises(ChangedFileError) as caught:
        ps.convert(folder, tmp_path / "out", num_threads=num_threads)
    assert caught.value.path == str(folder / "a" / "50.gif")
    assert not (tmp_path / "out" / "penstock.json").exists()
