"""Documents: links lead somewhere, and what a page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import penstock
from penstock import dataset

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "penstock"
DOCUMENTS = sorted([*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
_TERM = re.compile(r"^\| (\w[\w ]*) \| (.+) \| (.+) \|$", re.MULTILINE)


def list_anchors(document: Path) -> set[str]:
    """Return the anchors of the headings of a document, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def check_links() -> Iterator[str]:
    """Links lead to files and headings of the project that exist."""
    for document in DOCUMENTS:
        for link in _LINK.findall(document.read_text()):
            if "://" not in link:
                name, _, anchor = link.partition("#")
                path = document.parent / name if name else document
                if not path.exists() or (anchor and anchor not in list_anchors(path)):
                    yield f"{document.relative_to(ROOT)}: {link}"


def check_design_numbers() -> Iterator[str]:
    """Each page of a design decision has a unique number, because pages are cited by number."""
    pages = sorted((ROOT / "docs" / "design").glob("0*.md"))
    for first, second in pairwise(pages):
        if first.name[:4] == second.name[:4]:
            yield f"{first.name} and {second.name}"
    for page in pages:
        if not page.read_text().startswith(f"# {int(page.name[:4])}. "):
            yield f"{page.name}: the title has another number"


def check_placeholders() -> Iterator[str]:
    """No document has a placeholder left."""
    for document in DOCUMENTS:
        for found in re.findall(r"^[A-Z]{5,}$", document.read_text(), re.MULTILINE):
            yield f"{document.relative_to(ROOT)}: {found}"


def check_tests_of_formats() -> Iterator[str]:
    """The tests that `docs/format.md` names exist."""
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "format.md").read_text()))
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    yield from (name for name in sorted(named) if f"def {name}(" not in tests)


def check_glossary() -> Iterator[str]:
    """The glossary has each term once, and names code that exists."""
    rows = [row for row in _TERM.findall((ROOT / "docs" / "glossary.md").read_text()) if row[0] != "term"]
    terms = [term for term, _, _ in rows]
    if not {"sample", "record", "columns", "batch", "field", "row", "plan", "decode plan"} <= set(terms):
        yield "terms are missing"
    yield from (
        f"{term} is there twice" for term in sorted({each for each in terms if terms.count(each) > 1})
    )
    for term, _, where in rows:
        yield from (
            f"{term}: {home} does not exist" for home in re.findall(r"`([^`]+)`", where) if not is_there(home)
        )


def is_there(home: str) -> bool:
    """Whether a file of the package, or a name such as `ps.open()`, exists."""
    if "/" in home:
        return (SOURCE / home).exists()
    names = home.removesuffix("()").removeprefix("ps.").split(".")
    current: object = dataset if names[0] in ("Split", "Dataset") else penstock
    for name in names:
        if not hasattr(current, name):
            return False
        current = getattr(current, name)
    return True
