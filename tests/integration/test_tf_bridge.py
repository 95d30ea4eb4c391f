"""`loader.to_tf()`: what the data set promises, what it gives, what it costs, and how it ends."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from local_threads import local_threads
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


def in_python(dataset: Any) -> Any:
    """The data set itself: a loop over it runs in Python."""
    return dataset


def in_runtime(dataset: Any) -> Any:
    """A data set of the same elements that TensorFlow's runtime reads."""
    return dataset.take(-1)


both_ways = pytest.mark.parametrize("way", [in_python, in_runtime])


def test_element_spec_of_dataset_equals_signature(pets) -> None:
    dataset = make_loader(pets).to_tf(structure="dict")
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
    dataset = make_loader(pets, last="pad").to_tf(structure="dict")
    inputs, targets, weights = dataset.element_spec
    assert {spec.shape for spec in (*inputs.values(), *targets.values())} == {tf.TensorShape(4)}
    assert weights == {"adopted": tf.TensorSpec((4,), tf.float32)}
    *_, (_, _, last) = dataset
    assert last["adopted"].numpy().tolist() == [1, 1, 0, 0]


@both_ways
def test_ragged_output_is_ragged_tensor_of_the_same_rows(wide, way) -> None:
    loader = make_loader(wide, make_pipeline(wide, tokens={"kind": "keep", "ragged": True}), shuffle=False)
    dataset = loader.to_tf(structure="dict")
    expected = tf.RaggedTensorSpec((None, None), tf.int64, ragged_rank=1, row_splits_dtype=tf.int64)
    assert dataset.element_spec[0]["tokens"] == expected
    rows = [row for inputs, _ in way(dataset) for row in inputs["tokens"].to_list()]
    assert sorted(map(len, rows)) == sorted(i % 5 for i in range(NUM_RECORDS))
    assert [freeze(batch) for batch in way(loader.to_tf(structure="dict"))] == read_epochs(loader, 2)[
        NUM_STEPS:
    ]


@both_ways
def test_stored_strings_are_string_tensors(pets, way) -> None:
    loader = pets["train"].loader(batch_size=4)
    inputs, targets = next(iter(way(loader.to_tf(structure="dict"))))
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
    dataset = make_loader(pets, **choices).to_tf(structure="dict")
    assert dataset.cardinality().numpy() == cardinality
    if cardinality > 0:
        assert len(list(dataset)) == cardinality


def test_cardinality_of_buckets_is_unknown(wide) -> None:
    loader = make_loader(wide, bucket_by="tokens", max_tokens=8)
    dataset = loader.to_tf(structure="dict")
    assert dataset.cardinality().numpy() == tf.data.UNKNOWN_CARDINALITY
    assert [freeze(batch) for _ in range(2) for batch in dataset] == read_epochs(loader, 2)


@both_ways
def test_each_iteration_is_next_epoch_byte_for_byte(wide, way) -> None:
    loader = make_loader(wide)
    dataset = way(loader.to_tf(structure="dict"))
    batches = [freeze(batch) for _ in range(3) for batch in dataset]
    assert batches == read_epochs(loader, 3)
    assert batches[:NUM_STEPS] != batches[NUM_STEPS : 2 * NUM_STEPS]
    assert loader.position == (2, NUM_STEPS)


@both_ways
def test_iteration_over_repeated_epochs_reads_on(pets, way) -> None:
    loader = make_loader(pets, repeat=2)
    assert [freeze(batch) for batch in way(loader.to_tf(structure="dict"))] == read_epochs(loader, 2)
    endless = way(make_loader(pets, repeat=None).to_tf(structure="dict"))
    batches = [freeze(batch) for _ in range(2) for batch, _ in zip(endless, range(9), strict=False)]
    batches += [freeze(batch) for batch in endless.take(2)]
    assert (
        batches
        == [each for first in (0, 10) for each in read_epochs(loader, 3)[first : first + 9]]
        + (read_epochs(loader, 4)[20:22])
    )


