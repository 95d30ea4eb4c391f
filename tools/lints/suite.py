"""The tests: they assert something, they are reproducible, and unit tests mirror the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS, SOURCE = ROOT / "tests", ROOT / "src" / "penstock"
CHECKS = ("raises", "warns", "fail")  # of pytest
# Tests that are named after what a batch, a feed or the core does, rather than after a module.
OWN_NAMES = ("batch/", "bridge/", "decode/", "foundation/test_feed", "native/", "wire/")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_functions(tree: ast.Module) -> dict[str, Function]:
    """Return the functions of a module, and its methods, by name."""
    return {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}


def find_tests(tree: ast.Module) -> Iterator[Function]:
    """Yield what pytest collects from a module."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else [node]
        yield from (each for each in inside if isinstance(each, Function) and each.name.startswith("test_"))


class Modules:
    """The modules of the tests; those beside conftest.py have functions that others import."""

    def __init__(self, folder: Path) -> None:
        self.trees = {
            path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))
        }
        self.functions = {path: find_functions(tree) for path, tree in self.trees.items()}
        self.shared = {path.stem: path for path in self.trees if path.parent == folder}
        self.imported = {path: self._find_imported(tree) for path, tree in self.trees.items()}

    def _find_imported(self, tree: ast.Module) -> dict[str, tuple[Path, str]]:
        """Return the names that a module imports from shared ones, with their modules and names there."""
        return {
            each.asname or each.name: (self.shared[node.module], each.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module in self.shared
            for each in node.names
        }

    def find(self, path: Path, name: str) -> tuple[Path, Function] | None:
        """Return the function that a name means in a module, and its own module."""
        if name in self.functions[path]:
            return path, self.functions[path][name]
        if name in self.imported[path]:
            return self.find(*self.imported[path][name])
        return None

    def asserts(self, path: Path, function: Function, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a function asserts something, or calls one that does."""
        called = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                return True
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in CHECKS or (isinstance(node.func, ast.Attribute) and name.startswith("assert_")):
                    return True
                if isinstance(node.func, ast.Name):
                    called.add(name)
        found = [self.find(path, name) for name in sorted(called - seen)]
        return any(each is not None and self.asserts(*each, seen | called) for each in found)


def find_silent(folder: Path) -> list[str]:
    """Return the tests that cannot fail but by an error."""
    modules = Modules(folder)
    return [
        f"{path.relative_to(folder)}::{test.name}"
        for path, tree in modules.trees.items()
        if path.name.startswith("test_")
        for test in find_tests(tree)
        if not modules.asserts(path, test, frozenset({test.name}))
    ]


def check_assertions() -> Iterator[str]:
    """Every test asserts something: itself, or through a function of the tests that it calls."""
    yield from find_silent(TESTS)


def check_settings_of_hypothesis() -> Iterator[str]:
    """No property test has a setting that makes its examples random, or that limits its time."""
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("settings", "seed"):
                names = {keyword.arg for keyword in node.keywords} & {"derandomize", "database", "deadline"}
                if path != TESTS / "conftest.py" and (names or node.func.id == "seed"):
                    yield f"{path.relative_to(TESTS)}:{node.lineno}"


def check_names_of_unit_tests() -> Iterator[str]:
    """A unit test has the name of a module in the same folder of the package, or begins with it."""
    for path in sorted((TESTS / "unit").rglob("test_*.py")):
        inside = path.relative_to(TESTS / "unit").as_posix()
        if "/" in inside and not inside.startswith(OWN_NAMES):
            modules = {module.stem for module in (SOURCE / inside).parent.glob("*.py")} - {"__init__"}
            name = path.stem.removeprefix("test_")
            if not any(name == module or name.startswith(f"{module}_") for module in modules):
                yield inside
