"""Links of pages to files outside `docs/`, which lead to the pages of the site that show these files.

In: the Markdown of a page, whose links are right for someone who browses the repository. Out: the same text
with links to pages. Links to other files, such as scripts of benchmarks, become downloads in the parser.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from sphinx.application import Sphinx

DOCS: Final = Path(__file__).parents[1]
ROOT: Final = DOCS.parent
_LINK: Final = re.compile(r"\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_PAGES: Final = {
    ROOT / "README.md": "index.md",
    ROOT / "CHANGELOG.md": "project/changelog.md",
    ROOT / "CONTRIBUTING.md": "project/contributing.md",
    ROOT / "SECURITY.md": "project/security.md",
    ROOT / "benchmarks": "project/benchmarks.md",
    ROOT / "benchmarks" / "README.md": "project/benchmarks.md",
    ROOT / "examples": "examples.md",
    DOCS / "design": "design/README.md",
}


def name_anchor(script: str) -> str:
    """Return the anchor of an example script in the page of examples."""
    return re.sub(r"[^a-z0-9]+", "-", script.lower())


def find_page(path: Path) -> str | None:
    """Return the page of the site that shows a file or folder of the repository, or None."""
    if path.parent == ROOT / "examples" and path.suffix == ".py":
        return f"examples.md#{name_anchor(path.name)}"
    return _PAGES.get(path)


def replace_links(text: str, folder: Path) -> str:
    """Return the text of a page in a folder, with links to the pages that show other files."""

    def replace(match: re.Match[str]) -> str:
        page = find_page(Path(os.path.normpath(folder / match["path"])))
        if page is None:
            return match[0]
        up = os.path.relpath(DOCS, folder)
        return f"]({up}/{page}{match['anchor'] or ''})"

    return _LINK.sub(replace, text)


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    path = app.env.doc2path(name)
    if path.suffix == ".md":
        source[0] = replace_links(source[0], path.parent)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
