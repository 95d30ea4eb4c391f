"""The structure of the package: size, folders, imports among modules, and questions of location."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from source_tree import LATE, SourceTree

MOST_FILES = 10


def count_lines(tree: SourceTree) -> int:
    """Count the lines of all modules, with blank lines, comments and docstrings."""
    return sum(len(module.source.splitlines()) for module in tree.modules.values())


def count_files(tree: SourceTree) -> Counter[str]:
    """Count the modules of each folder, `__init__` among them, without the folders inside."""
    return Counter(module.path.rpartition("/")[0] for module in tree.modules.values())


def count_most_files(tree: SourceTree, folder: str) -> int:
    """Return the number of modules in the largest folder at or below a folder."""
    found = count_files(tree).items()
    return max((number for name, number in found if f"{name}/".startswith(f"{folder}/")), default=0)


def list_large_folders(tree: SourceTree) -> list[str]:
    """List the folders with more than ten modules, the largest first."""
    return [
        f"{name} {number}" for name, number in count_files(tree).most_common() if name and number > MOST_FILES
    ]


def find_longest_chain(tree: SourceTree) -> list[str]:
    """Return the longest chain of modules, each of which imports the next one while it is imported itself.

    Only imports outside functions count, without the imports for type checkers.
    """
    chains: dict[str, list[str]] = {"_native": []}

    def follow(module: str) -> list[str]:
        if module not in chains:
            chains[module] = []  # ends a ring; there is none, by the lint
            needed = sorted(tree.imports(module, with_types=False, with_late=False) - {module})
            chains[module] = [module, *max(map(follow, needed), key=len, default=[])]
        return chains[module]

    return max(map(follow, tree.modules), key=len)


def find_only_importers(tree: SourceTree) -> dict[str, str]:
    """Return the modules that exactly one module imports, with this module.

    Imports inside functions count, imports for type checkers do not. The package itself, which users import,
    is left out.
    """
    importers: dict[str, list[str]] = {}
    for module in tree.modules:
        for needed in tree.imports(module, with_types=False) - {module, "penstock", "_native"}:
            importers.setdefault(needed, []).append(module)
    return {needed: found[0] for needed, found in sorted(importers.items()) if len(found) == 1}


def list_location_questions(tree: SourceTree) -> list[str]:
    """List the places outside `storage/` that ask whether a path is local.

    They are calls of `is_store_path`; calls of `isinstance` with `StorePath`, alone or with other classes, or
    with `Path` alone; and uses of `is_local`, if a class of `storage/` has such a member.
    """
    inside = [module for name, module in tree.modules.items() if name.startswith("storage")]
    members = (node for module in inside for node in ast.walk(module.tree))
    has_member = any(isinstance(node, ast.FunctionDef) and node.name == "is_local" for node in members)
    return [
        f"{name}:{node.lineno}"
        for name, module in tree.modules.items()
        if not name.startswith("storage")
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Call) and _asks_location(node))
        or (has_member and isinstance(node, ast.Attribute) and node.attr == "is_local")
    ]


def _asks_location(node: ast.Call) -> bool:
    name = ast.unparse(node.func)
    if name.rpartition(".")[2] == "is_store_path":
        return True
    if name != "isinstance":
        return False
    classes = {each.strip(" ()") for each in ast.unparse(node.args[-1]).replace(",", "|").split("|")} - {""}
    return "StorePath" in classes or classes == {"Path"}


def list_folder_questions(tree: SourceTree) -> list[str]:
    """List the modules outside `storage/` that ask whether a location has folders, as a disk has."""
    return [
        name
        for name, module in tree.modules.items()
        if not name.startswith("storage")
        and any(
            isinstance(node, ast.Attribute) and node.attr == "has_folders" for node in ast.walk(module.tree)
        )
    ]


def list_late_store_imports(tree: SourceTree) -> list[str]:
    """List the imports of the object store that are inside functions, outside `storage/`.

    They are imports of the modules of `storage/` that load obstore, themselves or by an import at their top.
    """
    loading = set(_find_loading(tree, "obstore"))
    return [
        f"{name}:{node.lineno}"
        for name, module in tree.modules.items()
        if not name.startswith("storage")
        for function in ast.walk(module.tree)
        if isinstance(function, LATE)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom)
        and {tree.find_module(f"{node.module}.{each.name}") for each in node.names} & loading
    ]


def _find_loading(tree: SourceTree, package: str) -> Iterator[str]:
    """Yield the modules of `storage/` with which a package is loaded."""
    names = [name for name in tree.modules if name.startswith("storage")]

    def loads(module: str) -> bool:
        names = tree.imported_names(module, with_types=False, with_late=False)
        if any(name.partition(".")[0] == package for name in names):
            return True
        needed = tree.imports(module, with_types=False, with_late=False) - {module}
        return any(loads(each) for each in needed if each.startswith("storage"))

    yield from filter(loads, names)
