"""The documentation site: it builds without warnings, has every public name, and loads nothing from afar."""

import dataclasses
import html.parser
import inspect
import json
import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_nb")
pytest.importorskip("keras")

import penstock
from built_site import ROOT, build_site, read_inventory, share_site
from penstock.dataset import Split
from penstock.score.evaluation import Evaluation
from penstock.settings.commands import COMMANDS
from penstock.settings.conversion import ConvertOptions
from penstock.settings.loading import LoadOptions

sys.path.insert(0, str(ROOT / "docs" / "extensions"))
import docstring_markup
import repository_links

# Methods that stages of Penstock call on each other.
INTERNAL = {
    "penstock.Pipeline": {"begin", "dictionaries", "measure", "prepare", "prepare_to_keep", "prepares"},
    "penstock.dataset.Split": {"as_source"},
}
CLASSES = {
    **{f"penstock.{name}": getattr(penstock, name) for name in penstock.__all__ if name[0].isupper()},
    "penstock.dataset.Split": Split,
    "penstock.score.evaluation.Evaluation": Evaluation,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return share_site(tmp_path_factory)


@pytest.fixture(scope="module")
def inventory(site):
    return read_inventory(site)


class Page(html.parser.HTMLParser):
    """What a page loads, what it links to, and the ids in it."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.links, self.ids = [], [], set()
        self.feed(text)
        self.loaded += list_loaded_by_style("".join(re.findall(r"(?s)<style[^>]*>(.*?)</style>", text)))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a":
            self.links.append(found.get("href") or "")
        elif tag == "link" and not {"next", "prev", "search", "index"} & set(found.get("rel", "").split()):
            self.loaded.append(found.get("href") or "")
        elif tag not in ("a", "link"):
            self.loaded += [found[name] for name in ("src", "srcset", "data", "poster") if found.get(name)]
        self.loaded += list_loaded_by_style(found.get("style") or "")


def list_loaded_by_style(text):
    """Return the addresses that a style sheet loads."""
    text = re.sub(r"(?s)/\*.*?\*/", "", text)
    return re.findall(r"""(?:url\(|@import\s+)['"]?([^'")\s;]+)""", text)


def list_loaded_by_script(text):
    """Return the addresses of other machines that a script may load."""
    return re.findall(
        r"""(?:fetch|import|importScripts|\.open)\s*\(?[^()\n]{0,20}['"`](https?://[^'"`]+)""", text
    )


def is_remote(address):
    return address.startswith("//") or urlsplit(address).scheme in ("http", "https", "ftp")


def test_site_builds_without_a_warning_and_without_tensorflow(site):
    assert (site / "index.html").is_file()
    assert (site / "search.html").is_file()


def test_make_docs_is_as_strict_as_this_build():
    (line,) = re.findall(r"^\t.*-m sphinx (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"--fresh-env", "--fail-on-warning"} <= set(line.split())


def test_link_to_a_page_that_is_missing_fails_the_build(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text("# Page\n\n[other](other.md)\n")
    done = build_site(tmp_path / "out", source)
    assert done.returncode == 1
    assert "other.md" in done.stderr


@pytest.mark.parametrize("module", ["", "fields", "options", "transform", "errors"])
def test_every_public_name_is_in_the_reference(inventory, module):
    owner = getattr(penstock, module) if module else penstock
    prefix = f"penstock.{module}".rstrip(".")
    names = getattr(owner, "__all__", None) or [
        name for name, value in vars(owner).items() if inspect.isclass(value) and name.endswith("Error")
    ]
    assert len(names) > 5
    assert [name for name in names if f"{prefix}.{name}" not in inventory] == []


@pytest.mark.parametrize("module", ["options", "transform", "fields"])
def test_every_option_is_in_the_reference_with_its_default(inventory, site, module):
    owner = getattr(penstock, module)
    for name in owner.__all__:
        made = getattr(owner, name)
        if not dataclasses.is_dataclass(made):
            continue
        options = [each.name for each in dataclasses.fields(made) if not each.name.startswith("_")]
        missing = [each for each in options if f"penstock.{module}.{name}.{each}" not in inventory]
        assert missing == [], name
    text = re.sub(r"<[^>]+>", "", (site / "reference" / "options.html").read_text())
    assert re.search(r"shard_bytes\s*:\s*int\s*=\s*128000000", text)


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_is_in_the_reference(inventory, name):
    public = {each for each in dir(CLASSES[name]) if not each.startswith("_")} - INTERNAL.get(name, set())
    inherited = {
        each
        for base in CLASSES[name].__mro__
        if base.__module__.startswith("collections")
        for each in vars(base)
    }
    own = {each for each in public if each not in inherited or each in vars(CLASSES[name])}
    assert [each for each in sorted(own) if f"{name}.{each}" not in inventory] == []


def test_reference_has_no_private_name(inventory):
    names = [name for name, (kind, _) in inventory.items() if kind.startswith("py:")]
    assert len(names) > 400
    assert [name for name in names if any(part.startswith("_") for part in name.split("."))] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_of_a_command_is_in_the_reference(inventory, command):
    flags = COMMANDS[command].list_flags()
    assert "--json" in flags
    assert [flag for flag in flags if f"penstock-{command}.{flag}" not in inventory] == []


def test_pages_load_nothing_from_other_machines(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    loaded = {path: Page(path.read_text()).loaded for path in pages}
    loaded |= {path: list_loaded_by_style(path.read_text()) for path in site.rglob("*.css")}
    loaded |= {path: list_loaded_by_script(path.read_text()) for path in site.rglob("*.js")}
    assert sum(map(len, loaded.values())) > 500
    assert {
        path: remote for path, found in loaded.items() if (remote := list(filter(is_remote, found)))
    } == {}


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<link rel="preload" as="font" href="https://example.org/a.woff2">',
        '<img src="http://example.org/a.png">',
        '<p style="background: url(https://example.org/a.png)">',
        "<style>@import 'https://example.org/a.css';</style>",
    ],
)
def test_resource_of_another_machine_is_found(text):
    assert any(is_remote(address) for address in Page(text).loaded)


def test_hyperlink_to_another_machine_is_no_resource():
    page = Page('<a href="https://example.org">there</a><link rel="next" href="https://example.org">')
    assert page.loaded == []


def test_script_that_loads_from_another_machine_is_found():
    assert list_loaded_by_script('fetch("https://example.org/a.json")') == ["https://example.org/a.json"]


def test_links_and_pictures_inside_the_site_exist(site):
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for address in (*page.links, *page.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            aim = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            anchor = unquote(parts.fragment)
            if not aim.is_file() or (anchor and aim in pages and anchor not in pages[aim].ids):
                broken.append((path.relative_to(site).as_posix(), address))
    assert broken == []


def test_navigation_has_the_four_kinds_and_every_page(site):
    text = (site / "index.html").read_text()
    captions = re.findall(r'<span class="caption-text">([^<]+)</span>', text)
    assert captions[:4] == ["Get started", "How-to guides", "Reference", "Explanation"]
    for path in (ROOT / "docs").rglob("*.md"):
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).is_file()


def test_examples_page_has_every_script_and_pages_link_to_it(site):
    ids = Page((site / "examples.html").read_text()).ids
    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert scripts
    assert [path.name for path in scripts if repository_links.name_anchor(path.name) not in ids] == []
    links = Page((site / "workflows" / "arrays.html").read_text()).links
    assert "../examples.html#arrays-py" in links


def test_search_index_leads_from_shuffle_to_the_page_on_loading(site):
    text = (site / "searchindex.js").read_text()
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    found = [index["docnames"][each] for kind in ("terms", "titleterms") for each in index[kind]["shuffl"]]
    assert {"loading", "workflows/batches"} <= set(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [it](../examples/arrays.py)", "see [it](./examples.md#arrays-py)"),
        ("[a](../CHANGELOG.md#unreleased)", "[a](./project/changelog.md#unreleased)"),
        (
            "[a](design) and [b](design/0001-two-phases.md)",
            "[a](./design/README.md) and [b](design/0001-two-phases.md)",
        ),
        ("[a](https://example.org/examples)", "[a](https://example.org/examples)"),
    ],
)
def test_link_out_of_docs_leads_to_the_page_that_shows_the_file(text, expected):
    assert repository_links.replace_links(text, ROOT / "docs") == expected


def test_code_block_of_a_docstring_becomes_a_directive():
    lines = ["Do it.", "", "    ```python", "    run()", "", "    ```", "Done."]
    assert docstring_markup.turn_fences(lines) == [
        *("Do it.", "", "    .. code-block:: python", "", "       run()", "", "", "Done."),
    ]


def test_attributes_of_base_classes_are_added_to_a_class():
    lines = inspect.getdoc(penstock.fields.Category).splitlines()
    attributes = docstring_markup.read_attributes(
        docstring_markup.add_inherited(penstock.fields.Category, lines)
    )
    assert list(attributes) == ["dtype", "values", "unlabelled", "role", "default", "optional", "key"]
    assert docstring_markup.list_defaults(penstock.fields.Category)["role"] == "'input'"


def test_options_have_the_flags_of_the_commands_that_take_them():
    convert, load = (
        docstring_markup.add_flags(group, inspect.getdoc(group).splitlines())
        for group in (ConvertOptions, LoadOptions)
    )
    threads = " ".join(docstring_markup.read_attributes(convert)["num_threads"])
    assert threads.endswith(
        "On the command line ``--threads``. Also ``workers`` and ``--workers``, as in earlier versions."
    )
    assert "--" not in "".join(load)
    assert docstring_markup.list_defaults(LoadOptions)["batch_size"] == "32"
