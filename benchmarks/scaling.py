"""Measures how throughput grows with threads: images, a table and texts, beside torch and tf.data.

In: data that is made when it is missing. Out: a table per part as soon as it is measured; scaling.json,
scaling.md and scaling.svg in a folder. `--gpu` measures the step rate of a ResNet50 instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from machine import describe_machine
from rounds import Results, Turn, find_rate, pick_turns, run_rounds
from scaling_data import ensure_data, list_data
from scaling_feeds import BASELINE, ENTRIES, LIMIT, PARTS, Entry
from scaling_plot import draw_plot
from tables import add_load_warning, draw
from worker import Job

HERE = Path(__file__).resolve().parent
NOTES = """\
Records per second, median of the rounds; in brackets the efficiency per thread: the rate divided by the
number of threads, relative to the first column. Warm page cache, steady rate, every batch taken. Penstock and
tf.data read TFRecords; torch and simplejpeg have the JPEGs in memory. simplejpeg alone decodes into one
buffer, without a resize: the limit. tf.data shuffles a buffer, Penstock and torch shuffle all records."""
NAMES = [entry.name for entry in ENTRIES]


def list_threads(num_cores: int) -> list[int]:
    """Return powers of two up to the number of cores, and that number."""
    return sorted({1 << power for power in range(num_cores.bit_length())} | {num_cores})


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    available = len(os.sched_getaffinity(0))
    usual = ",".join(map(str, list_threads(available)))
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--competitors", default=",".join(NAMES), help="default: %(default)s")
    parser.add_argument("--threads", default=usual, help="numbers of threads (default here: %(default)s)")
    parser.add_argument("--rounds", type=int, default=None, help="turns of each feed (default 2, quick 1)")
    parser.add_argument("--seconds", type=float, help="length of a turn (default: images 1.5, others 0.8)")
    parser.add_argument("--data", type=Path, default=HERE / "data" / "scaling", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="little data, one short round: a smoke test")
    parser.add_argument("--gpu", action="store_true", help="instead, measure the steps of a ResNet50")
    parser.add_argument("--markdown", action="store_true", help="also print a section for a document")
    parser.add_argument(
        "--from", dest="earlier", type=Path, nargs="+", metavar="JSON", help="only show earlier results"
    )
    arguments = parser.parse_args()
    for kind, known in (("parts", list(PARTS)), ("competitors", NAMES)):
        names = getattr(arguments, kind).split(",")
        for name in names:
            if name not in known:
                parser.error(f"unknown name {name!r} in --{kind}: expected some of {', '.join(known)}")
        setattr(arguments, kind, [name for name in known if name in names])
    if not all(text.isdecimal() and int(text) > 0 for text in arguments.threads.split(",")):
        parser.error(f"expected positive numbers of threads, got {arguments.threads}")
    arguments.threads = sorted({int(text) for text in arguments.threads.split(",")})
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error(f"expected at least one round, got {arguments.rounds}")
    if arguments.seconds is not None and arguments.seconds <= 0:
        parser.error(f"expected seconds above 0, got {arguments.seconds:g}")
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 2)
    return arguments


def find_missing(names: Sequence[str]) -> dict[str, str]:
    """Return why competitors cannot take part."""
    return {
        entry.name: f"skipped: {package} is not installed"
        for entry in ENTRIES
        for package in reversed(entry.needs)
        if entry.name in names and find_spec(package) is None
    }


def choose_seconds(arguments: argparse.Namespace, part: str) -> float:
    """Return the length of a turn; batches of images come in bursts, and need a longer one."""
    if arguments.seconds is not None:
        return float(arguments.seconds)
    if arguments.quick:
        return 0.2
    return 1.5 if PARTS[part].data == "images" else 0.8


def measure(arguments: argparse.Namespace, skipped: Mapping[str, str]) -> Results:
    """Measure one part after the other, and print its table when it is done."""
    total = Results()
    everything = list_data(arguments.data, arguments.quick)
    for name in dict.fromkeys(PARTS[part].data for part in arguments.parts):
        ensure_data(everything[name])
    for part in arguments.parts:
        began = time.perf_counter()
        entries = [entry for entry in list_entries(part, arguments.competitors) if entry.name not in skipped]
        seconds = choose_seconds(arguments, part)
        jobs = [
            Job(entry.name, part, threads, arguments.quick, str(arguments.data), seconds)
            for entry in entries
            for threads in arguments.threads
        ]
        score = run_rounds(jobs, arguments.rounds, max(1, len(jobs)), HERE / "scaling_worker.py")
        print(format_part(score, part, arguments.threads, entries), flush=True)
        print(f"\nmeasured in {time.perf_counter() - began:.0f} s", end="\n\n", flush=True)
        for (entry, _, threads), reason in score.failures.items():
            print(f"FAILED {entry}, {part}, {threads} threads: {reason}", file=sys.stderr)
        total.turns += score.turns
        total.failures |= score.failures
    return total


def list_entries(part: str, names: Sequence[str]) -> list[Entry]:
    """Return the feeds of a part, in the order of the table."""
    return [entry for entry in ENTRIES if PARTS[part].data in entry.data and entry.name in names]


def format_part(score: Results, part: str, threads: Sequence[int], entries: Sequence[Entry]) -> str:
    """Format the table of one part: a row per feed, a column per number of threads."""
    rows = []
    for entry in entries:
        cells = [_format_cell(score, entry.name, part, threads, n) for n in threads]
        rows.append([entry.title, *cells])
        if entry.name == BASELINE:
            rows.append(["the same, cores used", *(_format_cores(score, part, n) for n in threads)])
    if {BASELINE, LIMIT} <= {entry.name for entry in entries}:
        rows.append(["Penstock, share of the limit", *(_format_share(score, part, n) for n in threads)])
    return draw([f"{PARTS[part].unit}: {PARTS[part].title}", *map(str, threads)], rows)


def _format_cell(score: Results, entry: str, part: str, threads: Sequence[int], n: int) -> str:
    if (entry, part, n) in score.failures:
        return "failed"
    rate, first = (find_rate(pick_turns(score, entry, part, each)) for each in (n, threads[0]))
    if rate is None:
        return ""
    efficiency = "" if first is None or n == threads[0] else f" ({rate / n / (first / threads[0]):.0%})"
    return f"{rate:,.0f}{efficiency}"


def _format_cores(score: Results, part: str, n: int) -> str:
    used = find_rate(pick_turns(score, BASELINE, part, n), _count_cores_used)
    return "" if used is None else f"{used:.1f}"


def _count_cores_used(turn: Turn) -> float:
    return turn.timed_cpu_seconds / turn.seconds


def _format_share(score: Results, part: str, n: int) -> str:
    ours, limit = (find_rate(pick_turns(score, name, part, n)) for name in (BASELINE, LIMIT))
    return "" if ours is None or limit is None else f"{ours / limit:.0%}"


def format_section(results: Mapping[str, Any]) -> str:
    """Format all tables of a run for a document, with the date, the machine and the command."""
    machine, packages = results["machine"], results["machine"]["packages"]
    versions = ", ".join(f"{name} {packages[name]}" for name in packages if name != "penstock")
    lines = [
        f"{machine['measured_at'][:10]}, {machine['cpu']}, {machine['num_cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB{results.get('gpu_name', '')}; "
        f"Python {machine['python']}, {versions}. `{results['command']}`"
    ]
    if "gpu" in results:
        from scaling_gpu import format_gpu  # noqa: PLC0415

        return "\n\n".join([*lines, format_gpu(results["gpu"])])
    score = read_results(results)
    arguments = results["arguments"]
    for part in arguments["parts"]:
        names = [name for name in arguments["competitors"] if name not in results["skipped"]]
        lines.append(format_part(score, part, arguments["threads"], list_entries(part, names)))
    return "\n\n".join([*lines, add_load_warning(NOTES, score)])


def read_results(results: Mapping[str, Any]) -> Results:
    """Return the measurements that were kept as JSON."""
    failures = {tuple(key): reason for *key, reason in results["failures"]}
    return Results([Turn(**turn) for turn in results["turns"]], {}, failures)


def report(results: dict[str, Any], arguments: argparse.Namespace, name: str) -> None:
    """Keep every figure, the tables and the plot."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"{name}.json").write_text(json.dumps(results) + "\n")
    show(results, arguments, name)


