"""`loader.to_tf()`: what the data set promises, what it gives, what it costs, and how it ends."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from pets_data import freeze, make_loader, make_pipeline, read_epochs, write_pets
from raising import containing, raises_with

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow")

NUM_RECORDS = 26
NUM_STEPS = 7


@pytest.fixture(scope="module")
def pets(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("narrow") / "pets", NUM_RECORDS)


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("wide") / "pets", NUM_RECORDS, is_wide=True)


def count_threads() -> int:
    return sum(thread.name.startswith("penstock") for thread in threading.enumerate())


def test_element_spec_of_dataset_is_that_of_signature(pets) -> None:
    dataset = make_loader(pets).to_tf()
    assert dataset.element_spec == (
        {
            "number": tf.TensorSpec((None,), tf.int64),
            "age": tf.TensorSpec((None,), tf.float32),
            "kind": tf.TensorSpec((None,), tf.int32),
        },
        {"adopted": tf.TensorSpec((None,), tf.int32)},
    )
    assert list(dataset.element_spec[0]) == ["number", "age", "kind"]


def test_element_spec_of_padded_batches_is_static_and_has_weights(pets) -> None:
    dataset = make_loader(pets, last="pad").to_tf()
    inputs, targets, weights = dataset.element_spec
    assert {spec.shape for spec in (*inputs.values(), *targets.values())} == {tf.TensorShape(4)}
    assert weights == {"adopted": tf.TensorSpec((4,), tf.float32)}
    *_, (_, _, last) = dataset
    assert last["adopted"].numpy().tolist() == [1, 1, 0, 0]


def test_ragged_output_is_ragged_tensor_of_the_same_rows(wide) -> None:
    loader = make_loader(wide, make_pipeline(wide, tokens={"kind": "keep", "ragged": True}), shuffle=False)
    dataset = loader.to_tf()
    expected = tf.RaggedTensorSpec((None, None), tf.int64, ragged_rank=1, row_splits_dtype=tf.int64)
    assert dataset.element_spec[0]["tokens"] == expected
    rows = [row for inputs, _ in dataset for row in inputs["tokens"].to_list()]
    assert sorted(map(len, rows)) == sorted(i % 5 for i in range(NUM_RECORDS))
    assert [freeze(batch) for batch in loader.to_tf()] == read_epochs(loader, 2)[NUM_STEPS:]


def test_stored_strings_are_string_tensors(pets) -> None:
    loader = pets["train"].loader(batch_size=4)
    inputs, targets = next(iter(loader.to_tf()))
    assert set(inputs["kind"].numpy()) <= {b"cat", b"dog", b"eel"}
    assert targets["adopted"].dtype == tf.string


@pytest.mark.parametrize(
    ("choices", "cardinality"),
    [
        ({}, NUM_STEPS),
        ({"last": "drop"}, NUM_STEPS - 1),
        ({"repeat": 3}, 3 * NUM_STEPS),
        ({"repeat": None}, -1),
    ],
)
def test_cardinality_is_number_of_batches(pets, choices, cardinality) -> None:
    dataset = make_loader(pets, **choices).to_tf()
    assert dataset.cardinality().numpy() == cardinality
    if cardinality > 0:
        assert len(list(dataset)) == cardinality


def test_cardinality_of_buckets_is_unknown(wide) -> None:
    loader = make_loader(wide, bucket_by="tokens", max_tokens=8)
    dataset = loader.to_tf()
    assert dataset.cardinality().numpy() == tf.data.UNKNOWN_CARDINALITY
    assert [freeze(batch) for _ in range(2) for batch in dataset] == read_epochs(loader, 2)


def test_each_iteration_is_next_epoch_byte_for_byte(wide) -> None:
    loader = make_loader(wide)
    dataset = loader.to_tf()
    batches = [freeze(batch) for _ in range(3) for batch in dataset]
    assert batches == read_epochs(loader, 3)
    assert batches[:NUM_STEPS] != batches[NUM_STEPS : 2 * NUM_STEPS]
    assert loader.position == (2, NUM_STEPS)


def test_iteration_over_repeated_epochs_reads_on(pets) -> None:
    loader = make_loader(pets, repeat=2)
    dataset = loader.to_tf()
    assert [freeze(batch) for batch in dataset] == read_epochs(loader, 2)
    endless = make_loader(pets, repeat=None).to_tf()
    batches = [freeze(batch) for count in (9, 9) for batch in endless.take(count)]
    assert batches == read_epochs(loader, 3)[:18]


def test_look_at_first_batch_costs_no_epoch(pets) -> None:
    loader = make_loader(pets)
    dataset = loader.to_tf()
    next(iter(dataset))
    next(iter(loader.to_tf().take(3)))
    assert loader.position == (0, 1)
    assert [freeze(batch) for batch in dataset] == read_epochs(loader, 1)


def test_position_is_that_of_batch_taken_last(pets) -> None:
    loader = make_loader(pets)
    for step, _ in enumerate(loader.to_tf(), 1):
        assert loader.position == (0, step)
        assert loader.state_dict() == loader.state_at(step, 0)


@pytest.mark.parametrize("num_taken", range(7))
def test_rest_is_byte_equal_when_resumed_at_any_step(pets, num_taken) -> None:
    loader = make_loader(pets, batch_size=9)
    dataset, taken = loader.to_tf(), 0
    while taken < num_taken:
        for _ in dataset:
            taken += 1
            if taken == num_taken:
                break
    fresh = make_loader(pets, batch_size=9, num_threads=1)
    fresh.load_state_dict(loader.state_dict())
    rest, resumed = [], fresh.to_tf()
    while len(rest) < 9 - num_taken:
        rest += [freeze(batch) for batch in resumed]
    assert rest == read_epochs(loader, 3)[num_taken:]


def test_state_loaded_after_to_tf_is_refused(pets) -> None:
    loader = make_loader(pets)
    dataset = loader.to_tf()
    loader.load_state_dict(loader.state_at(2, 0))
    with raises_with(tf.errors.OpError, message=containing("to_tf()", "epoch 0", "step 2")):
        next(iter(dataset))
    assert isinstance(loader.last_error, ps.errors.StateError)


def address_of(tensor: Any) -> int:
    return np.asarray(memoryview(tensor)).ctypes.data


def test_large_arrays_cross_without_a_copy(wide, monkeypatch) -> None:
    loader = make_loader(wide, batch_size=8)
    places: list[int] = []
    read = loader.read

    class Noting:
        def __init__(self, *where: int) -> None:
            self.batches = read(*where)

        def __enter__(self) -> Any:
            for batch in self.batches:
                places.append(batch[0]["photo"].ctypes.data)
                yield batch
            self.batches.close()

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(loader, "read", Noting)
    tensors = [inputs["photo"] for inputs, _ in loader.to_tf()]
    assert tensors[0].shape == (8, 64, 64)
    assert [address_of(tensor) for tensor in tensors] == places
    assert all(place % 64 == 0 for place in places)


def test_memory_is_not_used_again_while_tensors_are_held(wide) -> None:
    loader = make_loader(wide, batch_size=8, repeat=20)
    held = [batch for batch, _ in zip(loader.to_tf(), range(20), strict=False)]
    for _ in make_loader(wide, batch_size=8, repeat=5):  # takes memory from the same pool
        pass
    gc.collect()
    assert [freeze(batch) for batch in held] == read_epochs(loader, 5)[:20]
    photos = [batch[0]["photo"].numpy()[:, 0, 0] for batch in held]
    numbers = [batch[0]["number"].numpy() for batch in held]
    assert np.array_equal(np.concatenate(photos), np.concatenate(numbers))


def test_dropped_iterations_leave_no_thread_behind(pets) -> None:
    loader = make_loader(pets)
    dataset = loader.to_tf()
    before = count_threads()
    for _ in range(20):
        iterator = iter(dataset)
        next(iterator)
        del iterator
    assert count_threads() == before
    alive = weakref.ref(loader)
    del dataset, loader
    gc.collect()
    assert alive() is None


def test_bad_record_is_named_in_the_text_and_kept(tmp_path) -> None:
    pets = write_pets(tmp_path / "pets", NUM_RECORDS)
    pipeline = make_pipeline(pets)
    (shard,) = (tmp_path / "pets").glob("*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[-20] ^= 1
    stat = shard.stat()
    shard.write_bytes(content)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    loader = ps.open(tmp_path / "pets")["train"].loader(pipeline, batch_size=4)
    with pytest.raises(tf.errors.OpError) as raised:
        list(loader.to_tf())
    assert shard.name in str(raised.value)
    assert f"record {NUM_RECORDS - 1}" in str(raised.value)
    assert isinstance(loader.last_error, ps.errors.CorruptRecordError)
    assert loader.last_error.record == NUM_RECORDS - 1
    assert count_threads() == 0
    assert loader.position == (0, NUM_STEPS - 1)


def test_fit_sees_epoch_after_epoch(pets) -> None:
    keras = pytest.importorskip("keras")
    loader = make_loader(pets)
    seen: list[Any] = []

    class Seeing(keras.Model):
        def train_step(self, data: Any) -> Any:
            seen.append(freeze(data))
            return super().train_step(data)

    number = keras.Input((), dtype="int64", name="number")
    age, kind = keras.Input((), name="age"), keras.Input((), dtype="int32", name="kind")
    adopted = keras.layers.Dense(1, "sigmoid")(age[:, None])
    model = Seeing({"number": number, "age": age, "kind": kind}, {"adopted": adopted})
    model.compile("sgd", {"adopted": "binary_crossentropy"}, run_eagerly=True)
    # Keras warns that it does not shuffle a tf.data.Dataset, unless it is told not to.
    model.fit(loader.to_tf(), epochs=3, verbose=0, shuffle=False)
    assert seen == read_epochs(loader, 3)
    assert loader.position == (2, NUM_STEPS)


TWO_DEVICES = """
import sys
import tensorflow as tf
from pathlib import Path
from pets_data import make_loader, read_epochs, write_pets

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
loader = make_loader(write_pets(Path(sys.argv[1]), 26))
dataset = loader.to_tf()
policy = dataset.options().experimental_distribute.auto_shard_policy
assert policy == tf.data.experimental.AutoShardPolicy.OFF
shared = strategy.experimental_distribute_dataset(dataset)
for epoch in range(2):
    wanted = [inputs["number"].tolist() for inputs, _ in loader.read(epoch)]
    parts = [strategy.experimental_local_results(inputs["number"]) for inputs, _ in shared]
    assert [sum((part.numpy().tolist() for part in each), []) for each in parts] == wanted
    assert {len(each) for each in parts} == {2}
print("as wanted")
"""


def test_batches_are_shared_by_the_devices_of_a_strategy(tmp_path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[1])}
    command = [sys.executable, "-c", TWO_DEVICES, os.fspath(tmp_path / "pets")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "as wanted\n", done.stderr


UNFINISHED = """
import sys
from pathlib import Path

import penstock as ps
from pets_data import make_loader

pets = ps.open(sys.argv[1])
datasets = [make_loader(pets).to_tf(), make_loader(pets).to_tf().prefetch(2)]
iterators = [iter(each) for each in datasets]
print(len([next(each) for each in iterators]))
sys.exit(3)
"""


def test_iterators_that_are_unfinished_at_exit_end_without_an_error(tmp_path):
    write_pets(tmp_path / "pets", 23)
    command = [sys.executable, "-c", UNFINISHED, tmp_path / "pets"]
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "0"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (3, "2\n")
    assert "finalizing" not in result.stderr
    assert "Traceback" not in result.stderr
