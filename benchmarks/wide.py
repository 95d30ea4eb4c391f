"""The time that `penstock convert` takes for a CSV of many columns and three rows.

In: a number of columns. Out: processor and elapsed seconds of the whole command, its memory, and the seconds
of a loop of ten million steps before and after, by which a busy machine is recognized. The promise is 100,000
columns in less than 10 seconds of processor time. A data set without one of the columns is refused.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NUM_ROWS = 3
COMMAND = (sys.executable, "-c", "import sys; from penstock.cli.main import main; sys.exit(main())")


def write_source(path: Path, num_columns: int) -> None:
    """Write a CSV of whole numbers, numbers, words and whole numbers that may be missing."""
    with path.open("w") as file:
        file.write(",".join(f"c{i}" for i in range(num_columns)) + "\n")
        for row in range(NUM_ROWS):
            file.write(",".join(write_cell(i, row) for i in range(num_columns)) + "\n")


def write_cell(column: int, row: int) -> str:
    """Return the text of a cell."""
    number = (7 * column + 13 * row) % 1000
    missing = "" if row == 1 else str(number)
    return (str(number), str(number / 8), f"w{(column + row) % 5}", missing)[column % 4]


def check_columns(out: Path, num_columns: int) -> None:
    """Refuse a data set that lacks columns, or has other values in the first or the last of whole numbers."""
    import penstock as ps  # noqa: PLC0415 - after the other process was measured

    data = ps.open(out)
    if (found := len(data.schema)) != num_columns:
        raise SystemExit(f"expected {num_columns} columns, got {found}")
    for column in (0, (num_columns - 1) // 4 * 4):
        got = sorted(data.to_arrow(fields=[f"c{column}"])[f"c{column}"].to_pylist())
        expected = sorted(int(write_cell(column, row)) for row in range(NUM_ROWS))
        if got != expected:
            raise SystemExit(f"c{column}: expected {expected}, got {got}")


def time_loop() -> float:
    """Return the processor seconds of a loop of ten million steps."""
    began = time.process_time()
    sum(i for i in range(10**7))
    return time.process_time() - began


def main() -> None:
    """Measure, and print one line per number of columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("columns", type=int, nargs="*", help="default: 10000 100000; quick 200")
    parser.add_argument("--quick", action="store_true", help="few columns: a smoke test, not a measurement")
    arguments = parser.parse_args()
    usual = [200] if arguments.quick else [10_000, 100_000]
    print(f"{'columns':>9}  {'CPU s':>7}  {'elapsed s':>9}  {'peak MB':>7}  {'loop s':>11}")
    for num_columns in arguments.columns or usual:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "wide.csv"
            write_source(source, num_columns)
            before = time_loop()
            began = time.perf_counter()
            process = subprocess.Popen(
                [*COMMAND, "convert", str(source), str(Path(folder) / "out")],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, status, usage = os.wait4(process.pid, 0)
            elapsed = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(process.returncode)
            check_columns(Path(folder) / "out", num_columns)
        cpu = usage.ru_utime + usage.ru_stime
        loop = f"{before:.2f}, {time_loop():.2f}"
        print(f"{num_columns:>9,}  {cpu:>7.1f}  {elapsed:>9.1f}  {usage.ru_maxrss / 1024:>7.0f}  {loop:>11}")


if __name__ == "__main__":
    main()
