"""Programs of tests that run in a separate process, which may die."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def run_apart(
    program: str, *arguments: object, timeout: float = 60, check: bool = True
) -> subprocess.CompletedProcess:
    """Run a program in a process of its own, which may die; the modules of the tests are there."""
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=check,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
