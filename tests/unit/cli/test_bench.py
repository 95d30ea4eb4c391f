"""What `penstock bench` prints."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import penstock as ps
from penstock.batch.stats import LoaderStats
from penstock.cli.bench import print_report
from penstock.cli.main import main
from penstock.jobs.bench.advice import Measured
from penstock.jobs.bench.report import BenchReport
from penstock.transform.pipeline import Pipeline
from record_files import flip

FIRST = LoaderStats(
    batches=100,
    records=12_800,
    bytes_read=12_800_000,
    seconds=2.0,
    read_seconds=0.5,
    decode_seconds=2.0,
    transform_seconds=1.0,
    wait_seconds=1.9,
    num_threads=2,
    num_ready=0,
)
LATER = LoaderStats(
    batches=250,
    records=32_000,
    bytes_read=32_000_000,
    seconds=2.0,
    read_seconds=0.5,
    decode_seconds=2.0,
    transform_seconds=1.0,
    wait_seconds=1.9,
    num_threads=2,
    num_ready=0,
)


def make_report(later: LoaderStats | None = LATER, **others) -> BenchReport:
    choices = {
        name: others.pop(name) for name in ("shuffle", "is_crowded", "consumer_seconds") if name in others
    }
    measured = Measured(
        stats=later or FIRST,
        batch_size=128,
        batch_bytes=1000,
        prefetch_bytes=1 << 20,
        steps_per_epoch=100,
        num_fields=2,
        num_records=12_800,
        num_cores=2,
        cache_bytes=0,
        **choices,
    )
    facts = {
        "split": "train",
        "num_bytes": 12_800_000,
        "compression": "none",
        "fields": ("age", "breed"),
        "not_fed": {"photo\n": "an image"},
        "fit_seconds": 0.25,
        "disk_bytes": 1000,
        "peak_bytes": 123_000_000,
    }
    return BenchReport(first=FIRST, later=later, measured=measured, **{**facts, **others})


def test_report_names_the_setting_the_figures_and_the_advice(capsys) -> None:
    print_report(make_report(shuffle=True, is_crowded=True, consumer_seconds=0.0005))
    assert capsys.readouterr().out.splitlines() == [
        "split 'train': 12,800 records, 12.8 MB, not compressed",
        "2 fields, pipeline fitted in 0.2 s; batches of 128, shuffled, 2 threads",
        "the consumer takes 0.5 ms a batch",
        "not fed: photo\\n: an image",
        "",
        "                  records/s  MB/s      read     decode  transform  busy  waiting",
        "────────────────  ─────────  ────  ────────  ─────────  ─────────  ────  ───────",
        "first epoch           6,400   6.4  39.06 µs  156.25 µs   78.12 µs   88%      95%",
        "2.5 later epochs     16,000  16.0  15.62 µs   62.50 µs   31.25 µs   88%      95%",
        "Stages: thread time a record. Busy: of the threads' time. Waiting: of the consumer's time.",
        "",
        "The first epoch got 1.0 kB from the disk; what else it read was in the kernel's cache.",
        "Other programs kept the cores busy: alone it would be faster.",
        "Peak memory: 123.0 MB, mapped files included.",
        "Bottleneck: decoding.",
        "Advice: Read fewer fields: 2 are decoded; leave out what the model does not need, as in "
        "Pipeline.fit(data, name=None).",
    ]


@pytest.mark.parametrize(
    ("later", "facts", "said"),
    [
        (None, {}, "first epoch  "),
        (LoaderStats(**{**vars(LATER), "batches": 20}), {}, "second epoch (20.0% of it)  "),
        (LATER, {"shuffle": False}, "batches of 128, in stored order, 2 threads\n"),
        (LATER, {"shuffle": "block"}, "batches of 128, shuffled by blocks, 2 threads\n"),
        (LoaderStats(**{**vars(LATER), "num_threads": 0}), {}, ", no threads\n"),
        (LATER, {"compression": "gzip"}, "12.8 MB, compressed (gzip)\n"),
        (LATER, {"fit_seconds": None}, "2 fields; batches"),
        (LATER, {"disk_bytes": 0}, "The first epoch found all that it read in the kernel's cache.\n"),
    ],
)
def test_report_words_each_case(later, facts, said, capsys) -> None:
    print_report(make_report(later, **facts))
    assert said in capsys.readouterr().out


def test_report_says_nothing_of_what_the_kernel_does_not_tell(capsys) -> None:
    print_report(make_report(disk_bytes=None))
    assert "kernel" not in capsys.readouterr().out


def test_bench_measures_and_prints_only_its_report_in_a_pipe(herd, capsys) -> None:
    assert main(["bench", str(herd), "--batch-size", "8", "--batches", "7"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("split 'train': 20 records, ")
    assert "; batches of 8, shuffled, " in out
    assert "not fed: photo: " in out
    assert "\nfirst epoch " in out
    assert "\n1.3 later epochs " in out
    assert re.search(r"^Bottleneck: \w", out, re.MULTILINE)
    assert re.search(r"^Advice: .*\.\n\Z", out, re.MULTILINE)
    assert "\x1b" not in out


def test_bench_for_machines_prints_one_object(zoo, capsys) -> None:
    assert main(["bench", str(zoo), "--json", "--split", "test", "--batches", "3", "--no-pipeline"]) == 0
    out, err = capsys.readouterr()
    form = json.loads(out)
    assert (out.count("\n"), err) == (1, "")
    assert (form["split"], form["records"], form["compression"], form["batch_size"]) == (
        "test",
        10,
        "gzip",
        128,
    )
    assert (form["first_epoch"]["batches"], form["later_epochs"]["batches"]) == (1, 2)
    assert form["fit_seconds"] is None


@pytest.mark.parametrize(
    ("argv", "shuffle"),
    [([], True), (["--shuffle"], True), (["--shuffle", "block"], "block"), (["--no-shuffle"], False)],
)
def test_bench_shuffles_as_told(argv, shuffle, zoo, capsys) -> None:
    assert main(["bench", str(zoo), *argv, "--json", "--batches", "1", "--no-pipeline"]) == 0
    assert json.loads(capsys.readouterr().out)["shuffle"] == shuffle


def test_bench_passes_every_choice_on(herd, tmp_path, capsys) -> None:
    Pipeline.fit(ps.open(herd), tags=None, name=None).save(tmp_path / "pipeline.json")
    argv = [
        "--pipeline",
        str(tmp_path / "pipeline.json"),
        "--threads",
        "0",
        "--seed",
        "3",
        "--cache",
        "memory",
    ]
    timing = ["--seconds", "0.05", "--consumer-seconds", "0.001"]
    assert main(["bench", str(herd), *argv, *timing, "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert (form["threads"], form["consumer_seconds"], form["fields"]) == (0, 0.001, ["legs", "weight"])
    assert form["later_epochs"]["bytes_read"] == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--batches", "0"], "batches: expected a whole number of at least 1, got 0"),
        (["--seconds", "0"], "seconds: expected above 0 and at most 86400, got 0.0"),
        (["--seconds", "x"], "argument --seconds: invalid float value: 'x'"),
        (["--batch-size", "0"], "batch_size: expected"),
        (["--split", "tran"], "no split 'tran'. Did you mean 'train'?"),
        (
            ["--no-pipeline", "--pipeline", "x"],
            "argument --pipeline: not allowed with argument --no-pipeline",
        ),
        (["--pipeline", "no.json"], "no.json: no such pipeline."),
        (["--shuffle", "blok"], "argument --shuffle: expected 'block' or nothing, got 'blok'; name the"),
    ],
)
def test_wrong_call_is_one_line_and_status_two(argv, said, zoo, capsys) -> None:
    assert main(["bench", str(zoo), *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"penstock: error: {said}")
    assert err.count("\n") == 1


def test_bench_of_damaged_data_is_status_one(zoo, capsys) -> None:
    path = zoo / "train.tfrecord"
    path.write_bytes(flip(path.read_bytes(), 60))
    assert main(["bench", str(zoo), "--batches", "3", "--no-pipeline"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"penstock: error: {path}: payload CRC of record 0")


def read_terminal(ours: int, until: bytes | None = None) -> bytes:
    """Return what was written to a terminal, to its end or to some text."""
    shown = b""
    while until is None or until not in shown:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # so a terminal whose last writer is gone ends on Linux
            break
        if not piece:
            break
        shown += piece
    return shown


def test_interrupt_on_a_terminal_leaves_it_as_it_was(zoo) -> None:
    program = "import sys; from penstock.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "bench", str(zoo), "--no-pipeline", "--seconds", "60"]
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown = read_terminal(ours, b"ready ")
    process.send_signal(signal.SIGINT)
    shown += read_terminal(ours)
    os.close(ours)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert b"split 'train': epoch " in shown
    assert shown.endswith(b"\x1b[Jpenstock: interrupted.\r\n")
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l")
