"""What the measuring of a loader counts, and what it refuses."""

import dataclasses
import json
import math
import os
import threading
import time
from typing import get_args

import pytest

import penstock as ps
from penstock.batch.stats import STAGES, LoaderStats
from penstock.errors import NoSuchPathError, OptionError, UnknownNameError
from penstock.foundation.process import count_disk_bytes, find_peak_bytes
from penstock.jobs.bench import bench as bench_module
from penstock.jobs.bench.bench import prepare_bench
from penstock.jobs.bench.report import ADVICE, Limit, leave_out_ahead, subtract
from penstock.settings.loading import BenchOptions
from penstock.transform.pipeline import Pipeline
from raising import containing, raises_with
from record_files import example, write_gzip, write_plain


def animals(count: int) -> list[bytes]:
    return [example(legs=n % 3, weight=n / 7, photo=b"\xff\xd7\xff" + bytes(9)) for n in range(count)]


@pytest.fixture
def zoo(tmp_path):
    """A folder with a train split of 20 records and a test split of 6."""
    folder = tmp_path / "zoo"
    folder.mkdir()
    write_plain(folder / "train.tfrecord", animals(20))
    write_plain(folder / "test.tfrecord", animals(6))
    return folder


def run(paths, **choices):
    return prepare_bench(paths, BenchOptions(**choices)).run()


def test_run_of_some_batches_parts_the_first_epoch_from_later_ones(zoo) -> None:
    report = run(zoo, batch_size=8, batches=8)
    assert (report.first.batches, report.first.records) == (3, 20)
    assert (report.later.batches, report.later.records) == (5, 36)  # 20 and two batches of 8
    assert report.count_epochs(report.later) == pytest.approx(5 / 3)
    assert report.measured.steps_per_epoch == 3


def test_run_that_ends_in_the_first_epoch_has_no_later_ones(zoo) -> None:
    report = run(zoo, batch_size=8, batches=2)
    assert (report.first.batches, report.first.records, report.later) == (2, 16, None)
    assert report.judged is report.first


def test_run_that_ends_with_an_epoch_counts_it_whole(zoo) -> None:
    report = run(zoo, batch_size=8, batches=3)
    assert (report.first.batches, report.later) == (3, None)
    assert report.count_epochs(report.first) == 1


def test_run_by_time_covers_as_many_epochs_as_fit(zoo, monkeypatch) -> None:
    now = iter(range(100_000))
    monkeypatch.setattr(bench_module.time, "perf_counter", lambda: float(next(now)))  # a second a look
    choices = {"batch_size": 10, "num_threads": 0, "is_stored": True}
    short, long = run(zoo, seconds=0.5, **choices), run(zoo, seconds=200.0, **choices)
    assert (short.first.batches, short.later) == (1, None)
    assert long.first.batches == 2
    assert long.later.batches > 2


def test_time_counts_from_before_the_first_thread_begins(zoo, monkeypatch) -> None:
    bench = prepare_bench(zoo, BenchOptions(batch_size=20, batches=1, num_threads=1, is_stored=True))
    begin = bench_module.Loader.__iter__

    def begin_late(loader):
        batches = begin(loader)
        while not loader.stats().num_ready:
            time.sleep(0.001)
        time.sleep(0.05)
        return batches

    monkeypatch.setattr(bench_module.Loader, "__iter__", begin_late)
    assert bench.run().first.seconds >= 0.05


def test_run_without_an_end_ends_after_five_seconds() -> None:
    assert BenchOptions().most_seconds == 5.0
    assert BenchOptions(batches=3).most_seconds == math.inf
    assert BenchOptions(batches=3, seconds=2.0).most_seconds == 2.0


def test_consumer_that_takes_its_time_is_waited_for_with_each_batch(zoo) -> None:
    report = run(zoo, batch_size=2, batches=10, consumer_seconds=0.02, is_stored=True)
    assert report.first.seconds >= 9 * 0.02
    assert report.measured.consumer_seconds == 0.02


def test_run_takes_train_or_the_split_that_is_named(zoo) -> None:
    assert run(zoo, batches=1).split == "train"
    report = run(zoo, batches=1, split="test")
    assert (report.split, report.measured.num_records, report.first.records) == ("test", 6, 6)


def test_run_of_an_unknown_split_names_the_nearest(zoo) -> None:
    with raises_with(UnknownNameError, "'test'", field="tset"):
        run(zoo, split="tset")


