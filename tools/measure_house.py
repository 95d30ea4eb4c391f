"""Measures one or more working trees of Penstock: how settings and runs are declared, and how it is built.

    python tools/measure_house.py . ../earlier --lists --convert --train

The rules are the docstrings of the functions in `tools/measures/`. They read the source alone, by `ast`, and
so work on any commit; only `--convert` and `--train` run a job, with the Python of the tree:
`TREE/.venv/bin/python`, if there is one, else this one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from measures import calls, declarations, structure
from source_tree import Module, SourceTree

DECLARATIONS: Mapping[str, Callable[[list[Module]], int]] = {
    "lines of options, flags, checks, run tables, request": declarations.count_declared_lines,
    'hand-written "(default: …)"': declarations.count_defaults,
    "accesses to `run.yaml` by string": declarations.count_accesses,
    "`getattr` on runs": declarations.count_getattr,
    "functions with more than 7 parameters": declarations.count_wide_functions,
    "names for threads": lambda modules: len(declarations.list_thread_names(modules)),
    "`dict[str, Any]` and `Mapping[str, Any]` in jobs, training, cli": declarations.count_any_mappings,
}
STRUCTURE: Mapping[str, Callable[[SourceTree], int]] = {
    "`isinstance` of paths and the like outside `storage/`": lambda tree: len(
        structure.list_location_questions(tree)
    ),
    "late imports of the store outside `storage/`": lambda tree: len(structure.list_late_store_imports(tree)),
    "modules that ask a location for `has_folders`": lambda tree: len(structure.list_folder_questions(tree)),
    "modules": lambda tree: len(tree.modules),
    "lines of Python": structure.count_lines,
    "most flat files in `shards/`": lambda tree: structure.count_most_files(tree, "shards"),
    "most flat files in `jobs/train`": lambda tree: structure.count_most_files(tree, "jobs/train"),
    "folders with more than 10 files": lambda tree: len(structure.list_large_folders(tree)),
    "longest import chain": lambda tree: len(structure.find_longest_chain(tree)),
    "modules with one importer": lambda tree: len(structure.find_only_importers(tree)),
}
LISTS: Mapping[str, Callable[[SourceTree], list[str]]] = {
    "names for threads": lambda tree: declarations.list_thread_names(tree.modules.values()),
    "folders with more than 10 files": structure.list_large_folders,
    "longest import chain": structure.find_longest_chain,
    "questions whether a path is local": structure.list_location_questions,
    "late imports of the store": structure.list_late_store_imports,
    "modules that ask for `has_folders`": structure.list_folder_questions,
    "modules with one importer": lambda tree: [
        f"{module} ({importer})" for module, importer in structure.find_only_importers(tree).items()
    ],
}


def main() -> None:
    """Print one column for each working tree."""
    parser = argparse.ArgumentParser(description="Measure working trees of Penstock.")
    parser.add_argument("trees", nargs="*", type=Path, default=[Path()], help="working trees")
    parser.add_argument("--convert", action="store_true", help="convert a CSV as well, to count calls")
    parser.add_argument("--train", action="store_true", help="train a model as well, to count calls")
    parser.add_argument("--lists", action="store_true", help="list modules, folders and places as well")
    given = parser.parse_args()
    trees = [SourceTree(root) for root in given.trees]
    rows = [
        *(
            (name, [rule(list(tree.modules.values())) for tree in trees])
            for name, rule in DECLARATIONS.items()
        ),
        *((name, [rule(tree) for tree in trees]) for name, rule in STRUCTURE.items()),
    ]
    jobs = {"`ps.convert(csv)`": calls.CONVERSION} if given.convert else {}
    jobs |= {"`ps.train(csv)`, one epoch": calls.TRAINING} if given.train else {}
    for name, job in jobs.items():
        traced = [calls.trace_calls(root, job) for root in given.trees]
        rows.append((f"functions called by {name}", [each.num_functions for each in traced]))
        rows.append((f"calls across folders in {name}", [each.num_across for each in traced]))
    columns = [root.resolve().name for root in given.trees]
    print(f"| measure | {' | '.join(columns)} |")
    print(f"|---|{'--:|' * len(trees)}")
    for name, numbers in rows:
        print(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
    for name, rule in LISTS.items() if given.lists else ():
        print(f"\n{name}:")
        for column, tree in zip(columns, trees, strict=True):
            print(f"- {column}: {', '.join(rule(tree))}")


if __name__ == "__main__":
    main()
