"""A wide terminal, and files for the commands to look at."""

import pytest

from record_files import BASE, FRAME_BYTES, example, flip, write_gzip, write_plain


@pytest.fixture(autouse=True)
def _wide(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def zoo(tmp_path):
    """A folder with two splits; its photos are no more than the beginning of one."""
    return write_animals(tmp_path / "zoo", b"\xff\xd8\xff")


@pytest.fixture
def herd(tmp_path):
    """The same, with opaque bytes instead of photos."""
    return write_animals(tmp_path / "herd", b"\xff\xd7\xff")


def write_animals(folder, photo):
    folder.mkdir()
    animals = [
        example(
            name=f"animal {n}",
            legs=n % 2 * 2 + 2,
            weight=n / 2,
            photo=photo + bytes(n),
            tags=["a"] * (1 + n % 3),
        )
        for n in range(1, 31)
    ]
    write_plain(folder / "train.tfrecord", animals[:20])
    write_gzip(folder / "test.tfrecord.gz", animals[20:])
    return folder


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "damaged.tfrecord"
    path.write_bytes(flip(BASE, 2 * FRAME_BYTES + 40))
    return path
