"""The walk through what Penstock does."""

import csv
import io
import json
import struct
import zlib
from collections import defaultdict

import numpy as np
import pytest

import penstock as ps
from penstock.errors import CellError, PathError
from penstock.jobs.convert import Converted
from penstock.jobs.demo import DAMAGED_RECORD, demo
from penstock.jobs.figures import BenchReport
from penstock.jobs.inspect import Inspection
from penstock.jobs.meadow import FLOWERS, LOST_PHOTO, MORE_FLOWERS, write_meadow
from penstock.jobs.repair import Repair
from penstock.jobs.verify import Verification
from penstock.schema.plan import Plan

RED = bytes((214, 40, 36))


@pytest.fixture(scope="module")
def meadow(tmp_path_factory):
    """The folder that holds the raw data."""
    folder = tmp_path_factory.mktemp("meadow") / "raw"
    write_meadow(folder)
    return folder


def read_rows(folder, name="flowers.csv"):
    return list(csv.DictReader(io.StringIO((folder / name).read_text())))


def read_pixels(photo: bytes) -> bytes:
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
    lines = zlib.decompress(chunks[b"IDAT"])
    return b"".join(lines[at + 1 : at + 49] for at in range(0, len(lines), 49))


def test_demo_converts_finds_and_removes_the_one_record_that_it_damaged(tmp_path) -> None:
    facts, kinds, damaged = {}, [], None
    for step in demo(tmp_path / "demo"):
        facts |= step.facts
        kinds.append(type(step.result))
        if "converted" in step.facts:
            damaged = ps.open(tmp_path / "demo" / "meadow")["train"][DAMAGED_RECORD]["id"]
    assert facts["splits"] == {"train": 240, "validation": 30, "test": 30}
    assert (facts["records"], facts["converted"], facts["rejected"]) == (300, 309, 1)
    assert (facts["kept"], facts["lost"]) == (308, 1)
    assert [fault["record"] for fault in facts["faults"]] == [DAMAGED_RECORD, None]
    assert facts["faults"][1]["what"].startswith("SHA-256, by the manifest: expected ")
    assert facts["gone"] == [damaged]
    assert [kind for kind in kinds if kind not in (str, dict)] == [
        Plan,
        Converted,
        Inspection,
        BenchReport,
        CellError,
        Converted,
        Verification,
        Repair,
    ]


def test_demo_names_the_row_whose_photo_is_lost(tmp_path) -> None:
    facts = {key: value for step in demo(tmp_path) for key, value in step.facts.items()}
    where = f"{tmp_path / 'more.csv'}: column 'photo' in row 8 (line 9): "
    photo = tmp_path / "photos" / "flower-307.png"
    assert facts["error"] == f"{where}expected a PNG image, got '{photo}', no such file."
    (line,) = (tmp_path / "meadow" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(line)["sample"]["id"] == "flower-307"


def test_demo_shows_a_field_of_every_type_but_arrays(tmp_path) -> None:
    facts = next(step.facts for step in demo(tmp_path) if "fields" in step.facts)
    assert set(facts["fields"].values()) == {"text", "image", "category", "number", "sequence"}


def test_demo_loads_an_epoch_and_goes_on_from_its_middle(tmp_path) -> None:
    results, facts = {}, {}
    for step in demo(tmp_path):
        facts |= step.facts
        results[step.title] = step.result
        if isinstance(step.result, BenchReport):
            break
    table = results["From fields to what a model takes"]
    assert [line.split()[0] for line in table.splitlines()] == ["output", *facts["outputs"], "–"]
    assert facts["outputs"] == {
        "photo": "uint8 (n, 16, 16, 3)",
        "note": "int32 (n, ?)",
        "petal_cm": "float32 (n,)",
        "soil": "int32 (n,)",
        "plot": "int32 (n,)",
        "seen_on": "float32 (n,)",
        "visit_hours": "int64 (n, ?)",
        "sets_seed": "int32 (n,)",
    }
    assert [shapes["petal_cm"] for shapes in facts["shapes"]] == [(64,), (64,), (64,), (48,)]
    assert {tuple(shapes) for shapes in facts["shapes"]} == {tuple(facts["outputs"])}
    assert (facts["state"]["epoch"], facts["state"]["step"]) == (1, 2)
    assert facts["is_same_rest"] is True
    assert results["Stop anywhere, and go on there"].splitlines() == [
        json.dumps(facts["state"]),
        "The 2 batches that are left are the same, byte for byte, as those of the first loader.",
    ]


def test_demo_measures_the_train_split_before_it_is_damaged(tmp_path) -> None:
    report = next(step.result for step in demo(tmp_path) if isinstance(step.result, BenchReport))
    assert (report.split, report.measured.num_records, report.measured.steps_per_epoch) == ("train", 240, 4)
    assert report.later is not None
    assert report.judged.records_per_second > 0


def test_demo_in_a_folder_that_holds_something_is_refused(tmp_path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(PathError, match="is there, and is not empty"):
        next(demo(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_meadow_is_the_same_every_time(meadow, tmp_path) -> None:
    write_meadow(tmp_path)
    names = sorted(str(path.relative_to(meadow)) for path in meadow.rglob("*.*"))
    assert names == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    for name in names:
        assert (meadow / name).read_bytes() == (tmp_path / name).read_bytes()


def test_meadow_has_a_photo_for_every_row_but_one(meadow) -> None:
    rows = read_rows(meadow) + read_rows(meadow, "more.csv")
    assert [row["id"] for row in rows] == [f"flower-{n:03}" for n in (*FLOWERS, *MORE_FLOWERS)]
    lost = [row["id"] for row in rows if not (meadow / row["photo"]).exists()]
    assert lost == [f"flower-{LOST_PHOTO}"]
    assert len(read_pixels((meadow / rows[0]["photo"]).read_bytes())) == 16 * 16 * 3


def test_meadow_target_needs_photo_hours_and_note_and_no_two_of_them_tell_it(meadow) -> None:
    by_two = [defaultdict(set) for _ in range(3)]
    answers = []
    for row in read_rows(meadow):
        is_red = RED in read_pixels((meadow / row["photo"]).read_bytes())
        is_shaded = "shade" in row["note"]
        hours = np.array(json.loads(row["visit_hours"]))
        visits = (int((hours < 12).sum()), int((hours >= 12).sum()))
        answers.append(row["sets_seed"])
        assert answers[-1] == ("yes" if visits[0 if is_red else 1] >= 2 + is_shaded else "no")
        for told, known in zip(
            by_two, ((is_red, is_shaded), (is_red, visits), (is_shaded, visits)), strict=True
        ):
            told[known].add(answers[-1])
    for told in by_two:
        assert {"yes", "no"} in told.values()
    assert 120 <= answers.count("yes") <= 180
