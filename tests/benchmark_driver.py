"""Runs benchmarks one after the other in this one process, which imports TensorFlow once.

In: a JSON list of command lines, each a script of `benchmarks/` with its arguments. Out: one line of JSON
with status, output and CPU seconds of each. The processes that a benchmark starts for its competitors are
threads here, with the same code: what differs is that they share one Python, and are not pinned.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
IN_PROCESS = ("write_datasets.py", "fit_datasets.py", "quality_worker.py")
"""Scripts that benchmarks run to their end and that import TensorFlow."""


class ThreadWorker:
    """Has the methods of `subprocess.Popen` that `rounds.Worker` uses, for a worker in a thread."""

    def __init__(self, command: list[str], **_: Any) -> None:
        _, script, job = command
        read, write = os.pipe()
        self._commands, self.stdin = os.fdopen(read), os.fdopen(write, "w")
        read, write = os.pipe()
        self.stdout, self._answers = os.fdopen(read), os.fdopen(write, "w", buffering=1)
        self._thread = threading.Thread(target=self._serve, args=(Path(script).stem, job))
        self._thread.start()

    def _serve(self, script: str, job: str) -> None:
        from worker import Job  # noqa: PLC0415 - of benchmarks/

        try:
            importlib.import_module(script).serve(Job(**json.loads(job)), self._commands, self._answers)
        except Exception as error:
            traceback.print_exc()
            self._answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")

    def poll(self) -> None:
        """Say that it runs."""

    def kill(self) -> None:
        """End the worker, which waits for its next turn."""
        self.stdin.close()

    def communicate(self) -> None:
        """Wait for its end."""
        self._thread.join()
        for file in (self._commands, self._answers, self.stdout):
            file.close()


def run_script(command: list[str], **others: Any) -> Any:
    """Run one of these scripts in this process, and any other command as it is."""
    script = Path(command[1]).name
    if script not in IN_PROCESS:
        return REAL_RUN(command, **others)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = run_main(script, command[2:])
    return subprocess.CompletedProcess(command, status, out.getvalue(), "see above")


REAL_RUN = subprocess.run


def run_main(script: str, arguments: list[str]) -> int:
    """Call the main function of a script; return its status."""
    given, sys.argv = sys.argv, [script, *arguments]
    try:
        return importlib.import_module(script.removesuffix(".py")).main() or 0
    except SystemExit as error:
        print(error, file=sys.stderr)
        return error.code if isinstance(error.code, int) else 1
    finally:
        sys.argv = given


def main() -> None:
    """Run all command lines."""
    sys.path[0] = str(BENCHMARKS)
    subprocess.run = run_script
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import readers.tfdata  # noqa: PLC0415 - of benchmarks/
    import rounds  # noqa: PLC0415 - of benchmarks/

    readers.tfdata.limit_threads = lambda num_cores: None
    rounds.subprocess = type("Subprocess", (), {"Popen": ThreadWorker, "PIPE": subprocess.PIPE})
    results = []
    for script, *arguments in json.loads(sys.argv[1]):
        begin = sum(os.times()[:4])
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            status = run_main(script, arguments)
        results.append(
            {
                "script": script,
                "status": status,
                "out": out.getvalue(),
                "err": err.getvalue(),
                "cpu": sum(os.times()[:4]) - begin,
            }
        )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
