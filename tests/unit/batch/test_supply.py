"""Columns of records, of one split or of several, and when it pays to announce reads."""

import numpy as np
import pytest

from loaded_batches import SCHEMA, open_numbers, payload, write_shards
from penstock.batch import supply as module
from penstock.batch.supply import DiskStore, SplitSource, Supply
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.errors import ChangedFileError, MissingShardError
from penstock.read.order import Picks
from penstock.read.scatter import Scatter
from record_files import example, write_plain


def make_source(folder, fields=("n", "s", "l"), on_error="raise", **choices):
    split = open_numbers(folder, **choices)
    schema = SCHEMA.select(fields)
    return SplitSource(Scatter(split._rows), DecodePlan(schema), schema, Losses(on_error, 100), split.name)


@pytest.fixture
def folders(tmp_path):
    write_shards(tmp_path / "a", [6, 4])
    write_shards(tmp_path / "b", [5], first=100)
    return tmp_path / "a", tmp_path / "b"


def supply_of(*folders, **choices):
    sources = [make_source(folder, **choices) for folder in folders]
    return Supply(sources, [DiskStore(source) for source in sources])


def picks(rows, sources=None):
    return Picks(np.array(rows, np.int64), None if sources is None else np.array(sources, np.int32))


def test_one_split_gives_its_rows_in_order(folders):
    supplied = supply_of(folders[0]).columns(picks([9, 0, 0, 3]))
    assert supplied.columns["n"].values.tolist() == [9, 0, 0, 3]
    assert (supplied.num_rows, supplied.kept) == (4, None)


def test_several_splits_are_put_together_in_the_order_of_the_picks(folders):
    supply = supply_of(*folders)
    supplied = supply.columns(picks([0, 4, 9, 0, 2], [1, 1, 0, 0, 1]))
    assert supplied.columns["n"].values.tolist() == [100, 104, 9, 0, 102]
    assert supplied.columns["s"].tolist() == [f"value {n % 7}".encode() for n in (100, 104, 9, 0, 102)]
    assert [len(supplied.columns["l"][i]) for i in range(5)] == [n % 5 for n in (100, 104, 9, 0, 102)]
    assert (supplied.num_rows, supplied.kept) == (5, None)


@pytest.mark.parametrize("source", [0, 1])
def test_batch_of_one_source_alone_is_taken_as_it_is(folders, source):
    supplied = supply_of(*folders).columns(picks([3, 1], [source, source]))
    assert supplied.columns["n"].values.tolist() == [3 + 100 * source, 1 + 100 * source]


def test_no_records_are_columns_without_rows(folders):
    for given in (picks([]), picks([], [])):
        supplied = supply_of(*folders).columns(given)
        assert supplied.num_rows == 0
        assert [len(column) for column in supplied.columns.values()] == [0, 0, 0]


@pytest.fixture
def flawed(tmp_path):
    """Two splits; in each, some records lack a number."""
    for name, first, bad in (("a", 0, (2, 3)), ("b", 100, (0,))):
        (tmp_path / name).mkdir()
        records = [example(s="none") if i in bad else payload(first + i) for i in range(6)]
        write_plain(tmp_path / name / "train-00000-of-00001.tfrecord", records)
    return tmp_path / "a", tmp_path / "b"


def test_bad_records_are_left_out_of_their_places(flawed):
    supplied = supply_of(*flawed, fields=("n",), on_error="skip").columns(
        picks([0, 0, 2, 5, 5, 3], [1, 0, 0, 1, 0, 0])
    )
    assert supplied.columns["n"].values.tolist() == [0, 105, 5]
    assert supplied.kept.tolist() == [False, True, False, True, True, False]
    assert supplied.num_rows == 3


def test_source_whose_records_are_all_bad_leaves_the_other_sources(flawed):
    supplied = supply_of(*flawed, fields=("n",), on_error="skip").columns(picks([0, 1], [1, 0]))
    assert (supplied.columns["n"].values.tolist(), supplied.kept.tolist()) == ([1], [False, True])
    supplied = supply_of(*flawed, fields=("n",), on_error="skip").columns(picks([0, 2], [1, 0]))
    assert (supplied.num_rows, supplied.kept.tolist()) == (0, [False, False])


def test_bytes_read_are_counted(folders):
    supply = supply_of(*folders)
    assert (supply.bytes_read, supply.read_seconds) == (0, 0.0)
    supply.columns(picks([0, 0], [0, 1]))
    assert supply.bytes_read == len(payload(0)) + len(payload(100)) + 2 * 16
    assert supply.read_seconds > 0


def test_check_looks_at_the_files_of_every_source(folders):
    supply = supply_of(*folders)
    supply.check()
    (path,) = folders[1].iterdir()
    path.rename(path.with_suffix(".away"))
    with pytest.raises(MissingShardError) as caught:
        supply.check()
    assert caught.value.path == str(path)
    write_plain(path, [payload(100)])
    with pytest.raises(ChangedFileError):
        supply.check()


def test_check_lets_files_be_lost_where_records_may_be_skipped(folders):
    supply = supply_of(*folders, on_error="skip")
    (path,) = folders[1].iterdir()
    path.unlink()
    supply.check()
    supplied = supply.columns(picks([0, 4, 9], [1, 1, 0]))
    assert (supplied.columns["n"].values.tolist(), supplied.kept.tolist()) == ([9], [False, False, True])


def test_reading_is_slow_while_records_take_long(folders, monkeypatch):
    source = make_source(folders[0])
    store = DiskStore(source)
    announced = []
    monkeypatch.setattr(source.scatter, "announce", lambda rows: announced.append(rows.tolist()))
    rows = np.arange(10, dtype=np.int64).repeat(30)
    assert not store.is_slow
    monkeypatch.setattr(module, "_SLOW_SECONDS", 0.0)
    store.columns(rows)
    assert store.is_slow
    store.announce(rows[:2])
    store.announce(rows[:0])
    assert announced == [[0, 0]]
    monkeypatch.setattr(module, "_SLOW_SECONDS", 1e9)
    monkeypatch.setattr(module, "_FAST_SECONDS", 1e9)
    store.columns(rows)
    assert not store.is_slow


def test_announcement_goes_to_the_source_of_each_record(folders):
    supply = supply_of(*folders)
    heard = [[], []]
    for number, store in enumerate(supply._stores):
        store.announce = heard[number].append
    supply.announce(picks([1, 2, 3], [1, 0, 1]))
    assert [[rows.tolist() for rows in each] for each in heard] == [[[2]], [[1, 3]]]
    supply.announce(picks([5, 6]))
    assert [[rows.tolist() for rows in each] for each in heard] == [[[2], [5, 6]], [[1, 3]]]
