"""Good records are kept, bad bytes are set aside, and the input is never touched."""

import gzip
import hashlib
import json
import zlib
from pathlib import Path

import pytest

import penstock as ps
from manifest_folders import write_dataset
from penstock.errors import MissingShardError, WriteError
from penstock.jobs.check.repair import repair
from penstock.settings.groups import ReadOptions
from penstock.storage.atomic import AtomicFile
from raising import containing, raises_with
from record_files import BASE, FRAME_BYTES, FRAMES, PAYLOADS, flip, row_numbers, write_gzip, write_plain
from wire.frame import write_record, write_records

COMPRESS = {"none": bytes, "gzip": gzip.compress, "zlib": zlib.compress}
INFLATE = {"none": bytes, "gzip": gzip.decompress, "zlib": zlib.decompress}
NO_EXAMPLE = write_record(b"\x0a\x7f")
JUNK = b"\xa5" * 64
# Three sorts of damage: a payload, a length, and junk between two records; and a record that is no Example.
DAMAGED = (
    FRAMES[0]
    + flip(FRAMES[1], 40)
    + FRAMES[2]
    + flip(FRAMES[3], 0)
    + FRAMES[4]
    + NO_EXAMPLE
    + FRAMES[0]
    + JUNK
    + FRAMES[1]
)
BAD_BYTES = flip(FRAMES[1], 40) + flip(FRAMES[3], 0) + NO_EXAMPLE + JUNK


