"""The layering: data runs left to right, imports right to left, and heavy packages stay where they belong."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import penstock

SOURCE = Path(penstock.__file__).parent
ROOT = SOURCE.parent.parent

# In the order of the data; `dataset` is a single module.
STAGES = (
    "source",
    "plan",
    "encode",
    "shards",
    "read",
    "decode",
    "filter",
    "transform",
    "batch",
    "dataset",
    "bridge",
    "model",
    "training",
    "score",
    "export",
)
BELOW = ("errors", "foundation", "columns", "storage", "schema", "statistics", "_native")
ABOVE = ("jobs", "report", "view", "examples", "cli")
PUBLIC = ("fields", "options", "penstock")  # what users import; the first two export classes of other parts
BEHIND_THE_DISK = STAGES[STAGES.index("read") :]
RAW_DATA = ("source", "plan", "encode")
SHARDS_BEHIND_THE_DISK = {"shards.manifest", "shards.entry", "shards.index", "shards.combined_index"}
# The one exception to the direction of imports: a loader and a split load the bridge to a framework late.
LATE = {"batch.loader": "bridge", "dataset": "bridge"}

# What lies below may import, beside itself.
ALLOWED_BELOW = {
    "errors": (),
    "foundation": ("errors", "_native"),
    "columns": ("_native",),
    "_native": (),
    "storage": ("errors", "foundation", "columns", "_native"),
    "schema": ("errors", "foundation", "columns", "storage", "_native"),
    "statistics": ("errors", "foundation", "columns", "storage", "schema", "_native"),
}
# Third-party packages, by the parts of Penstock that may import them; NumPy is everywhere.
HEAVY = {
    "keras": (
        "bridge.keras",
        "bridge.keras_model",
        "model",
        "training",
        "score",
        "export",
    ),  # the first two: to_keras() alone
    "tensorflow": (
        "bridge.tensorflow",
        "bridge.tensorflow_layout",
        "bridge.graph.tensorflow",  # to_tf() and to_tf_graph()
        "export.saved_model",
        "export.served_outputs",
        "export.serve_rows",
    ),
    "onnx": ("export.onnx_graph", "export.onnx_model"),
    "onnxruntime": ("export.onnx",),
    # The tasks and engines of jobs/ use the first; to_ray() alone loads the last.
    "ray": ("jobs.ray_cluster", "jobs.train.ray_workers", "bridge.ray"),
    "grain": ("bridge.grain",),  # loaded by to_grain() alone
    "pandas": ("source", "decode.arrow"),  # the last: to_pandas() alone
    "polars": ("source",),
    # The last two: to_arrow() and to_ray() alone.
    "duckdb": {"source.duckdb"},
    "pyarrow": ("source", "plan", "encode", "shards", "jobs", "decode.arrow", "bridge.ray"),
    "PIL": ("encode", "decode", "view.picture"),
    "jinja2": ("report.page", "view.application"),
    "matplotlib": ("report.charts", "report.model_drawing"),
    "markupsafe": ("report.charts", "report.model_drawing"),  # comes with jinja2
    "IPython": ("foundation.notebook",),  # loaded in a notebook alone, where it is loaded already
    "yaml": (
        "foundation.safe_yaml",
        "plan.plan_file",
        "training.run_files",
    ),  # the first reads
    "tokenizers": ("transform.tokenizer",),
    "simplejpeg": ("decode",),
    "safetensors": ("training.tensor_file",),
    "starlette": ("view.access", "view.application"),  # loaded by `penstock view` alone
    "uvicorn": ("view.server",),
    "obstore": ("storage.object_store", "storage.store_settings"),
    "torch": ("bridge.torch",),  # loaded by to_torch() alone
    "jax": ("bridge.jax", "bridge.jax_workers"),  # to_jax(), and workers that train together, alone
}
LONGEST_FILE = 500
NO_CONCEPT = {"util", "utils", "common", "helper", "helpers", "misc", "manager"}


def module_name(path: Path) -> str:
    """Return the dotted name of a file, without `penstock.`; the package itself is "penstock"."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts) or "penstock"


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def syntax_of(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(), str(FILES[module]))


def part_of(module: str) -> str:
    """Return the folder or top-level file that a module belongs to."""
    return module.split(".", maxsplit=1)[0]


def names_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def walk_syntax(node: ast.AST, *, with_types: bool) -> Iterator[ast.AST]:
    """Yield a node and all inside it, but for what only type checkers see, if that is not wanted."""
    yield node
    for child in ast.iter_child_nodes(node):
        if with_types or not names_types_only(child):
            yield from walk_syntax(child, with_types=with_types)


