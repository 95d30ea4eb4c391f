"""The directive `example-scripts`: every script of `examples/`, with what it is about and its code.

In: the scripts. Out: one section per script, whose anchor `repository_links` links to.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from docutils import nodes
from repository_links import ROOT, name_anchor
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class ExampleScripts(SphinxDirective):
    """Shows all scripts of `examples/`."""

    def run(self) -> list[nodes.Node]:
        """Return one section per script."""
        return [self._show(path) for path in sorted((ROOT / "examples").glob("*.py"))]

    def _show(self, path: Path) -> nodes.section:
        self.env.note_dependency(str(path))
        text = path.read_text()
        about = ast.get_docstring(ast.parse(text)) or ""
        anchor = name_anchor(path.name)
        section = nodes.section(ids=[anchor], names=[anchor])
        section += nodes.title("", "", nodes.literal("", path.name))
        self.state.document.note_explicit_target(section)
        for paragraph in about.split("\n\n"):
            section += nodes.paragraph("", "", *self.parse_inline(paragraph.replace("\n", " "))[0])
        section += nodes.literal_block(text, text, language="python")
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.add_directive("example-scripts", ExampleScripts)
    return {"parallel_read_safe": True}
