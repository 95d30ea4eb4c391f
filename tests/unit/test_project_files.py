"""The files beside the code: pre-commit, editors, extras, documents, and where unit tests are."""

import configparser
import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
BACKENDS = ("tensorflow", "tensorflow-cpu", "jax", "torch")
# Tests that are named after what a batch, a feed or the core does, rather than after a module.
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
DOCUMENTS = sorted([*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *(ROOT / "docs").rglob("*.md")])
README_WORDS = 900  # what a person reads in the five minutes in which they decide
OWN_NAMES = ("batch/", "bridge/", "decode/", "foundation/test_feed", "native/", "wire/")


def test_pre_commit_runs_what_make_check_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    check = re.search(r"^check: ([a-z ]+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [hook["entry"] for hook in hooks] == [f"make {target}" for target in check[1].split()]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert {stage for hook in hooks for stage in hook["stages"]} == set(config["default_install_hook_types"])


def test_editors_have_the_line_length_of_ruff():
    config = configparser.ConfigParser()
    config.read_string("[editorconfig]\n" + (ROOT / ".editorconfig").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert config["*.py"]["max_line_length"] == str(project["tool"]["ruff"]["line-length"])
    assert config["Makefile"]["indent_style"] == "tab"


def list_requirements(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return project["project"]["optional-dependencies"][extra]


def test_extra_train_names_keras_and_no_backend():
    packages = {re.match(r"[a-zA-Z-]+", each)[0] for each in list_requirements("train")}
    assert "keras" in packages
    assert packages.isdisjoint(BACKENDS)


@pytest.mark.parametrize("extra", BACKENDS)
def test_extra_of_a_backend_names_that_alone(extra):
    (requirement,) = list_requirements(extra)
    assert re.match(r"[a-z-]+", requirement)[0] == extra


@pytest.mark.parametrize("extra", ["test", "bench"])
def test_extra_that_trains_names_a_backend(extra):
    own = [each for each in list_requirements(extra) if each.startswith("penstock[")]
    assert any({"train", "tensorflow-cpu"} <= set(re.findall(r"[a-z-]+", each)) for each in own)


def test_makefile_installs_keras_with_a_backend_and_the_viewer():
    assert "'.[train,tensorflow-cpu,view]'" in (ROOT / "Makefile").read_text()


def test_readme_is_read_in_five_minutes():
    num_words = len((ROOT / "README.md").read_text().split())
    assert num_words <= README_WORDS, f"README.md has {num_words} words: move something to docs/"


def list_anchors(document):
    """Return the anchors of the headings of a document, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def list_broken_links(document):
    """Return the links of a document to files and headings of the project that do not exist."""
    broken = []
    for link in LINK.findall(document.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        path = document.parent / name if name else document
        if not path.exists() or (anchor and anchor not in list_anchors(path)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_of_document_lead_to_files_and_headings(document):
    assert list_broken_links(document) == []


def test_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# Other\n## What is `missing`?\n")
    links = (
        "other.md",
        "other.md#what-is-missing",
        "#a-page",
        "https://keras.io",
        "none.md",
        "other.md#none",
    )
    document = tmp_path / "page.md"
    document.write_text("# A page\n" + "".join(f"[link]({link})\n" for link in links))
    assert list_broken_links(document) == ["none.md", "other.md#none"]


def list_stray_tests(tests, source):
    """Return the unit tests whose names begin with no module of the same folder of the package."""
    stray = []
    for path in sorted(tests.rglob("test_*.py")):
        inside = path.relative_to(tests).as_posix()
        if "/" in inside and not inside.startswith(OWN_NAMES):
            modules = {module.stem for module in (source / inside).parent.glob("*.py")} - {"__init__"}
            name = path.stem.removeprefix("test_")
            if not any(name == module or name.startswith(f"{module}_") for module in modules):
                stray.append(inside)
    return stray


def test_unit_tests_mirror_the_package():
    assert list_stray_tests(ROOT / "tests" / "unit", ROOT / "src" / "penstock") == []


def test_unit_test_without_a_module_of_its_name_is_found(tmp_path):
    tests, source = tmp_path / "tests", tmp_path / "penstock"
    for name in ("read/test_shard.py", "read/test_shard_cut.py", "read/test_sharding.py", "test_any.py"):
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).touch()
    (source / "read").mkdir(parents=True)
    (source / "read" / "shard.py").touch()
    assert list_stray_tests(tests, source) == ["read/test_sharding.py"]
