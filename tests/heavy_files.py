"""Which test files are heavy, found in their source: for `make quick`, which runs the others."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import penstock

TESTS = Path(__file__).parent
PACKAGE = Path(penstock.__file__).parent
FRAMEWORKS = frozenset({"jax", "keras", "ray", "tensorflow", "torch"})
# As a word, or as a part of a name such as `to_keras`.
_HEAVY = re.compile(
    r"(?<![a-z])(?:jax|keras|ray|tensorflow|tf|torch|moto|s3|subprocess|multiprocessing)(?![a-z])"
)


@functools.cache
def is_heavy(path: Path) -> bool:
    """Whether a test file needs a framework, a process or an S3 server.

    It does if its source names one, or if a module that it imports does: a module of the tests by its source,
    a module of Penstock by its imports. Names such as `ps.train` count as imports of their modules.
    """
    source = path.read_text(encoding="utf-8")
    if _HEAVY.search(source):
        return True
    for name in _list_imports(ast.parse(source)):
        helper = TESTS / f"{name}.py"
        if helper.is_file() and helper != path and is_heavy(helper):
            return True
        if name.startswith("penstock.") and _loads_framework(name):
            return True
    return False


def _list_imports(tree: ast.AST) -> Iterator[str]:
    """Yield all modules that a test file may import, and the modules of names such as `ps.train`."""
    for node in ast.walk(tree):
        yield from _imported(node)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("ps", "penstock"):
            yield from penstock._LOADED_LATE.get(node.attr, ())[:1]


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{each.name}" for each in node.names)


@functools.cache
def _loads_framework(name: str) -> bool:
    """Whether a framework is imported together with a module of Penstock."""
    path = PACKAGE.parent / name.replace(".", "/")
    file = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    if not file.is_file():
        return False  # a name in a module, which is listed beside the module
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        for each in _imported(node):
            if each.partition(".")[0] in FRAMEWORKS:
                return True
            if each.startswith("penstock.") and each != name and _loads_framework(each):
                return True
    return False
