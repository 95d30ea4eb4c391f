"""The walk through what Penstock does."""

import struct
import zlib

import pytest

import penstock as ps
from penstock.errors import PathError
from penstock.jobs.demo import DAMAGED_RECORD, demo
from penstock.jobs.inspect import Inspection
from penstock.jobs.meadow import write_meadow
from penstock.jobs.repair import Repair
from penstock.jobs.verify import Verification


def test_demo_finds_and_removes_the_one_record_that_it_damaged(tmp_path) -> None:
    steps = list(demo(tmp_path / "demo"))
    facts = {key: value for step in steps for key, value in step.facts.items()}
    assert (facts["records"], facts["kept"], facts["lost"]) == (300, 299, 1)
    assert [fault["record"] for fault in facts["faults"]] == [DAMAGED_RECORD]
    assert facts["gone"] == [f"flower-{120 + DAMAGED_RECORD}"]
    kinds = [type(step.result) for step in steps]
    assert [kind for kind in kinds if kind not in (str, dict)] == [Inspection, Verification, Repair]


def test_demo_shows_a_field_of_every_type(tmp_path) -> None:
    facts = next(step.facts for step in demo(tmp_path) if "fields" in step.facts)
    assert set(facts["fields"].values()) == {"text", "image", "category", "number", "sequence"}


def test_demo_in_a_folder_that_holds_something_is_refused(tmp_path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(PathError, match="is there, and is not empty"):
        next(demo(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_meadow_is_the_same_every_time(tmp_path) -> None:
    one, two = write_meadow(tmp_path / "one"), write_meadow(tmp_path / "two")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_meadow_photos_are_real_pngs(tmp_path) -> None:
    write_meadow(tmp_path)
    photo = ps.open(tmp_path)["train"][0]["photo"]
    assert photo.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(photo):
        size, name = struct.unpack_from(">I4s", photo, at)
        content = photo[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", photo, at + 8 + size)[0] == zlib.crc32(name + content)
        chunks[name] = content
        at += 12 + size
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (16, 16, 8, 2, 0, 0, 0)
    assert len(zlib.decompress(chunks[b"IDAT"])) == 16 * (1 + 16 * 3)