def test_look_at_first_batch_costs_no_epoch(pets) -> None:
    loader = make_loader(pets)
    dataset = loader.to_tf(structure="dict")
    next(iter(dataset))
    next(iter(loader.to_tf(structure="dict").take(3)))
    assert loader.position == (0, 1)
    assert [freeze(batch) for batch in dataset] == read_epochs(loader, 1)


@both_ways
def test_position_is_the_position_of_the_last_taken_batch(pets, way) -> None:
    loader = make_loader(pets)
    for step, _ in enumerate(way(loader.to_tf(structure="dict")), 1):
        assert loader.position == (0, step)
        assert loader.state_dict() == loader.state_at(step, 0)


def test_tensors_are_made_ahead_by_the_threads_of_the_loader(wide, monkeypatch) -> None:
    makers: dict[int, str] = {}
    loader = make_loader(wide)
    read = loader.read_epochs

    def read_noting(*where: Any) -> Any:
        *position, convert = where

        def noting(made: Any) -> Any:
            makers[made.ticket.step] = threading.current_thread().name
            return convert(made)

        return read(*position, noting)

    monkeypatch.setattr(loader, "read_epochs", read_noting)
    for way in (in_python, in_runtime):
        makers.clear()
        iterator = iter(way(loader.to_tf(structure="dict")))
        next(iterator)
        deadline = time.monotonic() + 30
        while len(makers) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert loader.position == (0, 1)
        assert len(makers) >= 3
        assert all(name.startswith("penstock") for name in makers.values())
        del iterator


@both_ways
@pytest.mark.parametrize("num_taken", range(7))
def test_rest_is_byte_equal_when_resumed_at_any_step(pets, way, num_taken) -> None:
    loader = make_loader(pets, batch_size=9)
    dataset, taken = way(loader.to_tf(structure="dict")), 0
    while taken < num_taken:
        for _ in dataset:
            taken += 1
            if taken == num_taken:
                break
    fresh = make_loader(pets, batch_size=9, num_threads=1)
    fresh.load_state_dict(loader.state_dict())
    rest, resumed = [], way(fresh.to_tf(structure="dict"))
    while len(rest) < 9 - num_taken:
        rest += [freeze(batch) for batch in resumed]
    assert rest == read_epochs(loader, 3)[num_taken:]


@both_ways
def test_state_loaded_after_to_tf_is_refused(pets, way) -> None:
    loader = make_loader(pets)
    dataset = way(loader.to_tf(structure="dict"))
    loader.load_state_dict(loader.state_at(2, 0))
    with raises_with(tf.errors.OpError, message=containing("to_tf()", "epoch 0", "step 2")):
        next(iter(dataset))
    assert isinstance(loader.last_error, ps.errors.StateError)


def address_of(tensor: Any) -> int:
    return np.asarray(memoryview(tensor)).ctypes.data


@both_ways
def test_large_arrays_cross_without_a_copy(wide, monkeypatch, way) -> None:
    loader = make_loader(wide, batch_size=8)
    places: dict[int, int] = {}
    read = loader.read_epochs

    def read_noting(*where: Any) -> Any:
        *position, convert = where

        def noting(made: Any) -> Any:
            places[made.ticket.step] = made.batch[0]["photo"].ctypes.data
            return convert(made)

        return read(*position, noting)

    monkeypatch.setattr(loader, "read_epochs", read_noting)
    tensors = [inputs["photo"] for inputs, _ in way(loader.to_tf(structure="dict"))]
    assert tensors[0].shape == (8, 64, 64)
    assert [address_of(tensor) for tensor in tensors] == [places[step] for step in range(4)]
    assert all(place % 64 == 0 for place in places.values())


@both_ways
def test_array_of_a_map_that_cannot_be_shared_is_copied(pets, way) -> None:
    def repeat_ages(columns: Any) -> Any:
        ages = columns["age"].values.astype(np.float32)
        whole = np.stack([ages, ages + 1, ages + 2], axis=1)
        fixed = np.array(ages)
        fixed.flags.writeable = False
        return {"steps": whole[:, 1:], "fixed": fixed}

    outputs = [ps.transform.Output("steps", "float32", (2,)), ps.transform.Output("fixed", "float32", ())]
    pipeline = make_pipeline(pets).map(repeat_ages, ["age"], outputs)
    loader = make_loader(pets, pipeline)
    assert [freeze(batch) for batch in way(loader.to_tf(structure="dict"))] == read_epochs(loader, 1)


