"""What a small job runs: the functions that it calls, and its calls across folders."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

TRAINING = 'ps.train(folder + "/pets.csv", out=out, target="adopted", epochs=1, verbose=0)'
CONVERSION = 'ps.convert(folder + "/pets.csv", out, target="adopted")'

_TRACED = """
import os, sys
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import numpy as np
folder, root, job = sys.argv[1:]
rng = np.random.default_rng(0)
with open(folder + "/pets.csv", "w") as file:
    file.write("age,kind,weight,adopted\\n")
    for number in range(200):
        kind = ("cat", "dog", "hen")[number % 3]
        adopted = ("no", "yes")[int(rng.random() < 0.3 + 0.4 * (number % 3 == 1))]
        file.write(f"{rng.normal(5, 2):.3f},{kind},{rng.normal(20, 5):.3f},{adopted}\\n")
import penstock as ps
def work(out):
    exec(job, {"ps": ps, "folder": folder, "out": out})
work(folder + "/first")
functions, across = set(), 0
def part(code):
    name = code.co_filename
    return name[len(root):].split("/")[0].removesuffix(".py") if name.startswith(root) else None
def trace(frame, event, _):
    global across
    if event != "call":
        return
    called = part(frame.f_code)
    if called is None:
        return
    if not frame.f_code.co_name.startswith("<"):
        functions.add(frame.f_code)
    caller = frame.f_back and part(frame.f_back.f_code)
    across += caller is not None and caller != called
sys.setprofile(trace)
work(folder + "/second")
sys.setprofile(None)
print("MEASURED", len(functions), across)
"""


class Calls(NamedTuple):
    """The calls of a job."""

    num_functions: int
    num_across: int


def trace_calls(tree: Path, job: str) -> Calls:
    """Run a job on a CSV of 200 rows; count the functions called, and the calls across folders.

    A function of Penstock counts once; lambdas and comprehensions are part of their function. Only calls in
    the main thread count. A call across folders is one whose caller and callee are in different top folders
    of the package. It is the second job of a process, so that nothing counts that runs while modules are
    imported. The Python is `TREE/.venv/bin/python`, if there is one, else this one.
    """
    own = tree / ".venv" / "bin" / "python"
    root = f"{(tree / 'src' / 'penstock').resolve()}/"
    with tempfile.TemporaryDirectory() as folder:
        command = [str(own) if own.exists() else sys.executable, "-c", _TRACED, folder, root, job]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    found = re.search(r"MEASURED (\d+) (\d+)", done.stdout)
    if found is None:
        raise SystemExit(f"{tree}: the job failed: {done.stderr[-2000:]}")
    return Calls(int(found[1]), int(found[2]))
