"""`loader.to_jax()`: its batches, their devices and shapes; batches put ahead, and batches taken."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import threading
import weakref
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from local_threads import local_threads
from penstock.bridge.outputs import pad_array
from penstock.transform.output import Output
from pets_data import freeze, make_loader, make_pipeline, read_epochs, write_pets
from raising import containing, raises_with

jax = pytest.importorskip("jax")

NUM_RECORDS = 26
NUM_STEPS = 7


@pytest.fixture(scope="module")
def pets(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("narrow") / "pets", NUM_RECORDS)


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("wide") / "pets", NUM_RECORDS, is_wide=True)


def narrow(batches: list[Any]) -> list[Any]:
    """Return frozen batches as JAX has them: int64 as int32."""
    narrowed = []
    for batch in batches:
        parts = [dict(part) for part in batch]
        for part in parts:
            for name, (dtype, shape, content) in part.items():
                if dtype == "<i8":
                    numbers = np.frombuffer(content, "<i8").astype("<i4")
                    part[name] = ("<i4", shape, numbers.tobytes())
        narrowed.append(tuple(parts))
    return narrowed


def test_tuples_are_in_the_order_of_the_pipeline_and_the_state_is_the_same(pets) -> None:
    loader, expected = make_loader(pets), make_loader(pets)
    feed = loader.to_jax(structure="tuple")
    assert len(feed) == NUM_STEPS
    assert repr(feed) == containing("batches of ((number: int64 (n,), age:", "adopted: int32 (n,))")
    for (inputs, targets), ((numbers, ages, kinds), adopted) in islice(zip(expected, feed, strict=True), 2):
        assert numbers.tolist() == inputs["number"].tolist()
        assert (ages.tolist(), kinds.tolist()) == (inputs["age"].tolist(), inputs["kind"].tolist())
        assert adopted.tolist() == targets["adopted"].tolist()
    assert loader.state_dict() == expected.state_dict()


def test_batch_is_dicts_of_arrays_in_order_of_outputs(wide) -> None:
    loader = make_loader(wide, shuffle=False)
    inputs, targets = next(iter(loader.to_jax()))
    assert {name: (each.dtype.name, each.shape) for name, each in inputs.items()} == {
        "number": ("int32", (4,)),
        "age": ("float32", (4,)),
        "kind": ("int32", (4,)),
        "tokens": ("int32", (4, 8)),
        "photo": ("float32", (4, 64, 64)),
    }
    assert list(inputs) == list(loader.signature()[0])
    assert all(isinstance(each, jax.Array) for each in (*inputs.values(), *targets.values()))


def test_targets_and_weights_of_one_name_are_kept_apart(tmp_path) -> None:
    columns = {"x": [1.0, 2.0, 3.0], "y": [10, 20, 30]}
    data = ps.convert(columns, tmp_path / "data", target="y", split="train=1.0")
    pipeline = ps.Pipeline.fit(data, y={"kind": "keep"})
    batches = list(data["train"].loader(pipeline, batch_size=2, last="pad").to_jax())
    (_, targets, weights) = batches[-1]
    assert targets["y"].tolist() == [batches[-1][1]["y"][0], 0]
    assert weights["y"].tolist() == [1, 0]
    assert weights["y"].dtype == np.float32
    assert {each.shape for batch in batches for part in batch for each in part.values()} == {(2,)}


@pytest.mark.parametrize("prefetch", [0, 1, 2, 50])
def test_each_iteration_is_next_epoch_byte_for_byte(pets, prefetch) -> None:
    loader = make_loader(pets)
    feed = loader.to_jax(prefetch=prefetch)
    assert [freeze(batch) for _ in range(3) for batch in feed] == narrow(read_epochs(loader, 3))
    assert loader.position == (2, NUM_STEPS)
    assert len(feed) == NUM_STEPS


def test_iteration_that_is_left_is_followed_by_next_epoch_as_with_loader(pets) -> None:
    loader = make_loader(pets)
    feed = loader.to_jax()
    next(iter(feed))
    assert loader.position == (0, 1)
    assert [freeze(batch) for batch in feed] == narrow(read_epochs(loader, 2))[NUM_STEPS:]


@pytest.mark.parametrize("prefetch", [0, 2, 50])
def test_state_counts_taken_batches_and_not_batches_put_ahead(pets, prefetch) -> None:
    loader = make_loader(pets, repeat=2)
    feed = loader.to_jax(prefetch=prefetch)
    for number, _ in enumerate(feed):
        epoch, step = divmod(number, NUM_STEPS)
        assert loader.position == (epoch, step + 1)
        assert feed.state_dict() == loader.state_at(step + 1, epoch)


def test_batches_are_put_ahead_before_they_are_asked_for(pets, monkeypatch) -> None:
    loader = make_loader(pets)
    put: list[int] = []
    device_put = jax.device_put
    monkeypatch.setattr(jax, "device_put", lambda *arguments: (put.append(1), device_put(*arguments))[1])
    batches = iter(loader.to_jax(prefetch=2))
    assert put == []
    for num_taken in range(1, NUM_STEPS + 1):
        next(batches)
        assert len(put) == min(num_taken + 2, NUM_STEPS)
    assert next(batches, None) is None


@pytest.mark.parametrize("num_taken", range(NUM_STEPS + 1))
def test_rest_is_byte_equal_when_resumed_at_any_step(pets, num_taken) -> None:
    feed = make_loader(pets).to_jax()
    for _ in zip(range(num_taken), feed, strict=False):
        pass
    fresh = make_loader(pets, num_threads=1)
    resumed = fresh.to_jax(prefetch=1)
    resumed.load_state_dict(json.loads(json.dumps(feed.state_dict())))
    wanted = narrow(read_epochs(fresh, 2))
    batches = [freeze(batch) for _ in range(2) for batch in resumed][: len(wanted) - num_taken]
    assert batches == wanted[num_taken:]


def test_lengths_are_padded_to_few_sizes_as_the_transform_pads(wide) -> None:
    tokens = ps.transform.Pad(value=-1, mask=True)
    loader = make_loader(wide, make_pipeline(wide, tokens=tokens), batch_size=3)
    shapes = set()
    for (inputs, _), (arrays, _) in zip(loader.to_jax(sizes=[3, 4]), loader.read(0), strict=True):
        ids, mask = np.asarray(inputs["tokens"]), np.asarray(inputs["tokens_mask"])
        width = arrays["tokens"].shape[1]
        shapes.add(ids.shape)
        assert ids.shape == mask.shape == (len(arrays["number"]), 3 if width <= 3 else 4)
        assert ids[:, :width].tolist() == arrays["tokens"].tolist()
        assert mask[:, :width].tolist() == arrays["tokens_mask"].tolist()
        assert (ids[:, width:] == -1).all()
        assert not mask[:, width:].any()
    assert {width for _, width in shapes} == {3, 4}


def test_arrays_are_padded_by_the_threads_of_the_loader(wide, monkeypatch) -> None:
    padders: set[str] = set()

    def pad_noting(*arguments: Any) -> Any:
        padders.add(threading.current_thread().name)
        return pad_array(*arguments)

    monkeypatch.setattr("penstock.bridge.jax.pad_array", pad_noting)
    assert list(make_loader(wide).to_jax())
    assert padders
    assert all(name.startswith("penstock") for name in padders)


def test_lengths_are_powers_of_two_if_no_sizes_are_given_and_stay_if_none_is_wanted(wide) -> None:
    loader = make_loader(wide)
    assert {inputs["tokens"].shape[1] for inputs, _ in loader.to_jax()} == {8}
    widths = [inputs["tokens"].shape[1] for inputs, _ in loader.read(1)]
    assert [inputs["tokens"].shape[1] for inputs, _ in loader.to_jax(sizes=())] == widths


def test_length_goes_no_further_than_the_transform_says(wide) -> None:
    tokens = ps.transform.Pad(multiple=2, length=6)
    loader = make_loader(wide, make_pipeline(wide, tokens=tokens))
    assert {inputs["tokens"].shape[1] for inputs, _ in loader.to_jax()} == {6}


def test_function_is_compiled_once_for_all_batches_of_one_shape(wide) -> None:
    loader = make_loader(wide, last="pad")
    num_traced = 0

    @jax.jit
    def add_up(inputs: Any) -> Any:
        nonlocal num_traced
        num_traced += 1
        return sum(array.sum() for array in inputs.values())

    for _ in range(2):
        for inputs, _, _ in loader.to_jax():
            add_up(inputs)
    assert num_traced == 1


def test_whole_numbers_that_int32_cannot_hold_are_refused_with_the_record(tmp_path) -> None:
    columns = {"x": [0, 1, 2**31 - 1, 2**40, 4], "y": [0, 1, 0, 1, 0]}
    fields = {"x": ps.fields.Number("int64")}
    data = ps.convert(columns, tmp_path / "data", target="y", fields=fields, split="train=1.0", seed=1)
    loader = data["train"].loader(ps.Pipeline.fit(data, x={"kind": "keep"}), batch_size=2)
    numbers = [record["x"] for record in data["train"]]
    row = numbers.index(2**40)
    step, at = divmod(row, 2)
    taken = []
    facts = {"record": row, "expected": containing("int32"), "got": containing(2**40)}
    with raises_with(ps.errors.FieldError, what=containing("'x'"), **facts) as raised:
        taken.extend(loader.to_jax(prefetch=3))
    assert "jax_enable_x64" in raised.value.advice
    assert raised.value.path == loader.where(step, 0)[at].path
    assert loader.position == (0, step)  # all that came before it was given
    assert local_threads() == []


def test_numbers_of_64_bits_stay_where_jax_has_such(tmp_path) -> None:
    columns = {"x": [2**40, 1], "z": [0.1, 1e300], "y": [0, 1]}
    fields = {"x": ps.fields.Number("int64"), "z": ps.fields.Tensor((), "float64")}
    data = ps.convert(columns, tmp_path / "data", target="y", fields=fields, split="train=1.0")
    pipeline = ps.Pipeline.fit(data, x={"kind": "keep"}, z={"kind": "keep"})
    loader = data["train"].loader(pipeline, batch_size=2)
    with jax.enable_x64(True):
        ((inputs, _),) = loader.to_jax()
    assert (inputs["x"].dtype, inputs["z"].dtype) == (np.int64, np.float64)
    assert set(inputs["x"].tolist()) == {2**40, 1}
    with raises_with(ps.errors.FieldError, what=containing("'x'"), expected=containing("int32")):
        list(loader.to_jax())
    with jax.enable_x64(True):
        batches = iter(loader.to_jax())
    with raises_with(ps.errors.FieldError, what=containing("'x'"), expected=containing("int32")):
        next(batches)  # the mode has changed since the iteration began
    pipeline = ps.Pipeline.fit(data, x=None, z={"kind": "keep"})
    facts = {"expected": containing("float32"), "got": containing("1e+300")}
    with raises_with(ps.errors.FieldError, what=containing("'z'"), **facts):
        list(data["train"].loader(pipeline, batch_size=2).to_jax())


def test_arrays_share_memory_of_loader_on_a_cpu_and_hold_it(wide) -> None:
    loader = make_loader(wide, batch_size=8, repeat=5)
    held = list(loader.to_jax())
    for _ in make_loader(wide, batch_size=8, repeat=5):  # takes memory from the same pool
        pass
    gc.collect()
    assert all(batch[0]["photo"].unsafe_buffer_pointer() % 64 == 0 for batch in held)
    photos = [np.asarray(batch[0]["photo"])[:, 0, 0] for batch in held]
    numbers = [np.asarray(batch[0]["number"]) for batch in held]
    assert np.array_equal(np.concatenate(photos), np.concatenate(numbers))
    wanted = [inputs["number"].tolist() for epoch in range(5) for inputs, _ in loader.read(epoch)]
    assert [each.tolist() for each in numbers] == wanted


def test_large_array_crosses_without_a_copy(wide, monkeypatch) -> None:
    loader = make_loader(wide, batch_size=8)
    places: list[int] = []
    take = loader.took

    def note(feed: Any, made: Any) -> None:
        places.append(made.batch[0]["photo"].ctypes.data)
        take(feed, made)

    monkeypatch.setattr(loader, "took", note)
    assert [inputs["photo"].unsafe_buffer_pointer() for inputs, _ in loader.to_jax()] == places


def test_device_is_where_arrays_are(pets) -> None:
    (device,) = jax.devices("cpu")[:1]
    inputs, targets = next(iter(make_loader(pets).to_jax(device)))
    assert {each.device for each in (*inputs.values(), *targets.values())} == {device}
    sharding = jax.sharding.SingleDeviceSharding(device)
    inputs, _ = next(iter(make_loader(pets).to_jax(sharding)))
    assert inputs["age"].sharding == sharding


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("device", "gpu", containing("jax.Device", "Sharding")),
        ("prefetch", -1, containing(0)),
        ("prefetch", True, containing(0)),
        ("sizes", [0], containing(1)),
    ],
)
def test_option_of_another_value_is_refused(pets, name, given, expected) -> None:
    facts = {"expected": expected, "got": containing(repr(given))}
    with raises_with(ps.errors.OptionError, what=containing(name), **facts):
        make_loader(pets).to_jax(**{name: given})


def test_strings_and_lists_are_refused_by_name(wide) -> None:
    with raises_with(ps.errors.OptionError, what=containing("'kind'", "JAX"), got=containing("string")):
        wide["train"].loader(batch_size=4).to_jax()
    pipeline = make_pipeline(wide, tokens={"kind": "keep", "ragged": True})
    with raises_with(ps.errors.OptionError, what=containing("'tokens'", "JAX"), got=containing("int64")):
        make_loader(wide, pipeline).to_jax()


def test_dropped_iterations_leave_no_thread_behind(pets) -> None:
    loader = make_loader(pets)
    feed = loader.to_jax()
    before = local_threads()
    for _ in range(10):
        batches = iter(feed)
        next(batches)
        del batches
        iter(feed)
    assert local_threads() == before
    alive = weakref.ref(loader)
    del feed, loader
    gc.collect()
    assert alive() is None


def test_bad_record_is_named_when_its_turn_comes(tmp_path) -> None:
    pets = write_pets(tmp_path / "pets", NUM_RECORDS)
    pipeline = make_pipeline(pets)
    (shard,) = (tmp_path / "pets").glob("*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[-20] ^= 1
    stat = shard.stat()
    shard.write_bytes(content)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    loader = ps.open(tmp_path / "pets")["train"].loader(pipeline, batch_size=4)
    taken = []
    with pytest.raises(ps.errors.CorruptRecordError) as raised:
        taken.extend(loader.to_jax(prefetch=4))
    assert raised.value.record == NUM_RECORDS - 1
    assert loader.position == (0, NUM_STEPS - 1)
    assert local_threads() == []


def test_map_of_varying_length_is_padded_with_zeros(pets) -> None:
    def repeat(columns: Any) -> Any:
        numbers = columns["number"].values
        return {"many": np.repeat(numbers[:, None] + 1, int(numbers.max()) % 5 + 1, axis=1)}

    pipeline = make_pipeline(pets)
    pipeline = pipeline.map(repeat, ["number"], [Output("many", "int64", (None,))], keep=True)
    loader = make_loader(pets, pipeline)
    for (inputs, _), (arrays, _) in zip(loader.to_jax(), loader.read(0), strict=True):
        width = arrays["many"].shape[1]
        assert inputs["many"].shape[1] == 8
        assert inputs["many"][:, :width].tolist() == arrays["many"].tolist()
        assert not inputs["many"][:, width:].any()


TWO_DEVICES = """
import sys
import jax
import pytest
from pathlib import Path
from pets_data import make_loader, write_pets
from penstock.errors import OptionError

