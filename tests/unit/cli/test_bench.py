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
from penstock.jobs.bench.report import BenchReport, Measured
from penstock.transform.pipeline import Pipeline
from raising import mentions
from record_files import flip

FIRST = LoaderStats(
    batches=100,
    records=12_800,
    bytes_read=12_800_000,
    seconds=2.0,
    read_seconds=0.5,
    decode_seconds=2.0,
    transform_seconds=1.0,
    finish_seconds=0.5,
    cpu_seconds=3.0,
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
    finish_seconds=0.5,
    cpu_seconds=3.0,
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
        num_slices=3,
        num_fitting=9,
        steps_per_epoch=100,
        num_records=12_800,
        num_cores=2,
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
    out = capsys.readouterr().out
    setting, table, advice = out.split("\n\n")
    assert mentions(
        setting, "'train' 12,800 12.8 MB 2 fields 0.2 s 128 shuffled 2 threads 0.5 ms photo\\n image"
    )
    _, _, first, later = table.splitlines()[:4]
    assert mentions(first, "first epoch 6,400 6.4 39.06 µs 156.25 µs 78.12 µs 88% 95%")
    assert mentions(later, "2.5 epochs 16,000 16.0 15.62 µs 62.50 µs 31.25 µs 88% 95%")
    assert mentions(advice, "1.0 kB disk 123.0 MB decoding 2 Decode")


@pytest.mark.parametrize(
    ("later", "options", "facts"),
    [
        (None, {}, "first epoch 6,400"),
        (LoaderStats(**{**vars(LATER), "batches": 20}), {}, "second epoch 20.0%"),
        (LATER, {"shuffle": False}, "batches 128 order 2 threads"),
        (LATER, {"shuffle": "block"}, "batches 128 blocks 2 threads"),
        (LoaderStats(**{**vars(LATER), "num_threads": 0}), {}, "no threads"),
        (LATER, {"compression": "gzip"}, "12.8 MB gzip"),
        (LATER, {"fit_seconds": None}, "2 fields; batches"),
        (LATER, {"disk_bytes": 0}, "first epoch page cache"),
    ],
)
def test_report_words_each_case(later, options, facts, capsys) -> None:
    print_report(make_report(later, **options))
    assert mentions(capsys.readouterr().out, facts)


def test_report_leaves_out_figures_that_the_kernel_does_not_provide(capsys) -> None:
    print_report(make_report(disk_bytes=None))
    assert "kernel" not in capsys.readouterr().out


def test_bench_measures_and_prints_only_its_report_in_a_pipe(herd, capsys) -> None:
    assert main(["bench", str(herd), "--batch-size", "8", "--batches", "7"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Next: penstock ")
    assert err.count("\n") == 1
    assert mentions(out, "split 'train' 20")
    assert mentions(out, "batches 8")
    assert mentions(out, "photo first epoch")
    assert mentions(out, "1.3 epochs")
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
def test_bench_shuffles_as_requested(argv, shuffle, zoo, capsys) -> None:
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
    ("argv", "facts"),
    [
        (["--batches", "0"], "--batches 1 '0'"),
        (["--seconds", "0"], "--seconds 0 86400 '0'"),
        (["--seconds", "x"], "--seconds 'x'"),
        (["--batch-size", "0"], "--batch-size 1 '0'"),
        (["--split", "tran"], "split 'tran' 'train'"),
        (["--no-pipeline", "--pipeline", "x"], "--no-pipeline '--pipeline x'"),
        (["--pipeline", "no.json"], "no.json"),
        (["--shuffle", "blok"], "--shuffle 'block' 'blok' PATH --shuffle"),
    ],
)
def test_wrong_call_is_one_line_and_status_two(argv, facts, zoo, capsys) -> None:
    assert main(["bench", str(zoo), *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert mentions(err, f"penstock {facts}")
    assert err.count("\n") == 1


def test_bench_of_damaged_data_is_status_one(zoo, capsys) -> None:
    path = zoo / "train.tfrecord"
    path.write_bytes(flip(path.read_bytes(), 60))
    assert main(["bench", str(zoo), "--batches", "3", "--no-pipeline"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert mentions(err, f"penstock {path} CRC 0")


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
