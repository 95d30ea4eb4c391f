"""The raw data of the demo."""

import csv
import io
import json
import struct
import zlib

import numpy as np
import pytest

from penstock.jobs.meadow import NUM_MORE, NUM_NEW, TARGET, write_meadow

NUM_FLOWERS = 1200
LOST = NUM_FLOWERS + 7


@pytest.fixture(scope="module")
def meadow(tmp_path_factory):
    """The raw data."""
    return write_meadow(tmp_path_factory.mktemp("meadow") / "raw", NUM_FLOWERS)


def read_rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def read_pixels(photo: bytes):
    """Return the pixels of a PNG, after a look at the CRC of each chunk."""
    assert photo.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(photo):
        size, name = struct.unpack_from(">I4s", photo, at)
        content = photo[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", photo, at + 8 + size)[0] == zlib.crc32(name + content)
        chunks[name] = content
        at += 12 + size
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (16, 16, 8, 2, 0, 0, 0)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(16, 49)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(16, 16, 3)


def is_red(folder, row) -> bool:
    """Return whether a photo has red in it: grass and blue flowers have less red than green."""
    pixels = read_pixels((folder / row["photo"]).read_bytes()).astype(int)
    return bool((pixels[..., 0] > 2 * pixels[..., 1]).any())


def judge(told, answers) -> float:
    """Return which part is told rightly by the most frequent answer among rows that look the same."""
    groups: dict = {}
    for each, answer in zip(told, answers, strict=True):
        groups.setdefault(each, []).append(answer)
    return sum(max(map(group.count, set(group))) for group in groups.values()) / len(answers)


def test_meadow_is_the_same_every_time_however_many_flowers_follow(meadow, tmp_path) -> None:
    fewer = write_meadow(tmp_path, 100)
    assert read_rows(fewer.flowers) == read_rows(meadow.flowers)[:100]
    assert len(list((tmp_path / "photos").iterdir())) == 100 + NUM_MORE + NUM_NEW - 1
    for photo in sorted((tmp_path / "photos").iterdir())[:100]:
        assert photo.read_bytes() == (meadow.flowers.parent / "photos" / photo.name).read_bytes()


def test_meadow_has_a_photo_for_every_row_but_one(meadow) -> None:
    rows = [row for path in (meadow.flowers, meadow.more, meadow.new) for row in read_rows(path)]
    assert [row["id"] for row in rows] == [
        f"flower-{number:03}" for number in range(NUM_FLOWERS + NUM_MORE + NUM_NEW)
    ]
    folder = meadow.flowers.parent
    assert [row["id"] for row in rows if not (folder / row["photo"]).exists()] == [f"flower-{LOST}"]
    assert read_rows(meadow.more)[7]["id"] == f"flower-{LOST}"


def test_new_rows_of_the_meadow_hold_no_answers(meadow) -> None:
    rows = read_rows(meadow.new)
    assert TARGET not in rows[0]
    assert list(rows[0]) == [name for name in read_rows(meadow.flowers)[0] if name != TARGET]
    assert list(meadow.answers) == [row["id"] for row in rows]
    assert set(meadow.answers.values()) == {"yes", "no"}


def test_meadow_tells_little_by_one_input_and_much_by_all(meadow) -> None:
    rows = read_rows(meadow.flowers)
    answers = [row[TARGET] for row in rows]
    hours = [np.array(json.loads(row["visit_hours"]), int) for row in rows]
    reds = [is_red(meadow.flowers.parent, row) for row in rows]
    shades = ["shade" in row["note"] for row in rows]
    early = [int(np.sign((each < 12).sum() - (each >= 12).sum())) for each in hours]
    many = [len(each) > 4 for each in hours]
    soils = [row["soil"] for row in rows]
    alone = {
        "photo": judge(reds, answers),
        "note": judge(shades, answers),
        "hours": judge(list(zip(early, many, strict=True)), answers),
        "soil": judge(soils, answers),
    }
    together = judge(list(zip(reds, shades, early, many, soils, strict=True)), answers)
    assert 0.45 < answers.count("yes") / len(answers) < 0.55
    assert all(0.53 < share < 0.72 for share in alone.values())
    assert together > max(alone.values()) + 0.12
