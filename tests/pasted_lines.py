"""The line `Next:` of a command, read as a shell reads it, and run."""

import shutil
import subprocess

from penstock.cli.main import main


def find_next(err: str) -> list[str]:
    """Return the words of the only line `Next:`, which is the last line of stderr."""
    last = err.splitlines()[-1]
    assert last.startswith("Next: "), err
    assert err.count("Next: ") == 1
    return split_words(last.removeprefix("Next: "))


def split_words(line: str) -> list[str]:
    """Return the words of a command line as bash splits it."""
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True
    )
    return [word.decode(errors="surrogateescape") for word in done.stdout.split(b"\0")[:-1]]


def run_pasted(err: str) -> int:
    """Run the command of the line `Next:` and return its exit status; Penstock runs in this process."""
    program, *words = find_next(err)
    if program == "penstock":
        return main(words)
    return subprocess.run([program, *words], check=False, capture_output=True, timeout=120).returncode
