"""The raw data of the example about flowers."""

import csv
import io
import json
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from penstock.examples.flowers import NUM_MORE, NUM_NEW, TARGET, write_flowers

NUM_FLOWERS = 1200
LOST = NUM_FLOWERS + 7


class Flowers(NamedTuple):
    """A folder with raw data, and the answers for its new rows."""

    folder: Path
    answers: dict[str, str]


@pytest.fixture(scope="module")
def flowers(tmp_path_factory) -> Flowers:
    folder = tmp_path_factory.mktemp("flowers") / "raw"
    return Flowers(folder, write_flowers(folder, NUM_FLOWERS))


def read_rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def read_pixels(photo: bytes):
    """Return the pixels of a PNG, after checking the CRC of each chunk."""
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


def measure_accuracy(seen, answers) -> float:
    """Return the accuracy of predicting the most frequent answer among rows with the same input."""
    groups: dict = {}
    for each, answer in zip(seen, answers, strict=True):
        groups.setdefault(each, []).append(answer)
    return sum(max(map(group.count, set(group))) for group in groups.values()) / len(answers)


def test_raw_data_is_the_same_every_time_for_any_number_of_flowers(flowers, tmp_path) -> None:
    write_flowers(tmp_path, 100)
    assert read_rows(tmp_path / "flowers.csv") == read_rows(flowers.folder / "flowers.csv")[:100]
    assert len(list((tmp_path / "photos").iterdir())) == 100 + NUM_MORE + NUM_NEW - 1
    for photo in sorted((tmp_path / "photos").iterdir())[:100]:
        assert photo.read_bytes() == (flowers.folder / "photos" / photo.name).read_bytes()


def test_raw_data_has_a_photo_for_every_row_but_one(flowers) -> None:
    rows = [
        row
        for path in (flowers.folder / f"{name}.csv" for name in ("flowers", "more", "new"))
        for row in read_rows(path)
    ]
    assert [row["id"] for row in rows] == [
        f"flower-{number:03}" for number in range(NUM_FLOWERS + NUM_MORE + NUM_NEW)
    ]
    assert [row["id"] for row in rows if not (flowers.folder / row["photo"]).exists()] == [f"flower-{LOST}"]
    assert read_rows(flowers.folder / "more.csv")[7]["id"] == f"flower-{LOST}"


def test_new_rows_hold_no_answers(flowers) -> None:
    rows = read_rows(flowers.folder / "new.csv")
    assert TARGET not in rows[0]
    assert list(rows[0]) == [name for name in read_rows(flowers.folder / "flowers.csv")[0] if name != TARGET]
    assert list(flowers.answers) == [row["id"] for row in rows]
    assert set(flowers.answers.values()) == {"yes", "no"}


def test_all_inputs_together_predict_better_than_each_alone(flowers) -> None:
    rows = read_rows(flowers.folder / "flowers.csv")
    answers = [row[TARGET] for row in rows]
    hours = [np.array(json.loads(row["visit_hours"]), int) for row in rows]
    reds = [is_red(flowers.folder, row) for row in rows]
    shades = ["shade" in row["note"] for row in rows]
    early = [int(np.sign((each < 12).sum() - (each >= 12).sum())) for each in hours]
    many = [len(each) > 4 for each in hours]
    soils = [row["soil"] for row in rows]
    alone = {
        "photo": measure_accuracy(reds, answers),
        "note": measure_accuracy(shades, answers),
        "hours": measure_accuracy(list(zip(early, many, strict=True)), answers),
        "soil": measure_accuracy(soils, answers),
    }
    together = measure_accuracy(list(zip(reds, shades, early, many, soils, strict=True)), answers)
    assert 0.45 < answers.count("yes") / len(answers) < 0.55
    assert all(0.53 < share < 0.72 for share in alone.values())
    assert together > max(alone.values()) + 0.12