def test_run_of_several_splits_without_train_asks_for_one(tmp_path) -> None:
    for name in ("validation", "test"):
        write_plain(tmp_path / f"{name}.tfrecord", animals(3))
    with raises_with(OptionError, "'validation' 'test' 'train' split=NAME"):
        run(tmp_path)
    assert run(tmp_path, split="test", batches=1).split == "test"


def test_run_of_no_such_path_says_so(tmp_path) -> None:
    with pytest.raises(NoSuchPathError):
        run(tmp_path / "no")


def test_fields_that_are_not_fed_are_named_with_the_reason(zoo) -> None:
    report = run(zoo, batches=1)
    assert report.fields == ("legs", "weight")
    assert list(report.not_fed) == ["photo"]
    assert "no default transform" in report.not_fed["photo"]
    assert report.fit_seconds > 0


def test_stored_values_are_loaded_without_a_pipeline(zoo) -> None:
    report = run(zoo, batches=1, is_stored=True)
    assert report.fields == ("legs", "weight", "photo")
    assert (report.not_fed, report.fit_seconds) == ({}, None)


def test_saved_pipeline_is_used_and_fields_it_does_not_read_are_named(zoo, tmp_path) -> None:
    Pipeline.fit(ps.open(zoo), legs=None).save(tmp_path / "pipeline.json")
    report = run(zoo, batches=1, pipeline=tmp_path / "pipeline.json")
    assert report.fields == ("weight",)
    assert report.not_fed["legs"] == containing("pipeline")
    assert report.fit_seconds is None


def test_data_without_inputs_is_refused_with_advice(tmp_path) -> None:
    write_plain(tmp_path / "a.tfrecord", [example(photo=b"\xff\xd7\xff" + bytes(9))] * 3)
    with raises_with(OptionError, advice=containing("`is_stored=True`")):
        run(tmp_path)


def test_split_without_train_is_fitted_on_itself(tmp_path) -> None:
    for name in ("validation", "test"):
        write_plain(tmp_path / f"{name}.tfrecord", animals(3))
    assert run(tmp_path, split="validation", batches=1).fields == ("legs", "weight")


def test_compression_of_the_files_is_reported(zoo) -> None:
    write_gzip(zoo / "more.tfrecord.gz", animals(8))
    assert run(zoo, batches=1, is_stored=True).compression == "none"
    report = run(zoo, batches=1, split="all", is_stored=True)
    assert report.compression == "gzip"
    assert report.num_bytes == (zoo / "more.tfrecord.gz").stat().st_size


def test_bytes_read_equal_the_sizes_of_the_files(zoo) -> None:
    report = run(zoo, batch_size=5, batches=4, shuffle=False)
    assert report.first.bytes_read == report.num_bytes == (zoo / "train.tfrecord").stat().st_size


def test_cache_leaves_nothing_to_read_in_later_epochs(zoo) -> None:
    report = run(zoo, batch_size=5, batches=8, cache="memory")
    assert report.first.bytes_read == report.num_bytes
    assert report.later.bytes_read == 0


def test_stages_are_announced_before_they_begin(zoo) -> None:
    stages = []
    prepare_bench(zoo, BenchOptions(batches=1), on_stage=stages.append)
    assert stages == [containing("files"), containing("pipeline")]


def test_look_from_another_thread_shows_how_far_it_is(zoo) -> None:
    bench = prepare_bench(zoo, BenchOptions(batch_size=8, batches=4, is_stored=True))
    before = bench.progress()
    assert (before.stats.batches, before.epoch, before.step, before.num_steps) == (0, 0, 0, 3)
    runner = threading.Thread(target=bench.run)
    runner.start()
    while runner.is_alive():
        assert 0 <= bench.progress().step <= 3
    runner.join()
    after = bench.progress()
    assert (after.stats.batches, after.epoch, after.step) == (4, 1, 1)