def test_memory_is_not_used_again_while_tensors_are_held(wide) -> None:
    loader = make_loader(wide, batch_size=8, repeat=20)
    held = [batch for batch, _ in zip(loader.to_tf(structure="dict"), range(20), strict=False)]
    for _ in make_loader(wide, batch_size=8, repeat=5):  # takes memory from the same pool
        pass
    gc.collect()
    assert [freeze(batch) for batch in held] == read_epochs(loader, 5)[:20]
    photos = [batch[0]["photo"].numpy()[:, 0, 0] for batch in held]
    numbers = [batch[0]["number"].numpy() for batch in held]
    assert np.array_equal(np.concatenate(photos), np.concatenate(numbers))


@both_ways
def test_dropped_iterations_leave_no_thread_behind(pets, way) -> None:
    loader = make_loader(pets)
    dataset = way(loader.to_tf(structure="dict"))
    before = local_threads()
    for _ in range(20):
        iterator = iter(dataset)
        next(iterator)
        del iterator
    assert local_threads() == before
    alive = weakref.ref(loader)
    del dataset, loader
    gc.collect()
    assert alive() is None


@both_ways
def test_error_of_the_consumer_leaves_no_thread_behind(pets, way) -> None:
    loader = make_loader(pets)

    def train() -> None:
        for step, _ in enumerate(way(loader.to_tf(structure="dict")), 1):
            if step == 3:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    gc.collect()
    assert local_threads() == []
    assert loader.position == (0, 3)


