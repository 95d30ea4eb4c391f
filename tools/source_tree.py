"""Reads the package of a working tree: its modules, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# What runs when it is called, not when its module is imported.
LATE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Module(NamedTuple):
    """A module of Penstock: its path in the package, such as "cli/train", its source, and its syntax tree."""

    path: str
    source: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Dotted name: "cli.train", "cli" for "cli/__init__", and "penstock" for the package itself."""
        return self.path.removesuffix("__init__").strip("/").replace("/", ".") or "penstock"


class SourceTree:
    """The modules of a working tree, by their names without `penstock.`, and the imports among them."""

    def __init__(self, root: Path) -> None:
        folder = root / "src" / "penstock"
        self.modules: dict[str, Module] = {}
        for path in sorted(folder.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            inside = path.relative_to(folder).with_suffix("").as_posix()
            module = Module(inside, source, ast.parse(source, str(path)))
            self.modules[module.name] = module
        self._imports: dict[tuple[str, bool, bool], frozenset[str]] = {}

    def imported_names(
        self, module: str, *, with_types: bool = True, with_late: bool = True
    ) -> Iterator[str]:
        """Yield the full names that a module imports: for types alone, and inside functions, if wanted."""
        for node in walk_syntax(self.modules[module].tree, with_types=with_types, with_late=with_late):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    raise SystemExit(f"{module}:{node.lineno}: relative imports are not allowed")
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def imports(self, module: str, *, with_types: bool = True, with_late: bool = True) -> frozenset[str]:
        """Return the modules of Penstock that a module imports."""
        key = (module, with_types, with_late)
        if key not in self._imports:
            names = self.imported_names(module, with_types=with_types, with_late=with_late)
            found = {self.find_module(name) for name in names if name.partition(".")[0] == "penstock"}
            self._imports[key] = frozenset(found)
        return self._imports[key]

    def find_module(self, name: str) -> str:
        """Return the module that a full name of Penstock belongs to; the core has no files, and one name."""
        name = name.removeprefix("penstock").removeprefix(".")
        if part_of(name) == "_native":
            return "_native"
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name or "penstock"


def part_of(module: str) -> str:
    """Return the folder or top-level file that a module belongs to."""
    return module.split(".", maxsplit=1)[0]


def names_types_only(node: ast.AST) -> bool:
    """Whether a statement is for type checkers alone."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def walk_syntax(node: ast.AST, *, with_types: bool, with_late: bool = True) -> Iterator[ast.AST]:
    """Yield a node and all inside it, but for what is not wanted: code for type checkers, or functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if (with_types or not names_types_only(child)) and (with_late or not isinstance(child, LATE)):
            yield from walk_syntax(child, with_types=with_types, with_late=with_late)
