"""The documentation site for tests, built without the outputs of notebooks, which other tests run."""

import re
import subprocess
import sys
import zlib
from pathlib import Path

from shared_builds import build_once

ROOT = Path(__file__).parents[1]
# Sphinx in a separate process, which then says whether it has loaded TensorFlow.
BUILD = """
import sys
from sphinx.cmd.build import main
status = main(sys.argv[1:])
sys.exit(status or (3 if "tensorflow" in sys.modules else 0))
"""
OBJECT = re.compile(r"(?P<name>.+?)\s+(?P<kind>\S+:\S+)\s+-?\d+\s+(?P<page>\S*)\s+.*")


def build_site(out, source=ROOT / "docs"):
    """Build the site as `make docs` does, and return the finished process."""
    options = ["--quiet", "--fresh-env", "--fail-on-warning", "-D", "nb_execution_mode=off"]
    command = [sys.executable, "-c", BUILD, *options, "--conf-dir", str(ROOT / "docs"), str(source), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)


def share_site(factory):
    """Build the site once for all processes of a test run, and return its folder."""

    def build(folder):
        done = build_site(folder)
        assert done.returncode == 0, done.stderr

    return build_once(factory, "site", build)


def read_inventory(site):
    """Return the kind and the page of each documented object, by its name."""
    parts = (site / "objects.inv").read_bytes().split(b"\n", 4)
    found = [OBJECT.fullmatch(line) for line in zlib.decompress(parts[4]).decode().splitlines()]
    return {match["name"]: (match["kind"], match["page"]) for match in found}
