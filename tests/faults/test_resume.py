"""Rows X1 and X2 of the fault matrix: `resume` never returns other data than requested."""

import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import penstock as ps
from penstock.cli.main import main
from penstock.errors import ChangedFileError, CorruptRecordError, OptionError, WriteError
from penstock.fields import Number
from penstock.jobs.convert.convert import run_conversion
from penstock.jobs.convert.dataset_source import open_dataset_source
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import TextFiles
from penstock.shards import request
from penstock.shards.conversion import Conversion
from penstock.source.block import BLOCK_ROWS
from penstock.source.opening import open_source
from penstock.storage.cache import cache_path
from penstock.storage.open_file import OpenFile
from raising import containing
from staged_writing import fingerprint

NUM_ROWS = 60


def table(**changed) -> dict[str, object]:
    columns = {
        "row": np.arange(NUM_ROWS),
        "owner": [f"owner {row % 20}" for row in range(NUM_ROWS)],
        "kind": ["cat", "dog", "dog"] * (NUM_ROWS // 3),
        "height": np.arange(NUM_ROWS) / 8,
    }
    return {**columns, **changed}


def write_csv(path: Path, **changed) -> Path:
    pd.DataFrame(table(**changed)).to_csv(path, index=False)
    return path


def write_png(path: Path, seed: int) -> None:
    """Write an image whose size in bytes does not depend on its pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, compress_level=0)


def rewrite_png(path: Path, seed: int) -> None:
    """Write another image of the same size in bytes, with the same modification time."""
    before = path.stat()
    write_png(path, seed)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def refuse(source, out: Path, **options) -> OptionError:
    """Resume a finished data set, which must be refused without a change to any file."""
    before, around = fingerprint(out), sorted(out.parent.iterdir())
    with pytest.raises(OptionError) as caught:
        ps.convert(source, out, resume=True, **options)
    assert fingerprint(out) == before
    assert sorted(out.parent.iterdir()) == around
    assert caught.value.path == str(out)
    assert "overwrite" in caught.value.advice
    return caught.value


def confirm(source, out: Path, **options) -> None:
    """Resume a finished data set, which must be returned as it is."""
    before = fingerprint(out)
    done = run_conversion(source, out, PlanOverrides(), ConvertOptions(resume=True, **options))
    assert "complete" in done.notes[-1]
    assert fingerprint(out) == before


def test_x01_another_table_in_memory_with_the_same_columns_is_refused(tmp_path):
    out = tmp_path / "out"
    ps.convert(table(), out)
    error = refuse(table(height=np.arange(NUM_ROWS) / 4), out)
    assert error.field == "source"
    assert error.expected != error.got
    confirm(table(), out)


def test_x01_data_frame_with_one_value_changed_is_refused(tmp_path):
    frame, out = pd.DataFrame(table()), tmp_path / "out"
    ps.convert(frame, out)
    confirm(frame.copy(), out)
    frame.loc[NUM_ROWS - 1, "height"] += 1
    assert refuse(frame, out).field == "source"


def test_x01_zero_that_became_negative_is_refused(tmp_path):
    out = tmp_path / "out"
    ps.convert(table(), out)
    heights = np.arange(NUM_ROWS) / 8
    heights[0] = -0.0
    assert refuse(table(height=heights), out).field == "source"


def test_x01_images_rewritten_under_an_unchanged_csv_are_refused(tmp_path):
    out, source = tmp_path / "out", tmp_path / "pets.csv"
    for row in range(12):
        write_png(tmp_path / "pictures" / f"{row}.png", row)
    source.write_text("photo,row\n" + "".join(f"pictures/{row}.png,{row}\n" for row in range(12)))
    ps.convert(source, out)
    confirm(source, out)
    rewrite_png(tmp_path / "pictures" / "7.png", 100)
    assert refuse(source, out).field == "source"


def test_x01_image_folder_with_new_pixels_under_the_same_names_and_sizes_is_refused(tmp_path):
    out, source = tmp_path / "out", tmp_path / "pets"
    for row in range(12):
        write_png(source / ("cat" if row % 2 else "dog") / f"{row}.png", row)
    ps.convert(source, out)
    confirm(source, out)
    rewrite_png(source / "cat" / "7.png", 100)
    assert refuse(source, out).field == "source"


def test_x01_large_images_in_memory_that_changed_are_refused(tmp_path):
    def draw(seed: int) -> bytes:
        file = io.BytesIO()
        pixels = np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file, "png", compress_level=0)
        return file.getvalue()

    out, pictures = tmp_path / "out", [draw(row) for row in range(12)]
    ps.convert({"photo": pictures}, out)
    confirm({"photo": list(pictures)}, out)
    assert refuse({"photo": [*pictures[:-1], draw(100)]}, out).field == "source"


def test_x01_values_are_compared_if_only_the_first_are_large(tmp_path):
    # By the first rows the column is fetched late, by all rows of the block it is not.
    blobs, out = [bytes([row]) * 5000 for row in range(100)] + [b"small"] * 900, tmp_path / "out"
    ps.convert({"blob": blobs}, out)
    confirm({"blob": list(blobs)}, out)
    blobs[-1] = b"SMALL"
    assert refuse({"blob": blobs}, out).field == "source"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"group": "owner"}, "group"),
        ({"stratify": "kind"}, "stratify"),
        ({"time": "row"}, "time"),
        ({"split_by": "kind"}, "split_by"),
        ({"split": "train=0.5,test=0.5"}, "split"),
        ({"split": "test=0.1,validation=0.1,train=0.8"}, "split"),
        ({"seed": 1}, "seed"),
        ({"shuffle": False}, "shuffle"),
        ({"shard_bytes": 1000}, "shard_bytes"),
        ({"num_shards": 2}, "num_shards"),
        ({"compression": "gzip"}, "compression"),
        ({"on_error": "skip"}, "on_error"),
        ({"max_skipped": 5}, "max_skipped"),
        ({"resize": 64}, "resize"),
        ({"encoding": "latin-1"}, "encoding"),
        ({"delimiter": ","}, "delimiter"),
        ({"missing": ("", "NA")}, "missing"),
        ({"short_rows": "fill"}, "short_rows"),
        ({"drop": "owner"}, "plan.columns.owner"),
        ({"rename": {"owner": "person"}}, "plan.columns.owner.name"),
        ({"target": "kind"}, "plan.columns.kind.role"),
        ({"fields": {"row": Number("float32")}}, "plan.columns.row.dtype"),
        ({"plan": {"columns": {"row": {"type": "number", "dtype": "float32"}}}}, "plan.columns.row.dtype"),
    ],
)
def test_x01_option_that_changed_is_refused_by_its_name(tmp_path, options, field):
    source, out = write_csv(tmp_path / "pets.csv"), tmp_path / "out"
    ps.convert(source, out)
    assert refuse(source, out, **options).field == field


def test_x01_encoding_that_gives_other_text_is_refused(tmp_path):
    out, source = tmp_path / "out", tmp_path / "pets.csv"
    source.write_bytes(b"name\n" + "Zoë\nBjörn\nRené\n".encode() * 5)
    ps.convert(source, out)
    error = refuse(source, out, encoding="latin-1")
    assert (error.field, error.expected, error.got) == ("encoding", "'utf-8'", "'iso8859-1'")
    confirm(source, out, encoding="UTF8")


def test_x01_plan_file_that_changed_is_refused(tmp_path):
    source, out, plan = write_csv(tmp_path / "pets.csv"), tmp_path / "out", tmp_path / "plan.json"
    plan.write_text(json.dumps({"columns": {"row": {"type": "number", "dtype": "int64"}}}))
    ps.convert(source, out, plan=plan)
    confirm(source, out, plan=plan)
    plan.write_text(json.dumps({"columns": {"row": {"type": "number", "dtype": "float32"}}}))
    error = refuse(source, out, plan=plan)
    assert (error.field, error.expected, error.got) == ("plan.columns.row.dtype", "'int64'", "'float32'")


def test_x01_field_of_the_schema_that_no_row_has_is_part_of_the_request(tmp_path):
    out = tmp_path / "out"
    schema = {"row": Number("int64")}
    ps.convert(table(), out, schema=ps.Schema(schema))
    wider = ps.Schema({**schema, "age": Number(optional=True)})
    assert refuse(table(), out, schema=wider).field.startswith("absent")


def test_x01_csv_that_changed_is_refused_with_its_name(tmp_path):
    source, out = write_csv(tmp_path / "pets.csv"), tmp_path / "out"
    ps.convert(source, out, drop="owner")
    before = source.stat()
    write_csv(source, owner=[f"owner {row % 19:2}" for row in range(NUM_ROWS)])
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    error = refuse(source, out, drop="owner")
    assert error.field.startswith("source[0].")
    write_csv(source, row=np.arange(NUM_ROWS) + 1)
    assert refuse(source, out, drop="owner").field.startswith("source")


def test_x01_rows_that_are_rejected_are_part_of_the_content(tmp_path):
    out = tmp_path / "out"
    options = {"on_error": "collect", "schema": ps.Schema({"age": Number()})}
    ps.convert({"age": ["1", "2", "old", "4"]}, out, **options)
    ps.convert({"age": ["1", "2", "old", "4"]}, out, resume=True, **options)
    assert refuse({"age": ["1", "2", "older", "4"]}, out, **options).field == "source"


def test_x01_tfrecords_that_changed_are_refused_and_the_same_ones_are_complete(tmp_path):
    ps.convert({"row": list(range(30))}, tmp_path / "one")
    ps.convert({"row": list(range(1, 31))}, tmp_path / "other")
    source, out = tmp_path / "rows.tfrecord", tmp_path / "out"
    (shard,) = (tmp_path / "one").glob("train-*.tfrecord")
    (another,) = (tmp_path / "other").glob("train-*.tfrecord")
    source.write_bytes(shard.read_bytes())
    ps.convert(source, out)
    confirm(source, out)
    confirm(source, out, num_threads=1)
    assert refuse(source, out, seed=3).field == "seed"
    assert refuse(source, out, rename={"row": "line"}).field.startswith("names.row")
    assert shard.stat().st_size == another.stat().st_size
    source.write_bytes(another.read_bytes())
    assert refuse(source, out).field == "source"


def test_x01_data_set_as_the_source_follows_the_same_rule(tmp_path):
    ps.convert(table(), tmp_path / "first")
    ps.convert(tmp_path / "first", tmp_path / "out", num_shards=2)
    confirm(tmp_path / "first", tmp_path / "out", num_shards=2)
    assert refuse(tmp_path / "first", tmp_path / "out", num_shards=3).field == "num_shards"
    ps.convert(table(row=np.arange(NUM_ROWS) + 1), tmp_path / "first", overwrite=True)
    assert refuse(tmp_path / "first", tmp_path / "out", num_shards=2).field.startswith("source")


def test_x01_source_that_cannot_be_read_twice_is_refused(tmp_path):
    rows, out = [{"a": number} for number in range(20)], tmp_path / "out"
    ps.convert(iter(rows), out)
    error = refuse(iter(rows), out)
    assert error.field == "source"
    taken = iter(rows)
    refuse(taken, out)
    assert len(list(taken)) == len(rows)


def test_x01_function_that_returns_an_iterator_is_read_again(tmp_path):
    def rows():
        yield from ({"a": number} for number in range(numbers))

    out, numbers = tmp_path / "out", 20
    ps.convert(rows, out)
    confirm(rows, out)
    numbers = 21
    error = refuse(rows, out)
    assert error.field == "source"
    assert (error.expected, error.got) == (containing("20 rows"), containing("21 rows"))


def test_x01_manifest_without_a_digest_is_refused(tmp_path):
    out = tmp_path / "out"
    ps.convert(table(), out)
    manifest = json.loads((out / "penstock.json").read_text())
    del manifest["request"]
    (out / "penstock.json").write_text(json.dumps(manifest))
    assert len(ps.open(out)["train"])  # it opens all the same
    error = refuse(table(), out)
    assert error.field == "request"


def test_x01_number_of_workers_is_not_part_of_the_request(tmp_path):
    source, out = write_csv(tmp_path / "pets.csv"), tmp_path / "out"
    ps.convert(source, out, num_threads=1)
    confirm(source, out, num_threads=3)
    request = json.loads((out / "penstock.json").read_text())["request"]
    ps.convert(source, tmp_path / "again", num_threads=3)
    assert json.loads((tmp_path / "again" / "penstock.json").read_text())["request"] == request


def test_x01_writer_refuses_to_resume_a_finished_data_set(tmp_path):
    schema = ps.Schema({"a": Number()})
    with ps.Writer(tmp_path / "out", schema) as writer:
        writer.write({"a": 1.0})
    with pytest.raises(OptionError) as caught:
        ps.Writer(tmp_path / "out", schema, resume=True)
    assert caught.value.field == "source"


def test_x01_work_of_another_request_stays_when_the_finished_one_is_confirmed(tmp_path, monkeypatch):
    out = tmp_path / "out"
    ps.convert(table(), out)
    with monkeypatch.context() as patch:
        patch.setattr(Conversion, "_write_metadata", cut_off)
        with pytest.raises(WriteError):
            ps.convert(table(), out, overwrite=True, seed=1)
    left = fingerprint(tmp_path / ".out.partial")
    ps.convert(table(), out, resume=True)
    assert (tmp_path / ".out.partial" / "journal.jsonl").exists()
    assert fingerprint(tmp_path / ".out.partial") == left


@pytest.mark.parametrize("is_there", [True, False])
def test_x01_finished_data_set_with_a_damaged_shard_is_not_called_complete(tmp_path, is_there):
    out = tmp_path / "out"
    shard = ps.convert(table(), out).paths[0]
    data = bytearray(shard.read_bytes())
    data[20] ^= 1
    shard.write_bytes(data) if is_there else shard.unlink()
    with pytest.raises(CorruptRecordError) as caught:
        ps.convert(table(), out, resume=True)
    assert caught.value.path == str(shard)


def test_x01_data_set_whose_indexes_were_deleted_is_complete(tmp_path):
    out = tmp_path / "out"
    ps.convert(table(), out)
    shutil.rmtree(out / "index")
    confirm(table(), out)


def test_x01_command_that_resumes_another_request_ends_with_status_2(tmp_path, capsys):
    source, out = write_csv(tmp_path / "pets.csv"), tmp_path / "out"
    assert main(["convert", str(source), str(out), "--resume"]) == 0
    assert main(["convert", str(source), str(out), "--resume"]) == 0
    assert "complete" in capsys.readouterr().err
    assert main(["convert", str(source), str(out), "--resume", "--group", "owner"]) == 2
    assert "group" in capsys.readouterr().err


def cut_off(*given):
    raise WriteError("cut off")


@pytest.fixture
def unfinished(tmp_path, monkeypatch):
    """A conversion that ended when its shards were complete, before the data set was."""
    heights = np.arange(NUM_ROWS) / 8
    with monkeypatch.context() as patch:
        patch.setattr(Conversion, "_write_metadata", cut_off)
        with pytest.raises(WriteError):
            ps.convert(table(height=heights), tmp_path / "out", num_shards=3)
    return tmp_path / "out"


def test_x02_zero_that_became_negative_between_kill_and_resume_is_refused(unfinished):
    heights = np.arange(NUM_ROWS) / 8
    heights[0] = -0.0
    with pytest.raises(OptionError) as caught:
        ps.convert(table(height=heights), unfinished, num_shards=3, resume=True)
    assert caught.value.field == "source"
    assert not unfinished.exists()
    ps.convert(table(), unfinished, num_shards=3, resume=True)
    assert unfinished.exists()


def test_x02_run_of_another_version_is_refused(unfinished, monkeypatch):
    monkeypatch.setattr(request, "version", lambda _: "99.0")
    with pytest.raises(OptionError) as caught:
        ps.convert(table(), unfinished, num_shards=3, resume=True)
    assert (caught.value.field, caught.value.got) == ("version", "'99.0'")


def edit_secretly(path: Path, old: bytes, new: bytes) -> None:
    """Change a file in place, without a change of its size and of its modification time."""
    before, data = path.stat(), path.read_bytes()
    assert data.count(old) == 1
    assert len(old) == len(new)
    with path.open("r+b") as file:
        file.seek(data.index(old))
        file.write(new)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of a file system has steps
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )


def write_long_csv(path: Path) -> Path:
    path.write_text("row,name\n" + "".join(f"{row},name {row}\n" for row in range(5 * BLOCK_ROWS)))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_x02_file_edited_while_it_is_read_with_its_mtime_set_back_is_refused(tmp_path, suffix):
    path = tmp_path / f"pets{suffix}"
    if suffix == ".csv":
        write_long_csv(path)
    elif suffix == ".jsonl":
        path.write_text("".join(f'{{"name": "name {row}"}}\n' for row in range(5 * BLOCK_ROWS)))
    else:
        frame = pd.DataFrame({"name": [f"name {row}" for row in range(5 * BLOCK_ROWS)]})
        frame.to_parquet(path, row_group_size=BLOCK_ROWS, compression=None)
    blocks = open_source(path, TextFiles()).blocks()
    next(blocks)
    if suffix == ".parquet":
        path.chmod(0o600 if path.stat().st_mode & 0o77 else 0o644)  # any change of the ctime
    else:
        edit_secretly(path, b"name 81000", b"NAME 81000")
    with pytest.raises(ChangedFileError) as caught:
        list(blocks)
    assert caught.value.path == str(path)


def test_x02_csv_edited_before_it_is_hashed_is_refused(tmp_path):
    path = write_csv(tmp_path / "pets.csv")
    source = open_source(path, TextFiles())
    list(source.blocks())
    edit_secretly(path, b"owner 19,dog,2.375", b"OWNER 19,dog,2.375")
    with pytest.raises(ChangedFileError):
        source.provenance()


def test_x02_conversion_of_a_csv_that_is_edited_meanwhile_leaves_no_data_set(tmp_path):
    path, out, seen = write_long_csv(tmp_path / "pets.csv"), tmp_path / "out", []

    def edit(progress) -> None:
        if not seen:
            edit_secretly(path, b"name 81000", b"NAME 81000")
        seen.append(progress)

    with pytest.raises(ChangedFileError):
        run_conversion(path, out, PlanOverrides(), ConvertOptions(num_threads=1), edit)
    assert not out.exists()


def test_x02_tfrecords_edited_while_they_are_read_are_refused(tmp_path):
    ps.convert({"row": list(range(100))}, tmp_path / "first")
    dataset = open_dataset_source(tmp_path / "first", PlanOverrides(), ConvertOptions())
    blocks = dataset.blocks()
    next(blocks)
    path = dataset.paths[0]
    data = path.read_bytes()
    edit_secretly(path, data, data)
    with pytest.raises(ChangedFileError) as caught:
        list(blocks)
    assert caught.value.path == str(path)


def test_x02_shard_with_a_new_hard_link_is_still_read(tmp_path):
    dataset = ps.convert({"row": list(range(100))}, tmp_path / "out")
    loader = dataset["train"].loader(batch_size=10)
    batches = iter(loader)
    next(batches)
    for path in dataset.paths:
        os.link(path, tmp_path / path.name)
    assert sum(1 for _ in batches) == len(loader) - 1
    assert sum(1 for _ in loader) == len(loader)


def test_x02_inflated_copy_of_a_file_edited_with_its_mtime_set_back_is_not_used(tmp_path):
    path = tmp_path / "rows.tfrecord.gz"
    path.write_bytes(b"content")
    identity = OpenFile(path).identity
    edit_secretly(path, b"content", b"CONTENT")
    changed = OpenFile(path).identity
    assert changed.is_like(identity)
    assert cache_path("inflated", path, *changed) != cache_path("inflated", path, *identity)