mesh = jax.make_mesh((2,), ("rows",))
spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
pets = write_pets(Path(sys.argv[1]), 26)
loader = make_loader(pets, last="pad")
for (inputs, _, _), (arrays, _, _) in zip(loader.to_jax(spread), loader.read(0), strict=True):
    assert inputs["number"].sharding == spread
    assert [part.data.shape for part in inputs["number"].addressable_shards] == [(2,), (2,)]
    assert inputs["number"].tolist() == arrays["number"].tolist()
with pytest.raises(OptionError, match="got last='short'.*last='pad'"):
    make_loader(pets).to_jax(spread)
with pytest.raises(OptionError, match="device for output 'number': expected a sharding that divides it"):
    make_loader(pets, batch_size=5, last="drop").to_jax(spread)
print("as wanted")
"""


def test_batches_are_shared_by_the_devices_of_a_mesh(tmp_path) -> None:
    flags = "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[1]), "XLA_FLAGS": flags}
    command = [sys.executable, "-c", TWO_DEVICES, os.fspath(tmp_path / "pets")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "as wanted\n", done.stderr


TWO_PROCESSES = """
import sys
import jax

folder, port, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
jax.distributed.initialize(f"localhost:{port}", 2, rank)
from pets_data import make_loader, write_pets
from pathlib import Path

mesh = jax.make_mesh((2,), ("rows",))
spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
loader = make_loader(write_pets(Path(folder) / str(rank), 26), last="pad", shard=(rank, 2))
for (inputs, _, _), (arrays, _, _) in zip(loader.to_jax(spread), loader.read(0), strict=True):
    assert inputs["number"].shape == (4,)
    (mine,) = inputs["number"].addressable_shards
    assert mine.data.tolist() == arrays["number"].tolist()
print("as wanted")
"""


def test_each_process_of_several_puts_its_own_part_of_a_batch(tmp_path) -> None:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        port = listening.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[1])}
    command = [sys.executable, "-c", TWO_PROCESSES, os.fspath(tmp_path), str(port)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([*command, str(rank)], env=environment, **pipes) for rank in range(2)]
    try:
        for each in running:
            printed, errors = each.communicate(timeout=120)
            assert printed == "as wanted\n", errors
    finally:
        for each in running:
            each.kill()