def test_run_leaves_no_thread_behind(zoo) -> None:
    before = threading.active_count()
    run(zoo, batch_size=2, batches=3, num_threads=3)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("choices", "facts"),
    [
        ({"seconds": 0}, "seconds 0 86400 0"),
        ({"seconds": math.nan}, "seconds 0 86400 nan"),
        ({"batches": 0}, "batches 1 0"),
        ({"consumer_seconds": -1}, "consumer_seconds 0 86400 -1"),
        ({"batch_size": 0}, "batch_size"),
        ({"num_threads": -1}, "num_threads"),
        ({"shuffle": "blocks"}, "shuffle True False 'block' 'global' 'blocks'"),
        ({"pipeline": "a.json", "is_stored": True}, "is_stored pipeline both"),
    ],
)
def test_impossible_option_is_refused_before_a_file_is_opened(choices, facts) -> None:
    with raises_with(OptionError, facts):
        BenchOptions(**choices)


def test_report_for_machines_is_json_and_has_every_figure(zoo) -> None:
    form = json.loads(json.dumps(run(zoo, batch_size=8, batches=8).to_json(), allow_nan=False))
    assert (form["split"], form["records"], form["batch_size"], form["shuffle"]) == ("train", 20, 8, True)
    assert (form["steps_per_epoch"], form["first_epoch"]["batches"], form["later_epochs"]["batches"]) == (
        3,
        3,
        5,
    )
    assert form["first_epoch"]["epochs"] == 1
    assert set(form["first_epoch"]) == {
        *("epochs", "batches", "records", "seconds", "wait_seconds", "bytes_read", "read_seconds"),
        *("decode_seconds", "transform_seconds", "finish_seconds", "cpu_seconds", "records_per_second"),
        *("megabytes_per_second", "cores_used", "busy_share", "wait_share"),
    }
    assert (form["cores"], form["slices_per_batch"]) == (len(os.sched_getaffinity(0)), 1)
    assert form["limit"] in get_args(Limit)
    assert form["peak_memory_bytes"] > 1 << 20
    assert form["bottleneck"] in ("read", "decode", "transform", "consumer")
    assert form["advice"] in ADVICE.values()
    assert run(zoo, batch_size=8, batches=3).to_json()["later_epochs"] is None


def test_little_of_a_later_epoch_is_not_judged_by(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", animals(40))
    assert run(path, batch_size=2, batches=21).judged.batches == 20
    assert run(path, batch_size=2, batches=25).judged.batches == 5


DONE = LoaderStats(
    batches=10,
    records=100,
    bytes_read=3000,
    seconds=2.0,
    read_seconds=0.3,
    decode_seconds=0.6,
    transform_seconds=0.9,
    finish_seconds=0.45,
    cpu_seconds=2.7,
    wait_seconds=0.5,
    num_threads=2,
    num_ready=0,
)


def test_cpu_time_is_measured_over_the_same_time_as_the_epochs(zoo, monkeypatch) -> None:
    now = [0.0]

    def tick() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(bench_module.time, "perf_counter", tick)
    monkeypatch.setattr(bench_module.time, "process_time", lambda: 3.0 * now[0])  # three cores
    report = run(zoo, batch_size=10, batches=4, num_threads=0, is_stored=True)
    assert (report.first.cores_used, report.later.cores_used) == (3.0, 3.0)


def test_batches_that_were_not_consumed_are_left_out_of_the_figures() -> None:
    kept = leave_out_ahead(dataclasses.replace(DONE, num_ready=20))
    assert (kept.bytes_read, kept.batches, kept.wait_seconds) == (1000, 10, 0.5)
    assert (kept.read_seconds, kept.decode_seconds, kept.transform_seconds) == pytest.approx((0.1, 0.2, 0.3))
    assert leave_out_ahead(DONE) is DONE


def test_difference_of_two_stats_is_the_work_between_them() -> None:
    twice = {name: 2 * getattr(DONE, name) for name in ("batches", "records", "bytes_read", "seconds")}
    later = dataclasses.replace(DONE, **twice, num_ready=5)
    between = subtract(later, DONE)
    assert (between.batches, between.records, between.bytes_read, between.seconds) == (10, 100, 3000, 2.0)
    assert (between.read_seconds, between.num_ready, between.num_threads) == (0.0, 5, 2)


def test_memory_and_disk_use_of_this_process_are_reported() -> None:
    assert 1 << 20 < find_peak_bytes() < 1 << 40
    disk_bytes = count_disk_bytes()
    assert disk_bytes is None or disk_bytes >= 0


def test_every_limit_and_every_stage_of_busy_threads_has_advice() -> None:
    assert set(ADVICE) == {*get_args(Limit), *STAGES} - {"none"}
    assert all(text.endswith(".") for text in ADVICE.values())
