"""A few whole messages of errors: the form *where: what: expected X, got Y. What to do.* in real cases.

All other tests compare the attributes of errors, so that wording can improve; a better sentence changes here.
"""

import pytest

import penstock as ps
from penstock.errors import PenstockError
from record_files import BASE, FRAME_BYTES, PAYLOADS, flip, write_plain


def read_message(action):
    with pytest.raises(PenstockError) as caught:
        action()
    return str(caught.value)


def test_message_of_a_damaged_payload(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(BASE, 2 * FRAME_BYTES + 30))
    assert read_message(lambda: list(ps.open(path)["all"])) == (
        f"{path}: payload CRC of record 2 at byte 170: expected 0x24729d5c, got 0x9766abac. "
        f"Run 'penstock verify {path}'."
    )


def test_message_of_a_short_row(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text('name,age\n"Rex\nthe dog",3\nAda\n')
    assert read_message(lambda: ps.convert(path, tmp_path / "out")) == (
        f"{path}: number of cells in row 2 (line 4): expected 2, got 1. "
        "Complete the row, or read absent cells as missing: `short_rows='fill'`."
    )


def test_message_of_a_missing_shard(tmp_path):
    write_plain(tmp_path / "train-00000-of-00002.tfrecord", PAYLOADS)
    assert read_message(lambda: ps.open(tmp_path)) == (
        f"{tmp_path}: shard train-00001-of-00002.tfrecord is missing: expected 2 files, got 1. "
        "Restore the missing file, or pass the existing files one by one."
    )


def test_message_of_an_option(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    assert read_message(lambda: ps.open(path, on_error="ignore")) == (
        "on_error: expected 'raise', 'skip' or 'collect', got 'ignore'. The default is 'raise'."
    )
