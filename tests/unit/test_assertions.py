"""Every test asserts something: itself, or through a function of the tests that it calls."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CHECKS = ("raises", "warns", "fail")  # of pytest

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

    def find(self, path: Path, name: str) -> tuple[Path, Function] | None:
        """Return the function that a name means in a module, and its own module."""
        if name in self.functions[path]:
            return path, self.functions[path][name]
        for node in ast.walk(self.trees[path]):
            if isinstance(node, ast.ImportFrom) and node.module in self.shared:
                for each in node.names:
                    if (each.asname or each.name) == name:
                        return self.find(self.shared[node.module], each.name)
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


def test_every_test_asserts_something() -> None:
    assert find_silent(TESTS) == []


@pytest.mark.parametrize(
    ("body", "is_silent"),
    [
        ("run()", True),
        ("helper()", True),
        ("assert run()", False),
        ("checked()", False),
        ("shared_check()", False),
        ("with pytest.raises(ValueError):\n        run()", False),
        ("np.testing.assert_array_equal(run(), 3)", False),
        ("check_model(run())", True),
    ],
)
def test_test_without_an_assertion_is_found(tmp_path: Path, body: str, is_silent: bool) -> None:
    (tmp_path / "shared.py").write_text("def shared_check():\n    assert 1\n")
    (tmp_path / "unit").mkdir()
    (tmp_path / "unit" / "test_a.py").write_text(
        "from penstock.model.compatibility import check_model\nfrom shared import shared_check\n\n"
        "def checked():\n    helper()\n    assert run()\n\ndef helper():\n    run()\n\n"
        f"def test_it():\n    {body}\n"
    )
    assert find_silent(tmp_path) == (["unit/test_a.py::test_it"] if is_silent else [])
