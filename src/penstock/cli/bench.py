"""`penstock bench`: how fast a data set is loaded, and what holds it up."""

from __future__ import annotations

import argparse
import json
from typing import Final

from penstock.batch.options import Shuffling
from penstock.batch.stats import STAGES, LoaderStats
from penstock.cli.live import LiveView
from penstock.cli.planning import add_declaring, read_declaration
from penstock.cli.reading import add_json, add_reading, read_options
from penstock.cli.wording import escape, write_count, write_size
from penstock.jobs.bench.advice import share_busy
from penstock.jobs.bench.bench import prepare_bench
from penstock.jobs.bench.options import USUAL_SECONDS, BenchOptions
from penstock.jobs.bench.report import BenchReport
from penstock.jobs.table import format_table, terminal_width

SUMMARY = "measure how fast a data set is loaded, and what holds it up"
DESCRIPTION = """\
Load a data set as a model would, shuffled and transformed, and report records and megabytes a second, what
reading, decoding and transforming take, how long the consumer waits, which of them is the bottleneck, and
what to change. The first epoch is reported apart from later ones, which find the files in memory. Without
--consumer-seconds the consumer does nothing, so that it is the loader's own speed that shows."""
EXAMPLE = "penstock bench pets/ --batch-size 256 --seconds 10 --consumer-seconds 0.02"

_STAGES: Final = {
    "read": "reading",
    "decode": "decoding",
    "transform": "transforming",
    "consumer": "the consumer",
}
_ORDERS: Final = {
    False: "in stored order",
    True: "shuffled",
    "global": "shuffled",
    "block": "shuffled by blocks",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_reading(parser)
    usual = BenchOptions()
    group = parser.add_argument_group("loading")
    group.add_argument("--split", metavar="NAME", help="which split (default: train, or the only one)")
    group.add_argument(
        "--batch-size",
        type=int,
        default=usual.batch_size,
        metavar="N",
        help="records a batch (default: %(default)s)",
    )
    order = group.add_mutually_exclusive_group()
    order.add_argument(
        "--shuffle",
        nargs="?",
        const=True,
        default=usual.shuffle,
        type=_parse_shuffle,
        metavar="block",
        help="shuffle the whole split, which is the default; or blocks of neighbours",
    )
    order.add_argument(
        "--no-shuffle", action="store_const", dest="shuffle", const=False, help="load in stored order"
    )
    group.add_argument(
        "--seed", type=int, default=usual.seed, metavar="N", help="of the order (default: %(default)s)"
    )
    group.add_argument("--threads", type=int, metavar="N", help="that make batches (default: the cores)")
    group.add_argument("--cache", metavar="memory|FOLDER", help="keep decoded columns for later epochs")
    values = group.add_mutually_exclusive_group()
    values.add_argument(
        "--pipeline",
        metavar="FILE",
        help="a pipeline that was saved (default: one fitted to the train split)",
    )
    values.add_argument("--no-pipeline", action="store_true", help="load values as they are stored")
    _add_measuring(parser.add_argument_group("measuring"), usual)
    add_declaring(parser)
    add_json(parser)


def _add_measuring(group: argparse._ArgumentGroup, usual: BenchOptions) -> None:
    group.add_argument(
        "--seconds",
        type=float,
        metavar="X",
        help=f"for how long, in as many epochs as that takes (default: {USUAL_SECONDS:g})",
    )
    group.add_argument("--batches", type=int, metavar="N", help="for how many batches, at most")
    group.add_argument(
        "--consumer-seconds",
        type=float,
        default=usual.consumer_seconds,
        metavar="X",
        help="wait so long with each batch, as if a model worked on it (default: %(default)g)",
    )


def _parse_shuffle(text: str) -> Shuffling:
    if text == "block":
        return "block"
    if text == "global":
        return "global"
    raise argparse.ArgumentTypeError(f"expected 'block' or nothing, got {text!r}; name the data set before")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    options = BenchOptions(
        read=read_options(args),
        declaration=read_declaration(args),
        split=args.split,
        batch_size=args.batch_size,
        shuffle=args.shuffle,
        seed=args.seed,
        num_threads=args.threads,
        cache=args.cache,
        pipeline=args.pipeline,
        is_stored=args.no_pipeline,
        seconds=args.seconds,
        batches=args.batches,
        consumer_seconds=args.consumer_seconds,
    )
    with LiveView(not args.json) as view:
        bench = prepare_bench(args.paths, options, view.say)
        view.watch(f"split {bench.split.name!r}", bench.look)
        report = bench.run()
    if args.json:
        print(json.dumps(report.to_json(), allow_nan=False))
    else:
        print_report(report)
    return 0


def print_report(report: BenchReport) -> None:
    """Print what was loaded and how, the figures, the bottleneck and the advice."""
    _print_setting(report)
    phases = {_name_phase(report, report.first, "first"): report.first}
    if report.later is not None:
        phases[_name_phase(report, report.later, "second")] = report.later
    header = ["", "records/s", "MB/s", *STAGES, "busy", "waiting"]
    rows = [[name, *_write_figures(stats)] for name, stats in phases.items()]
    print("\n".join(format_table(header, rows, width=terminal_width(), right=header[1:])))
    print("Stages: thread time a record. Busy: of the threads' time. Waiting: of the consumer's time.\n")
    if report.disk_bytes:
        read = write_size(report.disk_bytes)
        print(f"The first epoch got {read} from the disk; what else it read was in the kernel's cache.")
    elif report.disk_bytes is not None:
        print("The first epoch found all that it read in the kernel's cache.")
    if report.measured.is_crowded:
        print("Other programs kept the cores busy: alone it would be faster.")
    print(f"Peak memory: {write_size(report.peak_bytes)}, mapped files included.")
    print(f"Bottleneck: {_STAGES[report.bottleneck]}.")
    print(f"Advice: {report.advice}")


def _print_setting(report: BenchReport) -> None:
    measured = report.measured
    how = "not compressed" if report.compression == "none" else f"compressed ({report.compression})"
    records = write_count(measured.num_records, "record")
    print(f"split {escape(repr(report.split))}: {records}, {write_size(report.num_bytes)}, {how}")
    threads = write_count(report.judged.num_threads, "thread") if report.judged.num_threads else "no threads"
    fitted = "" if report.fit_seconds is None else f", pipeline fitted in {report.fit_seconds:.1f} s"
    print(
        f"{write_count(len(report.fields), 'field')}{fitted}; batches of {measured.batch_size:,}, "
        f"{_ORDERS[measured.shuffle]}, {threads}"
    )
    if measured.consumer_seconds:
        print(f"the consumer takes {1e3 * measured.consumer_seconds:g} ms a batch")
    for name, why in report.not_fed.items():
        print(f"not fed: {escape(name)}: {escape(why)}")
    print()


def _name_phase(report: BenchReport, stats: LoaderStats, name: str) -> str:
    epochs = report.count_epochs(stats)
    if epochs < 1:
        return f"{name} epoch ({epochs:.1%} of it)"
    return "first epoch" if name == "first" else f"{epochs:,.1f} later epochs"


def _write_figures(stats: LoaderStats) -> list[str]:
    records = max(1, stats.records)
    spent = (stats.read_seconds, stats.decode_seconds, stats.transform_seconds)
    return [
        f"{stats.records_per_second:,.0f}",
        f"{stats.megabytes_per_second:,.1f}",
        *(f"{1e6 * seconds / records:.2f} µs" for seconds in spent),
        f"{share_busy(stats):.0%}",
        f"{stats.wait_share:.0%}",
    ]
