"""The glossary names code that exists."""

import re
from pathlib import Path

import pytest

import penstock as ps
from penstock import dataset

SOURCE = Path(ps.__file__).parent
GLOSSARY = SOURCE.parent.parent / "docs" / "glossary.md"
LINES = re.findall(r"^\| (\w[\w ]*) \| (.+) \| (.+) \|$", GLOSSARY.read_text(), re.MULTILINE)
ROWS = [line for line in LINES if line[0] != "term"]
HOMES = [(term, home) for term, _, where in ROWS for home in re.findall(r"`([^`]+)`", where)]


def test_glossary_has_each_term_once() -> None:
    terms = [term for term, _, _ in ROWS]
    assert len(terms) == len(set(terms))
    assert {"sample", "record", "columns", "batch", "field", "row", "plan", "decode plan"} <= set(terms)


@pytest.mark.parametrize(("term", "home"), HOMES)
def test_home_of_a_term_exists(term: str, home: str) -> None:
    if "/" in home:
        assert (SOURCE / home).exists()
        return
    names = home.removesuffix("()").removeprefix("ps.").split(".")
    current = dataset if names[0] in ("Split", "Dataset") else ps
    for name in names:
        current = getattr(current, name)