def imported_names(module: str, *, with_types: bool = True) -> Iterator[str]:
    """Yield what a module imports, at its top or anywhere inside, by full names."""
    for node in walk_syntax(syntax_of(module), with_types=with_types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports(module: str, *, with_types: bool = True) -> frozenset[str]:
    """Return the modules of Penstock that a module imports."""
    found = set()
    for name in imported_names(module, with_types=with_types):
        package, _, rest = name.partition(".")
        if package != "penstock":
            continue
        while rest and rest not in FILES and part_of(rest) != "_native":
            rest = rest.rpartition(".")[0]
        found.add("_native" if part_of(rest) == "_native" else rest or "penstock")
    return frozenset(found)


@cache
def reach(module: str) -> frozenset[str]:
    """Return the modules of Penstock that are loaded with a module, itself among them."""
    seen = {module}
    ahead = [module]
    while ahead:
        current = ahead.pop()
        # Importing a module runs the __init__ of its folder, too.
        needed = imports(current) if current in FILES else frozenset()
        for other in needed | {part_of(name) for name in needed if part_of(name) in FILES}:
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return frozenset(seen)


def in_stage(stage: str) -> list[str]:
    return [module for module in FILES if part_of(module) == stage]


def test_every_file_belongs_to_a_part_that_is_known():
    assert {part_of(module) for module in FILES} <= {*STAGES, *BELOW, *ABOVE, *PUBLIC}


def test_imports_are_found_by_this_test_where_they_are_known_to_be():
    assert "decode.reader" in imports("decode.split_reader")
    assert "_native" in imports("read.index")
    assert "storage.open_file" in reach("dataset")


@pytest.mark.parametrize("module", FILES)
def test_module_imports_only_what_lies_to_its_left_or_below(module):
    part = part_of(module)
    allowed = {part}
    if part in ALLOWED_BELOW:
        allowed |= set(ALLOWED_BELOW[part])
    elif part in STAGES:
        allowed |= {*BELOW, *STAGES[: STAGES.index(part)], LATE.get(module, part)}
    elif part == "examples":
        allowed |= {"penstock"}  # the public API, as users have it
    elif part in ABOVE:
        allowed |= {*BELOW, *STAGES, *ABOVE[: ABOVE.index(part)]}
    elif part == "fields":
        allowed |= {"schema"}
    else:
        allowed |= {*BELOW, *STAGES, *ABOVE, "fields", "options"}
    assert {part_of(other) for other in imports(module)} <= allowed


@pytest.mark.parametrize("module", [module for stage in BEHIND_THE_DISK for module in in_stage(stage)])
def test_module_of_the_reading_half_never_reaches_raw_data(module):
    assert {part_of(other) for other in reach(module)}.isdisjoint(RAW_DATA)


@pytest.mark.parametrize("module", [module for stage in BEHIND_THE_DISK for module in in_stage(stage)])
def test_module_of_the_reading_half_imports_of_the_writers_only_the_manifest_and_the_indexes(module):
    writers = {other for other in reach(module) if part_of(other) == "shards"} - {"shards"}
    assert writers <= SHARDS_BEHIND_THE_DISK


def test_imports_have_no_rings():
    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join((*path, module))
        if module in done or module not in FILES:
            return
        for other in imports(module, with_types=False):
            if other != module:
                walk(other, (*path, module))
        done.add(module)

    done: set[str] = set()
    for module in FILES:
        walk(module, ())


@pytest.mark.parametrize("module", FILES)
def test_module_imports_third_party_packages_only_where_they_belong(module):
    packages = {name.split(".")[0] for name in imported_names(module)}
    foreign = packages - sys.stdlib_module_names - {"penstock", "numpy"}
    assert foreign <= {
        package for package, places in HEAVY.items() if part_of(module) in places or module in places
    }


def test_places_of_third_party_packages_exist():
    places = {place for places in HEAVY.values() for place in places}
    assert places <= {*FILES, *map(part_of, FILES)}


YAML_WRITERS = {"dump", "safe_dump", "SafeDumper", "ScalarNode"}


@pytest.mark.parametrize("module", [module for module in FILES if module != "foundation.safe_yaml"])
def test_yaml_is_read_by_one_module_alone(module):
    used = {
        node.attr
        for node in ast.walk(syntax_of(module))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml"
    }
    assert used <= YAML_WRITERS


CODE_LOADERS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "imp"}
CODE_RUNNERS = {"eval", "exec", "compile", "__import__"}


@pytest.mark.parametrize("module", FILES)
def test_module_runs_no_code_that_comes_from_data(module):
    assert {name.split(".")[0] for name in imported_names(module)}.isdisjoint(CODE_LOADERS)
    for node in ast.walk(syntax_of(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in CODE_RUNNERS, f"{module}:{node.lineno}"
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in {"yaml.load", "yaml.unsafe_load", "os.system"}, (
                f"{module}:{node.lineno}"
            )
        if isinstance(node, ast.keyword):
            assert node.arg not in {"allow_pickle", "shell"}, f"{module}:{node.value.lineno}"


@pytest.mark.parametrize("module", FILES)
def test_module_has_no_assert_and_has_a_docstring(module):
    # `python -O` drops assertions, and with them what they guard.
    asserted = [node.lineno for node in ast.walk(syntax_of(module)) if isinstance(node, ast.Assert)]
    assert asserted == []
    assert ast.get_docstring(syntax_of(module))


@pytest.mark.parametrize("folder", ["src", "native"])
def test_files_are_short_and_named_by_a_concept(folder):
    files = [
        path
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".pyi", ".cc", ".h"} and "build" not in path.parts
    ]
    assert files
    for path in files:
        assert len(path.read_text().splitlines()) <= LONGEST_FILE, path
        words = {word for part in path.relative_to(ROOT).with_suffix("").parts for word in part.split("_")}
        assert words.isdisjoint(NO_CONCEPT), path
