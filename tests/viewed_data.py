"""Data sets for the tests of the viewer: pictures, texts, lists, damaged and hostile records."""

import math
from pathlib import Path

from image_files import png, scene
from record_files import example, flip
from wire.frame import write_record

HOSTILE = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title='taken over'\">"
HOSTILE_NAME = '"><script>document.title = "taken over"</script>'
BREEDS = ("siamese", "persian", "sphynx")
NUM_RECORDS = 60
HOSTILE_ROW = 3
BAD_IMAGE_ROW = 5
DAMAGED_ROW = 7  # a flipped bit in its payload
LOST_ROW = 41  # in the second file, a flipped bit in its length


def write_gallery(folder: Path) -> Path:
    """Write two files of 40 and 20 records, as another program would: no manifest, no schema."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = [write_record(make_payload(row)) for row in range(NUM_RECORDS)]
    frames[DAMAGED_ROW] = flip(frames[DAMAGED_ROW], 40)
    frames[LOST_ROW] = flip(frames[LOST_ROW], 2)
    (folder / "train-00000-of-00002.tfrecord").write_bytes(b"".join(frames[:40]))
    (folder / "train-00001-of-00002.tfrecord").write_bytes(b"".join(frames[40:]))
    (folder / "test-00000-of-00001.tfrecord").write_bytes(
        b"".join(write_record(make_payload(row)) for row in range(100, 104))
    )
    return folder


def make_payload(row: int) -> bytes:
    """Return one record."""
    photo = png(scene(48, 64, seed=row))
    if row == BAD_IMAGE_ROW:
        photo = photo[: len(photo) // 2]
    note = HOSTILE if row == HOSTILE_ROW else f"Cat number {row} likes to sleep. " * (1 + row % 3)
    values = {
        "photo": photo,
        "note": note,
        "breed": BREEDS[row % 3],
        "age": row % 17,
        "weight": 2.5 + row / 8,
        "heartbeat": [math.sin(step / 3 + row) for step in range(30 + row)],
        "tokens": ["one", "two", "three"][: 1 + row % 3],
        HOSTILE_NAME: row,
    }
    if row % 10 == 9:
        del values["weight"]
    return example(**values)