def show(results: Mapping[str, Any], arguments: argparse.Namespace, name: str) -> None:
    """Write the tables and the plot of results; print the tables if that was asked for."""
    section = format_section(results)
    (arguments.out / f"{name}.md").write_text(section + "\n")
    if "turns" in results:
        (arguments.out / f"{name}.svg").write_text(draw_plot(read_results(results), results["machine"]))
    if arguments.markdown:
        print(section)


def describe_run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures of a run depend on."""
    values = {
        name: str(value) if isinstance(value, Path) else value for name, value in vars(arguments).items()
    }
    return {"machine": describe_machine(), "arguments": values, "command": _name_command(sys.argv[1:])}


def _name_command(given: Sequence[str]) -> str:
    """Return the command of a run without the folders, which mean nothing on another machine."""
    kept, is_folder = [], False
    for word in given:
        if not is_folder and not word.startswith(("--data", "--out")):
            kept.append(word)
        is_folder = word in ("--data", "--out")
    return " ".join(["python", "benchmarks/scaling.py", *kept])


def main() -> int:
    """Run the benchmark; 1 if any feed failed."""
    arguments = parse_arguments()
    if arguments.earlier:
        arguments.out.mkdir(parents=True, exist_ok=True)
        for path in arguments.earlier:
            show(json.loads(path.read_text()), arguments, path.stem)
        return 0
    name = "scaling-gpu" if arguments.gpu else "scaling"
    name += "-quick" if arguments.quick else ""
    if arguments.gpu:
        from scaling_gpu import measure_gpu  # noqa: PLC0415

        report(describe_run(arguments) | measure_gpu(arguments.data, arguments.quick), arguments, name)
        return 0
    skipped = find_missing(arguments.competitors)
    for reason in dict.fromkeys(skipped.values()):
        print(reason, end="\n\n")
    score = measure(arguments, skipped)
    print(add_load_warning(NOTES, score), end="\n\n")
    results = describe_run(arguments) | {
        "skipped": skipped,
        "failures": [[*key, reason] for key, reason in score.failures.items()],
        "turns": [asdict(turn) for turn in score.turns],
    }
    report(results, arguments, name)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
