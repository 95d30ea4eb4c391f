"""How settings and runs are declared: lines, defaults, accesses by key, parameters, names, mappings.

Each rule is in the docstring of its function. It reads the source alone, so that it works on any commit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from source_tree import Module

MOST_PARAMETERS = 7
_NAMED_MODULES = re.compile(
    r"settings/.*|options|\w+/(?:\w+/)?options|foundation/option_checks|shards/request"
    r"|training/(?:run_config|run_facts)"
    r"|cli/(?:option_groups|option_values|parser|completion|legacy|\w+_arguments|raw_data|command)"
)
_NAMED_CLASSES = re.compile(r"\w+(Options|Choices|Call|Settings)")
_TABLE_FUNCTIONS = re.compile(
    r"(read|write)_run_config|check_facts|read_(count|choices|seconds|table)|_is_table"
)
_TABLES = frozenset(
    (
        *("source", "data", "target", "declared", "convert", "fields", "groups", "ensemble", "folds"),
        *("model", "train", "facts", "schema", "plan"),
    )
)
_FACTS = frozenset(
    (
        *("targets", "logits", "choices", "seconds", "validation", "parts", "numbers", "backend"),
        *("batch_size", "revision", "class_weights", "scores", "records", "mean", "deviation"),
        *("trials", "left_out", "reasons"),
    )
)
_TABLE_NAMES = re.compile(r"(\w+\.)*(settings|config|tables|known|facts|stored|begun|info|content)")
_OPENED = re.compile(r"run|opened|trained|member|each_run")
_OWN_MODULES = ("training/run_config", "training/run_facts", "training/run_writer")
_FOLDERS_OF_RUNS = ("training", "tuning", "distributed", "score", "export", "report", "view", "jobs", "cli")


def count_declared_lines(modules: Iterable[Module]) -> int:
    """Count the lines of options, flags, checks, run tables and requests, with blank lines and docstrings.

    These are all lines of the modules that hold nothing else: `settings/`, every `options.py`,
    `option_checks`, the request of a conversion, the typed content of `run.yaml`, and the modules of `cli/`
    that declare or parse flags. In other modules: classes named …Options, …Choices, …Call and …Settings; the
    functions of `cli/` that add arguments to a parser; constants of `cli/` that hold nothing but strings; the
    functions and constants of `run_files` that read and check tables; and overloads of public functions,
    which repeat their keywords.
    """
    total = 0
    for module in modules:
        if _NAMED_MODULES.fullmatch(module.path):
            total += len(module.source.splitlines())
            continue
        for node in ast.walk(module.tree):
            if _is_declaration(module, node):
                total += len((ast.get_source_segment(module.source, node) or "").splitlines())
    return total


def _is_declaration(module: Module, node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return _NAMED_CLASSES.fullmatch(node.name) is not None
    if isinstance(node, ast.FunctionDef):
        if module.path.startswith("cli/") and any(
            isinstance(each, ast.Attribute) and each.attr == "add_argument" for each in ast.walk(node)
        ):
            return True
        is_overload = "overload" in map(ast.unparse, node.decorator_list)
        is_of_tables = module.path == "training/run_files" and _TABLE_FUNCTIONS.fullmatch(node.name)
        return bool(is_of_tables) or (is_overload and module.path.startswith("jobs/"))
    is_constant = isinstance(node, ast.AnnAssign | ast.Assign) and node in module.tree.body
    if not is_constant or not module.path.startswith("cli/") or node.value is None:  # type: ignore[attr-defined]
        return False
    leaves = [
        each
        for each in ast.walk(node.value)  # type: ignore[attr-defined]
        if not isinstance(each, ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.expr_context)
    ]
    strings = [each for each in leaves if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return len(strings) > 1 and len(strings) == len(leaves)


def count_defaults(modules: Iterable[Module]) -> int:
    """Count the texts "(default: …)" that are written by hand: in strings, docstrings left out."""
    found = 0
    for module in modules:
        documents = {id(each) for each in _list_docstrings(module.tree)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                found += len(re.findall(r"\(default: \S", node.value))
    return found


def _list_docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement.value


def count_accesses(modules: Iterable[Module]) -> int:
    """Count the accesses to the content of `run.yaml` by string, and the modules are those that handle runs.

    They are `X["name"]`, `X.get("name")`, `"name" in X`, and calls such as `read_table(X, "name")`, where the
    name is a table of the file or an entry of `facts`, and X is called settings, config, tables, known,
    facts, stored, begun, info or content, is an attribute of that name, or is the result of `getattr(run,
    "settings", {})` or `read_run_config(…)`. Reading and writing count. Checkpoints, whose content has some
    of the same names, do not.
    """
    return sum(
        _is_access(node)
        for module in modules
        if module.path.startswith(_FOLDERS_OF_RUNS) and module.path not in _OWN_MODULES
        for node in ast.walk(module.tree)
    )


def _is_access(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_key(node.slice) and _is_content(node.value)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        return _is_key(node.left) and _is_content(node.comparators[0])
    if not isinstance(node, ast.Call) or not node.args:
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop"):
        return _is_key(node.args[0]) and _is_content(node.func.value)
    is_reader = isinstance(node.func, ast.Name) and re.fullmatch(
        r"_?(read|open)?_?(table|count)", node.func.id
    )
    return bool(is_reader) and any(map(_is_key, node.args[1:2])) and _is_content(node.args[0])


def _is_key(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in _TABLES | _FACTS


def _is_content(node: ast.AST) -> bool:
    text = ast.unparse(node)
    if isinstance(node, ast.BoolOp):
        return _is_content(node.values[0])
    if isinstance(node, ast.Subscript | ast.Call) and _is_access(node):
        return True
    made = r"getattr\(\w+, 'settings', .*\)|read_run_config\(.*\)|_as_table\(.*\)"
    return bool(_TABLE_NAMES.fullmatch(text) or re.fullmatch(made, text))


def count_getattr(modules: Iterable[Module]) -> int:
    """Count the calls `getattr(X, …)` where X is named as runs are: run, opened, trained or member."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and _OPENED.fullmatch(ast.unparse(node.args[0])) is not None
        for module in modules
        for node in ast.walk(module.tree)
    )


