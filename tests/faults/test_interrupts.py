"""Ctrl-C at any moment of any command: one line, exit status 130, no traceback (X13)."""

import os
import re
import subprocess
import sys

import pytest

from record_files import example, write_plain

# Interrupts itself at the n-th call of a Python function: the same moment in every run, unlike a delay. With
# n = 0 it prints how many calls there are, those while the interpreter shuts down included.
PROGRAM = """
import atexit, signal, sys
point, num_calls = int(sys.argv.pop(1)), 0
def count(frame, event, argument):
    global num_calls
    if event == "call":
        num_calls += 1
        if num_calls == point:
            signal.raise_signal(signal.SIGINT)
if not point:
    atexit.register(lambda: print(num_calls, file=sys.stderr))
from penstock.cli.main import main
sys.setprofile(count)
sys.exit(main())
"""
THIN = {"penstock", "penstock.cli", "penstock.cli.interrupt", "penstock.cli.main"}


def run_until(point, *words):
    command = [sys.executable, "-c", PROGRAM, str(point), *map(os.fspath, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def list_points(num_calls):
    """Return moments that are dense at the beginning, where modules are loaded, and at the end."""
    early = [2**power for power in (4, 7, 10, 13)]
    late = [num_calls - 2**power for power in range(1, 14, 2)]
    return sorted({*early, *late, num_calls // 2, num_calls})


def check(done, *, resumes):
    """Return whether it was interrupted; it may have been done before it noticed."""
    if done.returncode == 0:
        assert done.stderr == "" or re.fullmatch("Next: .*\n", done.stderr)
        return False
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "--resume" not in done.stderr or resumes
    return True


def test_x13_entry_point_loads_next_to_nothing_before_it_handles_interrupts():
    program = "import sys; import penstock.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert {name for name in loaded if name.startswith("penstock")} == THIN
    assert "numpy" not in loaded
    assert "argparse" not in loaded


def test_x13_interrupted_inspect_ends_with_one_line(tmp_path):
    path = tmp_path / "a.tfrecord"
    write_plain(path, [example(age=number) for number in range(50)])
    whole = run_until(0, "inspect", path)
    assert whole.returncode == 0, whole.stderr
    points = list_points(int(whole.stderr.split()[-1]))
    assert (
        sum(check(run_until(point, "inspect", path), resumes=False) for point in points) >= len(points) // 2
    )


def test_x13_interrupted_convert_ends_with_one_line_and_resumes(tmp_path):
    source = tmp_path / "pets.csv"
    source.write_text("name,age\n" + "".join(f"pet {row},{row % 7}\n" for row in range(300)))
    whole = run_until(0, "convert", source, tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    num_calls = int(whole.stderr.split()[-1])
    resumable = []
    for point in list_points(num_calls):
        out = tmp_path / f"out-{point}"
        done = run_until(point, "convert", source, out)
        if check(done, resumes=True) and "--resume" in done.stderr:
            resumable.append(out)
    again = subprocess.run(
        [sys.executable, "-c", PROGRAM, "-1", "convert", source, resumable[-1], "--resume"], check=False
    )
    assert again.returncode == 0
    assert (resumable[-1] / "penstock.json").is_file()


def test_x13_ignored_interrupts_stay_ignored(tmp_path):
    path = tmp_path / "a.tfrecord"
    write_plain(path, [example(age=1)])
    program = PROGRAM.replace(
        "import atexit", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nimport atexit", 1
    )
    command = [sys.executable, "-c", program, "1000", "inspect", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert (done.returncode, done.stderr) == (0, f"Next: penstock view {path}\n")


@pytest.mark.parametrize("hook", ["__del__", "weakref"])
def test_x13_interrupt_in_a_destructor_is_not_lost(hook):
    program = f"""
import re
import signal, sys, time, weakref
from penstock.cli import interrupt
interrupt.watch_interrupts()
interrupt.begin_work()
class Held:
    pass
def drop(*_):
    signal.raise_signal(signal.SIGINT)
held = Held()
if {hook!r} == "__del__":
    Held.__del__ = drop
else:
    reference = weakref.ref(held, drop)
try:
    del held
    time.sleep(60)
except KeyboardInterrupt:
    print("heard")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    assert (done.stdout, done.stderr) == ("heard\n", "")
