"""`loader.to_torch()`: what its batches are, in which memory, where the loader is then, and how it ends."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import weakref
from itertools import islice
from typing import Any

import numpy as np
import pytest

import penstock as ps
from local_threads import local_threads
from penstock.transform.output import Output
from pets_data import freeze, make_loader, make_pipeline, read_epochs, write_pets
from raising import containing, raises_with

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset  # noqa: E402

NUM_RECORDS = 26
NUM_STEPS = 7


@pytest.fixture(scope="module")
def pets(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("narrow") / "pets", NUM_RECORDS)


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("wide") / "pets", NUM_RECORDS, is_wide=True)


def count_threads() -> int:
    """Return the number of threads of loaders, after a wait for those that are ending."""
    threads = local_threads()
    for thread in threads:
        thread.join(0.2)
    return sum(thread.is_alive() for thread in threads)


def test_tuples_are_in_the_order_of_the_pipeline_and_the_state_is_the_same(pets) -> None:
    loader, expected = make_loader(pets), make_loader(pets)
    feed = loader.to_torch(structure="tuple")
    assert len(feed) == NUM_STEPS
    assert repr(feed) == containing("batches of ((number: int64 (n,), age:", "adopted: int32 (n,))")
    for (inputs, targets), ((numbers, ages, kinds), adopted) in islice(zip(expected, feed, strict=True), 2):
        assert numbers.tolist() == inputs["number"].tolist()
        assert (ages.tolist(), kinds.tolist()) == (inputs["age"].tolist(), inputs["kind"].tolist())
        assert adopted.tolist() == targets["adopted"].tolist()
    assert loader.state_dict() == expected.state_dict()


def test_batch_is_dicts_of_tensors(wide) -> None:
    dataset = make_loader(wide, shuffle=False).to_torch()
    assert isinstance(dataset, IterableDataset)
    inputs, targets = next(iter(dataset))
    assert {name: (each.dtype, tuple(each.shape)) for name, each in inputs.items()} == {
        "number": (torch.int64, (4,)),
        "age": (torch.float32, (4,)),
        "kind": (torch.int32, (4,)),
        "tokens": (torch.int64, (4, 4)),
        "photo": (torch.float32, (4, 64, 64)),
    }
    assert list(targets) == ["adopted"]


def test_padded_batches_have_weights(pets) -> None:
    *_, (inputs, _, weights) = make_loader(pets, last="pad").to_torch()
    assert weights["adopted"].tolist() == [1, 1, 0, 0]
    assert len(inputs["age"]) == 4


def test_each_iteration_is_next_epoch_byte_for_byte(wide) -> None:
    loader = make_loader(wide)
    dataset = loader.to_torch()
    assert [freeze(batch) for _ in range(3) for batch in dataset] == read_epochs(loader, 3)
    assert loader.position == (2, NUM_STEPS)


def test_dataloader_gives_the_same_batches(wide) -> None:
    loader = make_loader(wide)
    batches = DataLoader(loader.to_torch(), batch_size=None)
    assert len(batches) == NUM_STEPS
    assert [freeze(batch) for _ in range(2) for batch in batches] == read_epochs(loader, 2)


def test_length_equals_the_length_of_the_loader(pets) -> None:
    assert len(make_loader(pets, repeat=3).to_torch()) == 3 * NUM_STEPS
    endless = make_loader(pets, repeat=None).to_torch()
    with pytest.raises(TypeError, match="repeat=None"):
        len(endless)
    batches = zip(DataLoader(endless, batch_size=None), range(18), strict=False)
    assert [freeze(batch) for batch, _ in batches] == read_epochs(make_loader(pets), 3)[:18]


@pytest.mark.parametrize(
    "wrap", [lambda dataset: dataset, lambda dataset: DataLoader(dataset, batch_size=None)]
)
def test_state_is_the_state_after_the_last_taken_batch(pets, wrap) -> None:
    loader = make_loader(pets)
    dataset = loader.to_torch()
    for step, _ in enumerate(wrap(dataset), 1):
        assert loader.position == (0, step)
        assert dataset.state_dict() == loader.state_at(step, 0)


@pytest.mark.parametrize("num_taken", range(NUM_STEPS + 1))
def test_rest_is_byte_equal_when_resumed_at_any_step(pets, num_taken) -> None:
    dataset = make_loader(pets).to_torch()
    for _ in zip(range(num_taken), dataset, strict=False):
        pass
    fresh = make_loader(pets, num_threads=1)
    resumed = fresh.to_torch()
    resumed.load_state_dict(dataset.state_dict())
    wanted = read_epochs(fresh, 2)
    batches = [freeze(batch) for _ in range(2) for batch in resumed][: len(wanted) - num_taken]
    assert batches == wanted[num_taken:]


def test_tensors_share_memory_of_arrays(wide, monkeypatch) -> None:
    loader = make_loader(wide, batch_size=8)
    arrays: list[Any] = []
    take = loader.took
    monkeypatch.setattr(loader, "took", lambda feed, made: (arrays.append(made.batch), take(feed, made)))
    for inputs, targets in loader.to_torch():
        for part, tensors in zip(arrays.pop(), (inputs, targets), strict=True):
            assert {name: array.ctypes.data for name, array in part.items()} == {
                name: tensor.data_ptr() for name, tensor in tensors.items()
            }
        assert inputs["photo"].data_ptr() % 64 == 0


def test_memory_is_not_used_again_while_tensors_are_held(wide) -> None:
    loader = make_loader(wide, batch_size=8, repeat=5)
    held = list(loader.to_torch())
    for _ in make_loader(wide, batch_size=8, repeat=5):  # takes memory from the same pool
        pass
    gc.collect()
    assert [freeze(batch) for batch in held] == read_epochs(loader, 5)


def test_tensor_can_be_written_to_without_changing_arrays_kept_by_a_map(pets) -> None:
    kept = np.arange(64, dtype=np.float32)[:4]
    kept.flags.writeable = False
    pipeline = make_pipeline(pets)
    pipeline = pipeline.map(
        lambda _: {"kept": kept}, ["number"], [Output("kept", "float32")], name="kept", keep=True
    )
    for inputs, _ in make_loader(pets, pipeline, last="drop").to_torch():
        for tensor in inputs.values():
            tensor.add_(1)
        assert inputs["kept"].tolist() == [1, 2, 3, 4]
    assert kept.tolist() == [0, 1, 2, 3]


def test_ragged_output_is_nested_tensor_of_the_same_rows(wide) -> None:
    pipeline = make_pipeline(wide, tokens={"kind": "keep", "ragged": True})
    loader = make_loader(wide, pipeline, shuffle=False)
    rows = []
    for inputs, _ in DataLoader(loader.to_torch(), batch_size=None):
        assert inputs["tokens"].layout == torch.jagged
        rows += [row.tolist() for row in inputs["tokens"].unbind()]
    assert rows == [list(range(len(row))) for row in rows]
    wanted = [row.tolist() for inputs, _ in loader.read(0) for row in inputs["tokens"]]
    assert rows == wanted


def test_string_output_is_refused_by_name(pets) -> None:
    loader = pets["train"].loader(batch_size=4)
    with raises_with(ps.errors.OptionError, what=containing("'kind'", "torch"), got=containing("string")):
        loader.to_torch()


def test_lists_of_lists_are_refused_by_name(pets) -> None:
    output = Output("pages", "int64", (None, None), is_ragged=True)
    pipeline = make_pipeline(pets)
    pipeline = pipeline.map(lambda _: {}, ["number"], [output], name="pages", keep=True)
    facts = {"what": containing("'pages'", "torch"), "expected": containing("array")}
    with raises_with(ps.errors.OptionError, **facts):
        make_loader(pets, pipeline).to_torch()


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where a test before has used it
def test_workers_of_dataloader_are_refused(pets) -> None:
    loader = make_loader(pets)
    batches = DataLoader(loader.to_torch(), batch_size=None, num_workers=2, multiprocessing_context="fork")
    # DataLoader makes a new error of the text of the one that a worker raised.
    with raises_with(ps.errors.OptionError, "num_workers 0 2 num_workers=0"):
        next(iter(batches))
    assert loader.position == (0, 0)


@pytest.mark.parametrize("send", [pickle.dumps, copy.deepcopy])
def test_dataset_is_not_sent_to_another_process(pets, send) -> None:
    with pytest.raises(TypeError, match="num_workers=0"):
        send(make_loader(pets).to_torch())


def test_dropped_iterations_leave_no_thread_behind(pets) -> None:
    loader = make_loader(pets)
    dataset = loader.to_torch()
    before = count_threads()
    for _ in range(10):
        iterator = iter(DataLoader(dataset, batch_size=None))
        next(iterator)
        del iterator
        next(iter(dataset))
        iter(dataset)
    assert count_threads() == before
    alive = weakref.ref(loader)
    del dataset, loader
    gc.collect()
    assert alive() is None


def test_bad_record_is_named_and_position_is_that_before_it(tmp_path) -> None:
    pets = write_pets(tmp_path / "pets", NUM_RECORDS)
    pipeline = make_pipeline(pets)
    (shard,) = (tmp_path / "pets").glob("*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[-20] ^= 1
    stat = shard.stat()
    shard.write_bytes(content)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    loader = ps.open(tmp_path / "pets")["train"].loader(pipeline, batch_size=4)
    with pytest.raises(ps.errors.CorruptRecordError) as raised:
        list(DataLoader(loader.to_torch(), batch_size=None))
    assert raised.value.record == NUM_RECORDS - 1
    assert loader.position == (0, NUM_STEPS - 1)
    assert count_threads() == 0