def count_wide_functions(modules: Iterable[Module]) -> int:
    """Count the functions with more than seven parameters, `self`, `cls` and overloads left out."""
    return sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _count_parameters(node) > MOST_PARAMETERS
        for module in modules
        for node in ast.walk(module.tree)
    )


def _count_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if any(ast.unparse(each) == "overload" for each in node.decorator_list):
        return 0
    given = node.args
    listed = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return sum(each.arg not in ("self", "cls") for each in listed)


def list_thread_names(modules: Iterable[Module]) -> list[str]:
    """List the names of options that say how wide the work of one job runs.

    These are the fields of classes of options with "thread" in their name, or named workers, and flags that
    are written as strings: --threads, --num-threads, and --workers where it stands for `workers`. A flag
    counts with its keyword as one name if it is `num_` and the flag, as in num_threads and --threads.
    """
    found: set[str] = set()
    for module in modules:
        for node in ast.walk(module.tree):
            if (
                isinstance(node, ast.ClassDef)
                and any(
                    re.search(r"Settings|Options|TypedDict|dataclass", ast.unparse(each))
                    for each in (*node.bases, *node.decorator_list)
                )
                and (module.path.startswith("settings/") or _NAMED_CLASSES.fullmatch(node.name))
            ):
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        name = each.target.id
                        found |= {name} if "thread" in name or name == "workers" else set()
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                flags = {each.value for each in node.args if isinstance(each, ast.Constant)}
                found |= {each for each in flags if each in ("--threads", "--num-threads")}
                if "--workers" in flags and "processes" not in ast.unparse(node):
                    found.add("--workers")
    if "num_threads" in found:
        found.discard("--threads")
    return sorted(found)


def count_any_mappings(modules: Iterable[Module]) -> int:
    """Count `dict[str, Any]` and `Mapping[str, Any]` in jobs, training and cli.

    So that a move is no gain, tuning and distributed count as well, which were parts of the first two.
    """
    folders = ("jobs/", "training/", "cli/", "tuning/", "distributed/")
    return sum(
        len(re.findall(r"\b(?:dict|Mapping)\[str, Any\]", module.source))
        for module in modules
        if module.path.startswith(folders)
    )
