"""The `penstock` command as a shell runs it."""

import errno
import json
import os
import pty
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from pasted_lines import find_next
from raising import containing
from record_files import BASE, FRAME_BYTES, FRAMES, PAYLOADS, example, flip, write_gzip, write_plain
from wire.frame import write_record

PENSTOCK = Path(sysconfig.get_path("scripts")) / "penstock"


def run(*argv: object, **options) -> subprocess.CompletedProcess[str]:
    command = [PENSTOCK, *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.fixture
def shards(tmp_path) -> Path:
    """Three shards, one of them compressed, two of them damaged."""
    folder = tmp_path / "shards"
    folder.mkdir()
    write_plain(folder / "train-00000-of-00002.tfrecord", PAYLOADS)
    (folder / "train-00001-of-00002.tfrecord").write_bytes(flip(BASE, FRAME_BYTES + 30) + b"\x01" * 7)
    damaged = write_gzip(folder / "test.tfrecord.gz", PAYLOADS)
    damaged.write_bytes(damaged.read_bytes()[:-8])
    return folder


def test_session_of_inspect_verify_repair_verify_ends_sound(shards, tmp_path) -> None:
    inspected = run("inspect", shards, "--json")
    assert inspected.returncode == 1
    assert json.loads(inspected.stdout)["records"] == 14
    assert inspected.stderr == containing("3 faults", "2 of 3 files", f"'penstock verify {shards}'")
    assert inspected.stderr.count("\n") == 1
    verified = run("verify", shards, "--json")
    assert verified.returncode == 1
    faults = json.loads(verified.stdout)["faults"]
    assert [(Path(fault["file"]).name, fault["record"]) for fault in faults] == [
        ("test.tfrecord.gz", 5),
        ("train-00001-of-00002.tfrecord", 1),
        ("train-00001-of-00002.tfrecord", 5),
    ]
    repaired = run("repair", shards, "--out", tmp_path / "repaired", "--json")
    assert repaired.returncode == 0
    done = json.loads(repaired.stdout)
    assert [loss["what"] for loss in done["losses"]] == [fault["what"] for fault in faults]
    assert done["kept"] == 14
    again = run("verify", tmp_path / "repaired")
    assert (again.returncode, again.stdout) == (0, containing("3 files", "14 records"))
    assert json.loads(run("inspect", tmp_path / "repaired", "--json").stdout)["records"] == 14


def test_verify_of_every_single_turned_bit_finds_it(tmp_path) -> None:
    # In one process: the command line is the same for each.
    program = (
        "import json, sys, io, contextlib\n"
        "from penstock.cli.main import main\n"
        "for path in sys.argv[1:]:\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "        status = main(['verify', '--json', path])\n"
        "    print(status, len(json.loads(out.getvalue())['faults']))\n"
    )
    paths = []
    for position in range(len(FRAMES[0])):
        paths.append(tmp_path / f"{position}.tfrecord")
        paths[-1].write_bytes(FRAMES[1] + flip(FRAMES[0], position, position % 8) + FRAMES[2])
    done = subprocess.run(
        [sys.executable, "-c", program, *paths], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["1 1"] * len(paths)


def test_closed_pipe_is_no_traceback(tmp_path) -> None:
    many = {f"field {n:05}": n for n in range(20_000)}
    path = write_plain(tmp_path / "a.tfrecord", [example(**many)])
    command = f"'{PENSTOCK}' inspect '{path}' | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["field", "type", "kind", "values", "missing", "example"]
    assert (done.returncode, done.stderr) == (141, "")


def test_closed_output_and_full_output_are_no_traceback(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    closed = subprocess.run(
        ["bash", "-c", f"'{PENSTOCK}' inspect '{path}' >&-"], capture_output=True, text=True, check=False
    )
    assert (closed.returncode, closed.stderr) == (0, containing("Next: "))
    assert closed.stderr.count("\n") == 1
    full = subprocess.run(
        ["bash", "-c", f"'{PENSTOCK}' inspect '{path}' >/dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert full.returncode == 1
    assert full.stderr == containing("penstock: error: ", os.strerror(errno.ENOSPC))
    assert full.stderr.count("\n") == 1


def test_interrupt_ends_with_one_line_and_leaves_no_part_of_a_file(tmp_path) -> None:
    frame = write_record(example(numbers=list(range(2000))))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame * 60_000)
    command = [PENSTOCK, "repair", path, "--out", tmp_path / "out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out = tmp_path / "out"
    deadline = time.monotonic() + 30
    while not out.exists() and time.monotonic() < deadline:  # it is made when the first file is begun
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (130, "", containing("penstock: ", "interrupted"))
    assert stderr.count("\n") == 1
    assert list(out.iterdir()) == []


def test_progress_bar_shows_on_a_terminal_alone(tmp_path) -> None:
    frame = write_record(example(numbers=list(range(2000))))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame * 10_000)
    ours, theirs = pty.openpty()
    # The bar begins after two seconds: a slower clock would only make the test slow, so the wait is cut here.
    program = (
        "import sys, penstock.cli.terminal as terminal\n"
        "terminal._SILENT_SECONDS = 0.01\n"
        "from penstock.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", program, "verify", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # so a terminal whose last writer is gone ends on Linux
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    out, _ = process.communicate(timeout=30)
    assert out.splitlines()[-1] == containing("no faults")
    assert "verify █" in shown.decode()
    assert b"\r\x1b[K\x1b[1mNext:\x1b[0m penstock inspect " in shown
    piped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (piped.returncode, piped.stderr) == (0, f"Next: penstock inspect {path}\n")


def test_file_name_that_is_no_unicode_is_read_and_shown_escaped(tmp_path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.tfrecord"
    Path(os.fsdecode(path)).write_bytes(flip(BASE, 40))
    done = subprocess.run([PENSTOCK, "verify", path], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stdout == containing(f"{tmp_path}/\\udcff.tfrecord: ", "record 0", "payload", "CRC")
    form = json.loads(
        subprocess.run(
            [PENSTOCK, "verify", "--json", path], capture_output=True, check=False, timeout=60
        ).stdout
    )
    assert os.fsencode(form["faults"][0]["file"]) == path


def test_output_that_is_ascii_shows_other_letters_as_escapes(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", [example(größe="大")])
    done = run("inspect", path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "gr\\xf6\\xdfe" in done.stdout
    assert "-----" in done.stdout


def test_import_of_the_package_loads_no_command_and_no_framework() -> None:
    program = "import sys, penstock; print(*sorted(name for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith(("penstock.cli", "penstock.jobs"))] == []


def test_command_loads_no_framework() -> None:
    program = "import sys; from penstock.cli.main import main; main(['--version']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"tensorflow", "keras", "pyarrow", "google", "ray", "pandas"}
    assert heavy & set(done.stdout.split()) == set()


def test_demo_runs_and_ends_well(tmp_path) -> None:
    done = run("demo", "--data", cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0
    assert done.stdout == containing("308 records")
    (folder,) = tmp_path.iterdir()
    assert find_next(done.stderr)[1:] == ["view", f"{folder}/flowers"]
    assert done.stdout.splitlines()[-1] == containing(folder)
