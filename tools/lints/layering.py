"""The layering: data runs left to right, imports right to left, and heavy packages stay where they belong."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from measures.structure import list_location_questions
from source_tree import SourceTree, part_of

ROOT = Path(__file__).parents[2]

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
    "codegen",
    "bridge",
    "model",
    "training",
    "score",
    "tuning",
    "export",
)
BELOW = (
    "errors",
    "foundation",
    "settings",
    "columns",
    "storage",
    "schema",
    "statistics",
    "format",
    "_native",
)
ABOVE = ("distributed", "jobs", "report", "view", "examples", "cli")
PUBLIC = ("fields", "options", "penstock")  # what users import; the first two export classes of other parts
BEHIND_THE_DISK = STAGES[STAGES.index("read") :]
CONVERSION = ("source", "plan", "encode", "shards")
# The exceptions to the direction of imports: a loader and a split load the bridge to a framework late, and so
# does the bridge to Keras the checks of a user's model. The program of a worker prepares its own job,
# and the tasks of a prediction on Ray open the model as the job does.
LATE = {
    "batch.loader": "bridge",
    "dataset": "bridge",
    "bridge.keras": "model",
    "distributed.worker": "jobs",
    "distributed.ray_model": "jobs",
}

# What lies below may import, beside itself.
ALLOWED_BELOW = {
    "errors": (),
    "foundation": ("errors", "_native"),
    "columns": ("_native",),
    "_native": (),
    "storage": ("errors", "foundation", "columns", "_native"),
    "schema": ("errors", "foundation", "columns", "storage", "_native"),
    "settings": ("errors", "foundation", "schema"),  # of the schema, how numbers and dates are written
    "statistics": ("errors", "foundation", "columns", "storage", "schema", "_native"),
    "format": ("errors", "foundation", "columns", "storage", "schema", "statistics", "_native"),
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
        "export.saved_model",
        "export.serve_rows",
    ),
    "onnx": ("export.onnx.graph", "export.onnx.model"),
    "onnxruntime": ("export.onnx_format",),
    # The tasks and engines use the first; to_ray() alone loads the last.
    "ray": ("distributed.ray_cluster", "distributed.ray_workers", "bridge.ray"),
    "grain": ("bridge.grain",),  # loaded by to_grain() alone
    "pandas": ("decode.arrow",),  # to_pandas() alone
    "openpyxl": {"source.spreadsheet"},
    "xlrd": {"source.spreadsheet"},
    "polars": ("source",),
    # The last two: to_arrow() and to_ray() alone.
    "duckdb": {"source.duckdb"},
    "pyarrow": ("source", "plan", "encode", "shards", "distributed", "jobs", "decode.arrow", "bridge.ray"),
    "PIL": ("encode", "decode", "view.cell"),
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
    "uvicorn": ("view.application",),
    "obstore": ("storage.object_store", "storage.store_settings"),
    "torch": ("bridge.torch",),  # loaded by to_torch() alone
    "jax": ("bridge.jax", "bridge.jax_workers"),  # to_jax(), and workers that train together, alone
}
LONGEST_FILE = 500
NO_CONCEPT = {"util", "utils", "common", "helper", "helpers", "misc", "manager"}


TREE = SourceTree(ROOT)
FILES = TREE.modules
imports = TREE.imports
imported_names = TREE.imported_names


def syntax_of(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return FILES[module].tree


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


def list_allowed(module: str) -> set[str]:
    """Return the parts of Penstock that a module may import."""
    part = part_of(module)
    if part in ALLOWED_BELOW:
        return {part, *ALLOWED_BELOW[part]}
    if part in STAGES:
        return {part, *BELOW, *STAGES[: STAGES.index(part)], LATE.get(module, part)}
    if part == "examples":
        return {part, "penstock"}  # the public API, as users have it
    if part in ABOVE:
        return {part, *BELOW, *STAGES, *ABOVE[: ABOVE.index(part)], LATE.get(module, part)}
    if part == "fields":
        return {part, "schema"}
    return {part, *BELOW, *STAGES, *ABOVE, "fields", "options"}


def check_parts() -> Iterator[str]:
    """Each file belongs to a part of Penstock that the tables know."""
    yield from sorted({part_of(module) for module in FILES} - {*STAGES, *BELOW, *ABOVE, *PUBLIC})


def check_direction() -> Iterator[str]:
    """A module imports only parts to its left or below."""
    for module in FILES:
        for other in sorted({part_of(each) for each in imports(module)} - list_allowed(module)):
            yield f"{module} imports {other}"


def check_reading_half() -> Iterator[str]:
    """No module of the reading half loads a module of the conversion half."""
    for module in FILES:
        found = sorted(each for each in reach(module) if part_of(each) in CONVERSION)
        if found and part_of(module) in BEHIND_THE_DISK:
            yield f"{module} loads {', '.join(found)}"


def check_rings() -> Iterator[str]:
    """Imports have no rings."""
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> Iterator[str]:
        if module in path:
            yield " → ".join((*path, module))
        elif module not in done and module in FILES:
            for other in imports(module, with_types=False) - {module}:
                yield from walk(other, (*path, module))
            done.add(module)

    for module in FILES:
        yield from walk(module, ())


def check_third_party() -> Iterator[str]:
    """A module imports only the third-party packages that its place allows."""
    for module in FILES:
        packages = {name.split(".")[0] for name in imported_names(module)}
        foreign = packages - sys.stdlib_module_names - {"penstock", "numpy"}
        for package in sorted(foreign):
            places = HEAVY.get(package, ())
            if part_of(module) not in places and module not in places:
                yield f"{module} imports {package}"


def check_places() -> Iterator[str]:
    """The places of third-party packages exist."""
    places = {place for places in HEAVY.values() for place in places}
    yield from sorted(places - {*FILES, *map(part_of, FILES)})


YAML_WRITERS = {"dump", "safe_dump", "SafeDumper", "ScalarNode"}


def check_yaml() -> Iterator[str]:
    """YAML is read by `foundation.safe_yaml` alone."""
    for module in FILES:
        for node in ast.walk(syntax_of(module)):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "yaml"
                and node.attr not in YAML_WRITERS
                and module != "foundation.safe_yaml"
            ):
                yield f"{module}:{node.lineno}: yaml.{node.attr}"


CODE_LOADERS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "imp"}
CODE_RUNNERS = {"eval", "exec", "compile", "__import__"}


def check_code_from_data() -> Iterator[str]:
    """No module runs code that comes from data."""
    for module in FILES:
        yield from (
            f"{module} imports {name}"
            for name in imported_names(module)
            if name.split(".")[0] in CODE_LOADERS
        )
        for node in ast.walk(syntax_of(module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in CODE_RUNNERS:
                    yield f"{module}:{node.lineno}: {node.func.id}"
            elif isinstance(node, ast.Attribute):
                if ast.unparse(node) in {"yaml.load", "yaml.unsafe_load", "os.system"}:
                    yield f"{module}:{node.lineno}: {ast.unparse(node)}"
            elif isinstance(node, ast.keyword) and node.arg in {"allow_pickle", "shell"}:
                yield f"{module}:{node.value.lineno}: {node.arg}"


STORE_MODULES = ("storage.object_store", "storage.stored")
LOAD_STORE = "penstock.storage.remote_file.load_store"
# What these do differs with what a storage can do: rename, lock and map (a disk), or write on a condition.
ASK_FOR_FOLDERS = {
    "distributed.ray_model",
    "jobs.check.verify",
    "jobs.export.export",
    "jobs.train.run_folder.store_run",
    "read.dataset_files",
    "read.opened_files",
    "read.remote_shards",
    "shards.staging.staging",
    "source.listing",
    "source.recognition",
}


def check_storage() -> Iterator[str]:
    """Only `storage/` asks whether a path is local, and loads what sends requests to object stores."""
    for module in FILES:
        if part_of(module) == "storage":
            continue
        yield from (f"{module} imports {other}" for other in imports(module) if other in STORE_MODULES)
        yield from (f"{module} imports {name}" for name in imported_names(module) if name == LOAD_STORE)
    yield from list_location_questions(TREE)


def check_capabilities_of_storage() -> Iterator[str]:
    """The modules that ask what a storage can do, `Location.has_folders`, are those that are listed."""
    found = {
        module
        for module in FILES
        for node in ast.walk(syntax_of(module))
        if part_of(module) != "storage" and isinstance(node, ast.Attribute) and node.attr == "has_folders"
    }
    yield from sorted(found ^ ASK_FOR_FOLDERS)


def check_asserts_and_docstrings() -> Iterator[str]:
    """A module has a docstring and no `assert`, which `python -O` drops together with what it guards."""
    for module in FILES:
        tree = syntax_of(module)
        yield from (
            f"{module}:{node.lineno}: assert" for node in ast.walk(tree) if isinstance(node, ast.Assert)
        )
        if not ast.get_docstring(tree):
            yield f"{module} has no docstring"


def check_files() -> Iterator[str]:
    """Files are short, and named by a concept."""
    for folder in ("src", "native"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in {".py", ".pyi", ".cc", ".h"} or "build" in path.parts:
                continue
            name = path.relative_to(ROOT)
            num_lines = len(path.read_text().splitlines())
            if num_lines > LONGEST_FILE:
                yield f"{name} has {num_lines} lines, at most {LONGEST_FILE}"
            words = {word for part in name.with_suffix("").parts for word in part.split("_")}
            yield from (f"{name}: {word}" for word in sorted(words & NO_CONCEPT))
