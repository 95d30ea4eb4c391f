"""Programs of tests that run in a separate process, which may die."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def run_apart(
    program: str, *arguments: object, timeout: float = 60, check: bool = True
) -> subprocess.CompletedProcess:
    """Run a program in a separate process, which may die; it can import the modules of the tests."""
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=check,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
