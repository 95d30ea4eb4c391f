"""`split.to_grain()`: records by number, in the process itself, in worker processes, and after a restart."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import penstock as ps
from penstock.errors import ChangedFileError, CorruptRecordError, UnknownNameError
from raising import raises_with

grain = pytest.importorskip("grain")

NUM_RECORDS = 30
SCHEMA = ps.Schema(
    {
        "number": ps.fields.Number("int64"),
        "name": ps.fields.Text(),
        "grid": ps.fields.Tensor((2, 3), "float32"),
    }
)


def make_sample(i: int) -> dict[str, object]:
    return {"number": i, "name": f"record {i}", "grid": np.full((2, 3), i, np.float32)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grain") / "data"
    with ps.Writer(folder, SCHEMA, split="train=1.0", num_shards=4, shuffle=False) as writer:
        for i in range(NUM_RECORDS):
            writer.write(make_sample(i))
    return folder


@pytest.fixture(scope="module")
def split(folder):
    return ps.open(folder)["train"]


def numbers_of(items):
    return [int(item["number"]) for item in items]


def test_source_has_the_samples_of_the_split(split):
    source = split.to_grain()
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert len(source) == NUM_RECORDS
    for i in (0, 17, NUM_RECORDS - 1, np.int64(3)):
        assert source[i]["name"] == split[i]["name"]
        assert source[i]["grid"].tolist() == split[i]["grid"].tolist()
    with pytest.raises(IndexError):
        source[NUM_RECORDS]


def test_only_the_named_fields_are_read(split):
    assert split.to_grain(["number"])[3] == {"number": split[3]["number"]}
    assert list(split.to_grain("name")[3]) == ["name"]
    with raises_with(UnknownNameError, field="numbr"):
        split.to_grain(["numbr"])


def test_pickled_source_gives_the_same_samples(split):
    source = split.to_grain(["number", "name"])
    copy = pickle.loads(pickle.dumps(source))  # noqa: S301 - our own, of a moment ago
    assert [copy[i] for i in range(NUM_RECORDS)] == [source[i] for i in range(NUM_RECORDS)]
    assert repr(copy) == repr(source)
    assert len(pickle.dumps(source)) < 4096


def test_text_of_a_source_identifies_its_content(split, tmp_path):
    with ps.Writer(tmp_path / "other", SCHEMA, split="train=1.0") as writer:
        for i in range(NUM_RECORDS):
            writer.write(make_sample(i + 1))
    other = ps.open(tmp_path / "other")["train"]
    texts = {repr(other.to_grain()), repr(split.to_grain()), repr(split.to_grain(["name"]))}
    assert len(texts) == 3


def test_pickled_source_of_files_that_changed_is_refused(tmp_path):
    for start in (0, 100):
        with ps.Writer(tmp_path / "data", SCHEMA, split="train=1.0", overwrite=start > 0) as writer:
            for i in range(5):
                writer.write(make_sample(start + i))
        if start == 0:
            data = pickle.dumps(ps.open(tmp_path / "data")["train"].to_grain())
    with raises_with(ChangedFileError, path=str(tmp_path / "data")):
        pickle.loads(data)  # noqa: S301 - our own, of a moment ago


def test_damaged_record_is_an_error_whatever_the_policy(split, folder, tmp_path):
    copy = tmp_path / "copy.tfrecord"
    data = bytearray(split.paths[0].read_bytes())
    data[20] ^= 1
    copy.write_bytes(data)
    source = ps.open(copy, schema=SCHEMA, on_error="skip")["all"].to_grain()
    with raises_with(CorruptRecordError, path=str(copy), record=0):
        source[0]
    assert source[1]["name"] == split[1]["name"]


def test_map_dataset_shuffles_and_batches(split):
    dataset = grain.MapDataset.source(split.to_grain()).shuffle(seed=7).batch(4)
    batches = list(dataset)
    found = [number for batch in batches for number in batch["number"].tolist()]
    assert sorted(found) == list(range(NUM_RECORDS))
    assert found != sorted(found)
    assert batches[0]["grid"].shape == (4, 2, 3)
    assert batches[0]["grid"][:, 1, 2].tolist() == batches[0]["number"].tolist()


def test_iteration_continues_from_a_state(split):
    def make():
        source = split.to_grain(["number"])
        return iter(grain.MapDataset.source(source).shuffle(seed=3).to_iter_dataset())

    first = make()
    everything = numbers_of(first)
    second = make()
    taken = numbers_of(next(second) for _ in range(11))
    third = make()
    third.set_state(second.get_state())
    assert taken + numbers_of(third) == everything


def test_checkpoint_of_a_data_loader_is_refused_for_other_records(split, tmp_path):
    def start(source):
        sampler = grain.samplers.IndexSampler(NUM_RECORDS, shuffle=True, seed=1, num_epochs=1)
        return iter(grain.DataLoader(data_source=source, sampler=sampler, worker_count=0))

    with ps.Writer(tmp_path / "other", SCHEMA, split="train=1.0") as writer:
        for i in range(NUM_RECORDS):
            writer.write(make_sample(i + 1))
    first = start(split.to_grain())
    next(first)
    state = first.get_state()
    rest = numbers_of(first)
    same = start(ps.open(split.paths[0].parent)["train"].to_grain())
    same.set_state(state)
    assert numbers_of(same) == rest
    with pytest.raises(ValueError, match="GrainSource"):
        start(ps.open(tmp_path / "other")["train"].to_grain()).set_state(state)


def test_threads_read_at_the_same_time(split):
    source, failures = split.to_grain(), []

    def ask(seed):
        for i in np.random.default_rng(seed).integers(0, NUM_RECORDS, 100).tolist():
            if source[i]["number"] != i:
                failures.append(i)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


WORKERS = """
import sys
import grain
import penstock as ps
from absl import app


def main(_):
    split = ps.open(sys.argv[1])["train"]
    loader = grain.DataLoader(
        data_source=split.to_grain(["number"]),
        sampler=grain.samplers.IndexSampler(len(split), shuffle=True, seed=1, num_epochs=1),
        worker_count=2,
    )
    print(*(sample["number"] for sample in loader))


if __name__ == "__main__":
    app.run(main)
"""


def test_data_loader_reads_in_worker_processes(folder, tmp_path):
    script = tmp_path / "workers.py"  # a file: worker processes import it
    script.write_text(WORKERS)
    done = subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    numbers = list(map(int, done.stdout.split()))
    assert numbers != sorted(numbers)
    assert sorted(numbers) == list(range(NUM_RECORDS))