@both_ways
def test_bad_record_is_named_in_the_text_and_kept(tmp_path, way) -> None:
    pets = write_pets(tmp_path / "pets", NUM_RECORDS)
    pipeline = make_pipeline(pets)
    (shard,) = (tmp_path / "pets").glob("*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[-20] ^= 1
    stat = shard.stat()
    shard.write_bytes(content)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    loader = ps.open(tmp_path / "pets")["train"].loader(pipeline, batch_size=4)
    taken: list[Any] = []
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        taken.extend(way(loader.to_tf(structure="dict")))
    assert len(taken) == NUM_STEPS - 1
    assert shard.name in str(raised.value)
    assert f"record {NUM_RECORDS - 1}" in str(raised.value)
    assert isinstance(loader.last_error, ps.errors.CorruptRecordError)
    assert loader.last_error.record == NUM_RECORDS - 1
    assert raised.value.__cause__ is (loader.last_error if way is in_python else None)
    assert local_threads() == []
    assert loader.position == (0, NUM_STEPS - 1)


@tf.function
def take_in_graph(iterator: Any) -> Any:
    return next(iterator)


def test_iterator_is_read_by_functions_and_python_in_turn(wide) -> None:
    loader = make_loader(wide)
    expected = read_epochs(loader, 1)
    for turns in ("gggpggp", "ppgpggg", "pgpgpgp", "ppppppg"):
        iterator = iter(loader.to_tf(structure="dict"))
        assert isinstance(iterator, tf.data.Iterator)
        start = loader.position[0]
        taken = []
        for step, turn in enumerate(turns, 1):
            batch = take_in_graph(iterator) if turn == "g" else next(iterator)
            taken.append(freeze(batch))
            assert loader.position == (loader.position[0], step)
        with pytest.raises(StopIteration):
            next(iterator)
        assert taken == expected
        loader.load_state_dict(loader.state_at(0, start))
        del iterator
    assert local_threads() == []


def test_function_reads_an_iterator_that_it_captured(pets) -> None:
    loader = make_loader(pets)
    iterator = iter(loader.to_tf(structure="dict"))
    taken = [next(iterator)]

    @tf.function
    def take() -> Any:
        return next(iterator)

    taken += [take() for _ in range(3)]
    taken += [iterator.get_next(), iterator.get_next_as_optional().get_value()]
    assert [freeze(batch) for batch in taken] == read_epochs(loader, 1)[:6]
    assert loader.position == (0, 6)


def test_function_loops_over_a_dataset(pets) -> None:
    loader = make_loader(pets)

    @tf.function
    def add(dataset: Any) -> Any:
        total = tf.constant(0, tf.int64)
        for inputs, _ in dataset:
            total += tf.reduce_sum(inputs["number"])
        return total

    assert int(add(loader.to_tf(structure="dict"))) == sum(range(NUM_RECORDS))
    assert loader.position == (0, NUM_STEPS)


def test_get_next_after_the_last_batch_is_out_of_range(pets) -> None:
    dataset = make_loader(pets, take=4).to_tf(structure="dict")
    iterator = iter(dataset)
    iterator.get_next()
    assert iterator.element_spec == dataset.element_spec
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()


def test_numpy_iterator_gives_the_same_batches(pets) -> None:
    loader = make_loader(pets)
    assert [freeze(batch) for batch in loader.to_tf(structure="dict").as_numpy_iterator()] == read_epochs(
        loader, 1
    )


def test_interrupt_while_waiting_ends_the_iteration(pets) -> None:
    waiting, is_over = threading.Event(), threading.Event()

    def wait(columns: Any) -> Any:
        waiting.set()
        is_over.wait(30)
        return {"late": columns["age"].values.astype(np.float32)}

    pipeline = make_pipeline(pets).map(wait, ["age"], [ps.transform.Output("late", "float32", ())])
    iterator = iter(make_loader(pets, pipeline).to_tf(structure="dict"))

    def interrupt() -> None:
        waiting.wait(30)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    threading.Timer(1.0, is_over.set).start()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    other.join()
    is_over.set()
    assert local_threads() == []


FORKED = """
import os, sys
import penstock as ps
from pets_data import make_loader

loader = make_loader(ps.open(sys.argv[1]))
iterator = iter(loader.to_tf(structure="dict"))
next(iterator)
if os.fork() == 0:
    try:
        next(iterator)
    except Exception as error:
        print(type(error.__cause__).__name__, flush=True)
    os._exit(0)
print(os.wait()[1], len(list(iterator)), flush=True)
"""


def test_iterator_is_refused_in_a_forked_process(tmp_path) -> None:
    write_pets(tmp_path / "pets", NUM_RECORDS)
    environment = {**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[1])}
    command = [sys.executable, "-c", FORKED, os.fspath(tmp_path / "pets")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.splitlines() == ["ForkedError", f"0 {NUM_STEPS - 1}"], done.stderr


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
    # Keras warns that it does not shuffle a tf.data.Dataset, unless that is turned off.
    model.fit(loader.to_tf(structure="dict"), epochs=3, verbose=0, shuffle=False)
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
dataset = loader.to_tf(structure="dict")
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
datasets = [make_loader(pets).to_tf(structure="dict"), make_loader(pets).to_tf(structure="dict").prefetch(2)]
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


def test_exit_waits_for_an_iterator_that_another_thread_holds(monkeypatch):
    from penstock.bridge import tensorflow as bridge  # noqa: PLC0415 - needs TensorFlow

    monkeypatch.setattr(bridge, "_UNFINISHED", weakref.WeakSet())
    # As a thread of TensorFlow holds it for a moment after it has returned a batch, also the last one.
    held = [bridge._Iteration(iter(()))]
    assert list(held[0]) == []
    thread = threading.Timer(0.1, held.clear)
    thread.start()
    bridge._wait_for_end(30.0)
    assert not held
    thread.join()


def test_exit_does_not_wait_for_ever_for_an_iterator(monkeypatch):
    from penstock.bridge import tensorflow as bridge  # noqa: PLC0415 - needs TensorFlow

    monkeypatch.setattr(bridge, "_UNFINISHED", weakref.WeakSet())
    held = bridge._Iteration(iter(()))
    bridge._wait_for_end(0.01)
    assert list(bridge._UNFINISHED) == [held]