def digest(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def read_losses(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "quarantine" / "losses.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("compression", COMPRESS)
def test_repair_of_much_damage_keeps_every_good_record_and_sets_aside_every_bad_byte(
    compression, tmp_path
) -> None:
    source = tmp_path / "in" / "a.tfrecord"
    source.parent.mkdir()
    source.write_bytes(COMPRESS[compression](DAMAGED))
    before = digest(source.parent)
    done = repair(source, tmp_path / "out")
    kept = INFLATE[compression]((tmp_path / "out" / "a.tfrecord").read_bytes())
    assert kept == b"".join(FRAMES[n] for n in (0, 2, 4, 0, 1))
    assert (tmp_path / "out" / "quarantine" / "a.tfrecord.bad").read_bytes() == BAD_BYTES
    assert (done.num_kept, len(done.losses), done.num_bytes_lost) == (5, 4, len(BAD_BYTES))
    assert digest(source.parent) == before


def test_repair_names_each_loss_with_its_offset_in_the_input_and_in_the_quarantine(tmp_path) -> None:
    source = tmp_path / "a.tfrecord"
    source.write_bytes(DAMAGED)
    done = repair(source, tmp_path / "out")
    losses = read_losses(tmp_path / "out")
    assert [(loss["record"], loss["offset"], loss["bytes"]) for loss in losses] == [
        (1, FRAME_BYTES, FRAME_BYTES),
        (3, 3 * FRAME_BYTES, FRAME_BYTES),
        (5, 5 * FRAME_BYTES, len(NO_EXAMPLE)),
        (7, 6 * FRAME_BYTES + len(NO_EXAMPLE), 64),
    ]
    bad = (tmp_path / "out" / "quarantine" / "a.tfrecord.bad").read_bytes()
    for loss in losses:
        begin, size = loss["quarantine_offset"], loss["bytes"]
        assert bad[begin : begin + size] == DAMAGED[loss["offset"] : loss["offset"] + size]
        assert (loss["file"], loss["quarantine"]) == (str(source), "a.tfrecord.bad")
    assert losses[2]["what"] == containing("payload", "Example", "length")
    keys = ("file", "record", "offset", "records", "bytes", "what")
    short = [{key: loss[key] for key in keys} for loss in losses]
    assert done.to_json() == {
        "files": 1,
        "kept": 5,
        "lost": 4,
        "bytes_lost": len(BAD_BYTES),
        "out": str(tmp_path / "out"),
        "losses": short,
        "failed": [],
        "notes": [],
    }


def test_repair_sound_plain_files_copies_them_byte_for_byte(tmp_path) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_plain(folder / "a.tfrecord", PAYLOADS)
    write_plain(folder / "deep" / "a.tfrecord", PAYLOADS[:2])
    (folder / "empty.tfrecord").write_bytes(b"")
    done = repair(folder, tmp_path / "out")
    assert digest(tmp_path / "out") == digest(folder)
    assert (done.num_kept, done.losses, done.failures) == (7, (), ())


@pytest.mark.parametrize("compression", COMPRESS)
def test_repair_twice_gives_the_same_bytes(compression, tmp_path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(COMPRESS[compression](DAMAGED))
    repair(tmp_path / "a.tfrecord", tmp_path / "one")
    repair(tmp_path / "a.tfrecord", tmp_path / "two")
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_repaired_set_opens_and_is_sound(tmp_path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tfrecord").write_bytes(DAMAGED)
    repair(tmp_path / "in", tmp_path / "out")
    split = ps.open(tmp_path / "out")["all"]
    assert row_numbers(split.records()) == [0, 2, 4, 0, 1]


def test_repair_cut_gzip_keeps_inflated_records_and_names_the_stream_once(tmp_path) -> None:
    source = tmp_path / "a.tfrecord.gz"
    source.write_bytes(gzip.compress(BASE, 0)[:-60])
    done = repair(source, tmp_path / "out")
    assert gzip.decompress((tmp_path / "out" / source.name).read_bytes()) == b"".join(FRAMES[:4])
    (loss,) = read_losses(tmp_path / "out")
    assert (loss["record"], loss["offset"]) == (4, 4 * FRAME_BYTES)
    assert loss["what"].startswith("compressed stream: the file ends inside the deflated bytes")
    bad = (tmp_path / "out" / "quarantine" / "a.tfrecord.gz.bad").read_bytes()
    assert bad == FRAMES[4][: loss["bytes"]]
    assert done.num_bytes_lost == len(bad) > 0


def test_repair_gzip_with_a_wrong_trailer_names_a_loss_of_no_bytes(tmp_path) -> None:
    data = gzip.compress(BASE)
    source = tmp_path / "a.tfrecord.gz"
    source.write_bytes(flip(data, len(data) - 6))
    done = repair(source, tmp_path / "out")
    assert (done.num_kept, len(done.losses), done.num_bytes_lost) == (5, 1, 0)
    (loss,) = read_losses(tmp_path / "out")
    assert (loss["bytes"], loss["quarantine"], loss["quarantine_offset"]) == (0, None, None)
    assert [path.name for path in (tmp_path / "out" / "quarantine").iterdir()] == ["losses.jsonl"]


def test_repair_gzip_damaged_in_the_middle_keeps_earlier_records(tmp_path) -> None:
    payloads = [bytes([n]) * 5000 for n in range(40)]
    data = bytearray(gzip.compress(write_records(payloads)))
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "a.tfrecord.gz").write_bytes(data)
    done = repair(tmp_path / "a.tfrecord.gz", tmp_path / "out")
    kept = gzip.decompress((tmp_path / "out" / "a.tfrecord.gz").read_bytes())
    assert kept == write_records(payloads[: done.num_kept])
    assert 0 < done.num_kept < 40
    assert done.losses


def test_repair_file_of_other_payloads_keeps_them_all(tmp_path) -> None:
    write_plain(tmp_path / "a.tfrecord", [b"\x0a\x7f"] * 4)
    assert repair(tmp_path / "a.tfrecord", tmp_path / "out").num_kept == 4


def test_repair_file_that_is_no_tfrecord_fails_alone(tmp_path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.tfrecord").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    write_plain(folder / "b.tfrecord", PAYLOADS)
    done = repair(folder, tmp_path / "out")
    assert [fault.path.name for fault in done.failures] == ["a.tfrecord"]
    assert "Git LFS pointer" in done.to_json()["failed"][0]["what"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.tfrecord"]
    assert done.num_kept == 5


def test_repair_trailing_zeros_that_are_allowed_are_no_loss(tmp_path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(BASE + bytes(1000))
    done = repair(tmp_path / "a.tfrecord", tmp_path / "out", ReadOptions(allow_trailing_zeros=True))
    assert done.losses == ()
    assert digest(tmp_path / "out") == {"a.tfrecord": hashlib.sha256(BASE).hexdigest()}


def test_repair_damage_before_allowed_zeros_sets_aside_the_damage_alone(tmp_path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(flip(BASE, 40) + bytes(1000))
    done = repair(tmp_path / "a.tfrecord", tmp_path / "out", ReadOptions(allow_trailing_zeros=True))
    assert len(done.losses) == 1
    assert (tmp_path / "out" / "quarantine" / "a.tfrecord.bad").read_bytes() == flip(FRAMES[0], 40)


def test_repair_file_with_no_good_record_writes_an_empty_one(tmp_path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(flip(FRAMES[0], 40))
    done = repair(tmp_path / "a.tfrecord", tmp_path / "out")
    assert (done.num_kept, len(done.losses), done.failures) == (0, 1, ())
    assert (tmp_path / "out" / "a.tfrecord").read_bytes() == b""


def test_repair_over_an_earlier_one_removes_outdated_files(tmp_path) -> None:
    source = tmp_path / "a.tfrecord"
    source.write_bytes(DAMAGED)
    repair(source, tmp_path / "out")
    write_plain(source, PAYLOADS)
    repair(source, tmp_path / "out", overwrite=True)
    assert digest(tmp_path / "out") == {"a.tfrecord": hashlib.sha256(BASE).hexdigest()}


def test_repair_of_a_set_with_a_missing_shard_is_refused_before_anything_is_written(tmp_path) -> None:
    (tmp_path / "in").mkdir()
    write_plain(tmp_path / "in" / "x-00000-of-00002.tfrecord", PAYLOADS)
    with raises_with(MissingShardError, "x-00001-of-00002.tfrecord"):
        repair(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_repair_on_a_full_disk_stops_and_leaves_no_part_of_a_file(tmp_path, monkeypatch) -> None:
    write_gzip(tmp_path / "a.tfrecord.gz", PAYLOADS)

    def fail(self: AtomicFile, data: bytes) -> None:
        raise WriteError("cannot be written (No space left on device)", path=self.path)

    monkeypatch.setattr(AtomicFile, "write", fail)
    with pytest.raises(WriteError, match="No space left on device"):
        repair(tmp_path / "a.tfrecord.gz", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_repair_reports_progress_over_both_passes(tmp_path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(DAMAGED)
    calls = []
    repair(tmp_path / "a.tfrecord", tmp_path / "out", on_progress=lambda *call: calls.append(call))
    assert calls[-1] == (2 * len(DAMAGED), 2 * len(DAMAGED))


def test_repair_counts_the_records_of_a_shard_that_the_manifest_lists_and_that_is_missing(tmp_path) -> None:
    write_dataset(tmp_path / "in", {"train": [PAYLOADS], "test": [PAYLOADS[:2]]})
    (tmp_path / "in" / "train-00000-of-00001.tfrecord").unlink()
    done = repair(tmp_path / "in", tmp_path / "out")
    assert (done.num_kept, done.num_lost, done.failures) == (2, 5, ())
    (missing,) = done.missing
    assert missing.fault.path == tmp_path / "in" / "train-00000-of-00001.tfrecord"
    assert missing.num_records == 5
    assert done.to_json()["lost"] == 5
    (loss,) = read_losses(tmp_path / "out")
    assert (loss["file"], loss["records"], loss["bytes"]) == (str(missing.fault.path), 5, 0)
    assert not (tmp_path / "out" / "train-00000-of-00001.tfrecord").exists()


def test_repair_counts_records_that_were_cut_off_between_two_frames(tmp_path) -> None:
    write_dataset(tmp_path / "in", {"train": [PAYLOADS]})
    shard = tmp_path / "in" / "train-00000-of-00001.tfrecord"
    shard.write_bytes(flip(b"".join(FRAMES[:3]), 40))
    done = repair(tmp_path / "in", tmp_path / "out")
    assert (done.num_kept, done.num_lost) == (2, 3)
    assert [(loss.fault.record, loss.num_records) for loss in done.losses] == [(0, 1), (None, 2)]
    assert done.missing == done.losses[1:]


@pytest.mark.parametrize(("name", "has_splits"), [("train", True), ("fold_3", False)])
def test_repair_of_a_data_set_notes_that_its_metadata_is_not_carried_over(name, has_splits, tmp_path) -> None:
    write_dataset(tmp_path / "in", {name: [PAYLOADS]})
    done = repair(tmp_path / "in", tmp_path / "out")
    assert (done.num_lost, done.failures) == (0, ())
    (note,) = done.notes
    assert "roles" in note
    assert ("splits" not in note) == has_splits == (name in ps.open(tmp_path / "out").splits)


def test_repair_with_a_manifest_that_cannot_be_read_names_it_and_keeps_the_records(tmp_path) -> None:
    write_dataset(tmp_path / "in", {"train": [PAYLOADS]})
    (tmp_path / "in" / "penstock.json").write_bytes(b"{")
    done = repair(tmp_path / "in", tmp_path / "out")
    assert [fault.path.name for fault in done.failures] == ["penstock.json"]
    assert done.num_kept == 5
    assert "splits" in done.notes[0]
