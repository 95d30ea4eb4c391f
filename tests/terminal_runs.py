"""Run a program whose stdout or stderr is a terminal of a given width."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading

_MAIN = "import sys; from penstock.cli.main import main; sys.exit(main(sys.argv[1:]))"


def run_on_terminal(argv, *, columns=80, stdout=True, stderr=False, **environment) -> tuple[str, str]:
    """Run the command line, and return what it wrote to stdout and stderr.

    Args:
        argv: The arguments after `penstock`.
        columns: Width of the terminal.
        stdout: Whether stdout is a terminal, or else a pipe.
        stderr: Whether stderr is a terminal, or else a pipe.
        environment: Variables of the process; None removes one.
    """
    usual = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
    variables = {name: value for name, value in os.environ.items() if name not in usual}
    variables |= {"TERM": "xterm"} | environment
    variables = {name: value for name, value in variables.items() if value is not None}
    out, err = _Output(columns if stdout else None), _Output(columns if stderr else None)
    command = [sys.executable, "-c", _MAIN, *map(str, argv)]
    with subprocess.Popen(command, stdout=out.theirs, stderr=err.theirs, env=variables) as process:
        texts = out.read(), err.read()
        process.wait(timeout=60)
    return texts[0](), texts[1]()


class _Output:
    """The reading end of a terminal or a pipe."""

    def __init__(self, columns: int | None) -> None:
        self.ours, self.theirs = os.pipe() if columns is None else pty.openpty()
        if columns is not None:
            fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self):
        os.close(self.theirs)
        parts = []
        thread = threading.Thread(target=self._read_all, args=(parts,))
        thread.start()

        def join() -> str:
            thread.join(timeout=60)
            return b"".join(parts).decode().replace("\r\n", "\n")

        return join

    def _read_all(self, parts) -> None:
        try:
            while part := os.read(self.ours, 4096):
                parts.append(part)
        except OSError:  # a terminal whose last writer is gone ends like this on Linux
            pass
        finally:
            os.close(self.ours)
