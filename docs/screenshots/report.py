"""Takes a picture of a report: `python docs/screenshots/report.py DATASET|RUN`, with `--out` for its path.

Needs the packages of the tests, and Debian's chromium and chromium-driver (`make chromium`).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from chromium import make_parser, take_picture

import penstock as ps


def main() -> None:
    """Write the report, and take the picture of its beginning, or of one of its sections."""
    parser = make_parser(__doc__, "report.png", 1290)
    parser.add_argument("--section", default="", help="section to begin with, such as 'mistakes'")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        ps.write_report(args.data, page)
        take_picture(f"{page.as_uri()}#{args.section}", args)


if __name__ == "__main__":
    main()
