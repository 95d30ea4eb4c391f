"""Property tests draw the same examples in every run, unless new ones are asked for."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

DRAWS = """
from hypothesis import given, settings
from hypothesis import strategies as st

drawn = []

@settings(max_examples=20)
@given(st.integers(0, 10**18))
def test_any_number(number):
    drawn.append(number)

def test_numbers_are_printed():
    print("drawn:", *drawn)
    assert drawn
"""


def draw(folder: Path, *options: str) -> str:
    """Return what a property test draws in a separate process, under the configuration of these tests."""
    path = folder / "test_draws.py"
    path.write_text(DRAWS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        *options,
        path,
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(TESTS), *filter(None, sys.path)])}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    (line,) = [line for line in result.stdout.splitlines() if "drawn:" in line]
    return line[line.index("drawn:") :]


def test_default_draws_are_the_same_in_every_run_and_fresh_ones_are_not(tmp_path: Path) -> None:
    first = draw(tmp_path)
    assert len(set(first.split())) > 10
    assert draw(tmp_path) == first
    fresh = draw(tmp_path, "--hypothesis-profile=fresh")
    assert fresh not in (first, draw(tmp_path, "--hypothesis-profile=fresh"))
