"""`penstock bench`: measure how fast a data set loads, and find the bottleneck."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Self, TextIO

from penstock.batch.stats import STAGES, LoaderStats
from penstock.cli.arguments import read_declaration
from penstock.cli.next_command import has_model_fields, list_paths, repeat_words, suggest_next, suggest_use
from penstock.cli.terminal import format_count, is_quiet, print_message, print_options, print_table
from penstock.foundation.terminal import LiveLines, escape
from penstock.foundation.wording import format_size
from penstock.jobs.bench.bench import LoaderProgress, prepare_bench
from penstock.jobs.bench.report import BenchReport, Limit, share_busy, subtract
from penstock.settings.command_line import Call
from penstock.settings.groups import ReadOptions
from penstock.settings.loading import BenchOptions

_STAGES: Final = {
    "read": "reading",
    "decode": "decoding",
    "transform": "transforming",
    "consumer": "the consumer",
}
_LIMITS: Final[dict[Limit, str]] = {
    "consumer": "the consumer",
    "none": "none; the threads are busy, and there is one per core",
    "threads": "the number of threads",
    "storage": "storage, for which threads wait",
    "python": "Python code, which runs in one thread at a time",
    "programs": "other programs, which use the cores",
    "finish": "the end of each batch, which one thread makes",
    "memory": "the memory for batches ahead, which holds only few of them",
    "epochs": "short epochs, each of which starts the threads",
    "rows": "few rows per batch, which leave little work to divide",
}
_SECONDS_BETWEEN: Final = 0.25
_NUM_RECENT: Final = 5  # drawings that "now" is measured over: one second
_MAX_BAR_CHARS: Final = 40
_MAX_READY: Final = 32  # the most batches that a loader makes ahead
_LABEL_CHARS: Final = 11
_ORDERS: Final = {
    False: "in stored order",
    True: "shuffled",
    "global": "shuffled",
    "block": "shuffled in blocks",
}


def run(call: Call) -> int:
    """Measure, print, and return the exit status."""
    options = call.read(BenchOptions)
    print_options(options.to_json())
    with LoaderDisplay(not call.common.json and not is_quiet()) as display:
        bench = prepare_bench(
            call.arguments, options, call.read(ReadOptions), read_declaration(call), display.show_stage
        )
        display.watch(f"split {bench.split.name!r}", bench.progress)
        report = bench.run()
    if call.common.json:
        print(json.dumps(report.to_json(), allow_nan=False))
    else:
        print_report(report)
    _suggest(call, options, report, has_target=has_model_fields(bench.split.schema))
    return 0


def _suggest(call: Call, options: BenchOptions, report: BenchReport, *, has_target: bool) -> None:
    """Suggest to measure with more threads, if they are the limit; otherwise, to use the data."""
    if report.limit == "threads":
        words = ["--threads", str(report.measured.num_cores)]
        suggest_next(call, "bench", *repeat_words(call, ["--threads"], words))
    else:
        words = [*list_paths(call), *([] if options.split is None or has_target else ["--head", "3"])]
        suggest_use(call, words, has_target=has_target)


def print_report(report: BenchReport) -> None:
    """Print data and settings, the measurements, the bottleneck and the advice."""
    _print_settings(report)
    phases = {_name_phase(report, report.first, "first"): report.first}
    if report.later is not None:
        phases[_name_phase(report, report.later, "second")] = report.later
    header = ["", "records/s", "MB/s", *STAGES, "cores", "busy", "waiting"]
    rows = [[name, *_format_measurements(stats)] for name, stats in phases.items()]
    print_table(header, rows, right=header[1:])
    print("Stages: thread time per record. Cores: used by the process. Busy: share of thread time.")
    print("Waiting: share of consumer time.\n")
    if report.disk_bytes:
        read = format_size(report.disk_bytes)
        print(f"The first epoch read {read} from disk, and the rest from the page cache.")
    elif report.disk_bytes is not None:
        print("The first epoch read everything from the page cache.")
    if report.measured.is_crowded:
        print("Other programs used the CPU meanwhile: the loader can be faster than shown.")
    print(f"Peak memory: {format_size(report.peak_bytes)}, including mapped files.")
    print(f"Bottleneck: {_STAGES[report.bottleneck]}.")
    used, there = report.judged.cores_used, report.measured.num_cores
    print(f"Cores used: {used:.1f} of {there}. Limit: {_LIMITS[report.limit]}.")
    print(f"Advice: {report.advice}")


def _print_settings(report: BenchReport) -> None:
    measured = report.measured
    how = "not compressed" if report.compression == "none" else f"compressed ({report.compression})"
    records = format_count(measured.num_records, "record")
    print(f"split {escape(repr(report.split))}: {records}, {format_size(report.num_bytes)}, {how}")
    threads = format_count(report.judged.num_threads, "thread") if report.judged.num_threads else "no threads"
    fitted = "" if report.fit_seconds is None else f", pipeline fitted in {report.fit_seconds:.1f} s"
    print(
        f"{format_count(len(report.fields), 'field')}{fitted}; batches of {measured.batch_size:,} in "
        f"{format_count(measured.num_slices, 'slice')}, {_ORDERS[measured.shuffle]}, {threads}"
    )
    if measured.consumer_seconds:
        print(f"simulated consumer: {1e3 * measured.consumer_seconds:g} ms per batch")
    for name, why in report.not_fed.items():
        print(f"not loaded: {escape(name)}: {escape(why)}")
    print()


def _name_phase(report: BenchReport, stats: LoaderStats, name: str) -> str:
    epochs = report.count_epochs(stats)
    if epochs < 1:
        return f"{name} epoch ({epochs:.1%} of it)"
    return "first epoch" if name == "first" else f"{epochs:,.1f} later epochs"


def _format_measurements(stats: LoaderStats) -> list[str]:
    records = max(1, stats.records)
    spent = _list_stage_seconds(stats)
    return [
        f"{stats.records_per_second:,.0f}",
        f"{stats.megabytes_per_second:,.1f}",
        *(f"{1e6 * seconds / records:.2f} µs" for seconds in spent),
        f"{stats.cores_used:.1f}",
        f"{share_busy(stats):.0%}",
        f"{stats.wait_share:.0%}",
    ]


class LoaderDisplay:
    """Shows what a loader does on a terminal, four times per second, from a separate thread.

    Messages of the log are held until the display is gone. Without `is_wanted`, nothing is shown.
    """

    def __init__(
        self,
        is_wanted: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        size: Callable[[], os.terminal_size] | None = None,
    ) -> None:
        self._lines = LiveLines(stream, clock=clock, size=size)
        self._clock = clock
        self._is_shown = is_wanted and self._lines.is_live
        self._recent: deque[tuple[float, LoaderProgress]] = deque(maxlen=_NUM_RECENT)
        self._is_ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._log = _HeldLog()

    def show_stage(self, text: str) -> None:
        """Show a stage before the loader starts."""
        if self._is_shown:
            self._lines.draw([text])

    def watch(self, title: str, progress: Callable[[], LoaderProgress]) -> None:
        """Start to show what `progress` returns, under a title; it is called from another thread."""
        if self._is_shown:
            self._recent.append((self._clock(), progress()))
            self._thread = threading.Thread(target=self._draw_often, args=(title, progress), daemon=True)
            self._thread.start()

    def draw(self, title: str, progress: LoaderProgress) -> None:
        """Show what the loader does now."""
        self._recent.append((self._clock(), progress))
        (then, before), (now, _) = self._recent[0], self._recent[-1]
        recent = subtract(progress.stats, before.stats)
        seconds = (now - then) or 1.0
        lines = [
            f"{title}: epoch {progress.epoch + 1}, batch {progress.step:,} of {progress.num_steps:,}",
            _format_rate("now", recent.records / seconds, recent.bytes_read / seconds),
            _format_rate(
                "mean", progress.stats.records_per_second, 1e6 * progress.stats.megabytes_per_second
            ),
            *self._draw_bars(recent, seconds),
            f"{'cores':{_LABEL_CHARS}}{recent.cpu_seconds / seconds:.1f} used",
            self._draw_ready(progress.stats.num_ready),
        ]
        spent = _list_stage_seconds(recent)
        self._lines.draw(lines, bold=3 + spent.index(max(spent)) if any(spent) else None)

    def _draw_often(self, title: str, progress: Callable[[], LoaderProgress]) -> None:
        while not self._is_ended.wait(_SECONDS_BETWEEN) and not self._lines.is_broken:
            self.draw(title, progress())

    def _draw_bars(self, recent: LoaderStats, seconds: float) -> list[str]:
        """Draw the share of the threads' time that each stage took, and the consumer's share of waiting."""
        threads = max(1, recent.num_threads)
        spent = zip(STAGES, _list_stage_seconds(recent), strict=True)
        shares = {name: each / threads / seconds for name, each in spent}
        shares["waiting"] = recent.wait_seconds / seconds
        width = max(1, min(_MAX_BAR_CHARS, self._lines.width - _LABEL_CHARS - len(" 100%")))
        return [
            f"{name:{_LABEL_CHARS}}{self._lines.bar(share, width)} {min(1.0, share):4.0%}"
            for name, share in shares.items()
        ]

    def _draw_ready(self, num_ready: int) -> str:
        bar = self._lines.bar(1.0, min(num_ready, _MAX_READY)) + " " * bool(num_ready)
        return f"{'ready':{_LABEL_CHARS}}{bar}{num_ready} {'batch' if num_ready == 1 else 'batches'}"

    def __enter__(self) -> Self:
        if self._is_shown:
            logging.getLogger("penstock").addHandler(self._log)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        if self._thread is not None:
            self._thread.join()
        if not self._is_shown:
            return
        logging.getLogger("penstock").removeHandler(self._log)
        self._lines.clear()
        for line in self._log.lines:
            print_message(line)


class _HeldLog(logging.Handler):
    """Keeps the messages of the log, to be shown later."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.lines.append(record.getMessage())


def _format_rate(label: str, records: float, num_bytes: float) -> str:
    return f"{label:{_LABEL_CHARS}}{records:,.0f} records/s, {format_size(num_bytes)}/s"


def _list_stage_seconds(stats: LoaderStats) -> tuple[float, float, float]:
    return stats.read_seconds, stats.decode_seconds, stats.transform_seconds
