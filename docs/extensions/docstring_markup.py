"""Docstrings for the site: Markdown code blocks, and links from names in backticks.

In: docstrings in Google style, with the little Markdown that editors and notebooks also show. Out: the same
in reStructuredText, before `sphinx.ext.napoleon` reads the sections.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import getdoc, isclass
from typing import Any, Final

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from penstock.settings.commands import COMMANDS
from penstock.settings.setting import Settings

_FENCE: Final = re.compile(r"^(?P<indent> *)```(?P<language>\w*)$")
_BEFORE_NAPOLEON: Final = 400  # the order of listeners; napoleon has 500
_AFTER_NAPOLEON: Final = 600
_SECTION: Final = "Attributes:"
_ENTRY: Final = re.compile(r"    (?P<name>\w+): ")
_ATTRIBUTE: Final = re.compile(r"\.\. attribute:: (?P<name>\w+)")
_TYPE: Final = "   :type: "
_QUALIFIER: Final = re.compile(r"(?<![\w.~])(?:[a-z_]\w*\.)+(?=[A-Z])")  # modules, which are not shown
# Names that read as names of Penstock, not as arguments or values of them.
_NAME: Final = re.compile(r"(?:penstock\.|ps\.)?(?P<name>(?:[a-z]+\.)*[A-Z]\w+(?:\.\w+)?)(?:\(\))?")
_CALL: Final = re.compile(r"(?:penstock|ps)\.(?P<name>\w+)(?:\(.*\))?")
_CHOICES: Final = re.compile(r"penstock\..*\.(?P<name>\w+)Choices")


def load_public_names() -> Iterator[str]:
    """Import every public name, and yield it without the name of the package.

    The backend of Keras is NumPy meanwhile, which loads without TensorFlow; docstrings do not depend on it.
    Kernels of notebooks do not inherit that.
    """
    chosen = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = "numpy"
    try:
        import penstock  # noqa: PLC0415

        for name in penstock.__all__:
            getattr(penstock, name)
            yield name
        for module in (penstock.fields, penstock.options, penstock.transform):
            for name in module.__all__:
                getattr(module, name)
                yield f"{module.__name__.removeprefix('penstock.')}.{name}"
        for name, value in vars(penstock.errors).items():
            if isclass(value) and issubclass(value, penstock.errors.PenstockError):
                yield f"errors.{name}"
    finally:
        if chosen is None:
            del os.environ["KERAS_BACKEND"]
        else:
            os.environ["KERAS_BACKEND"] = chosen


def turn_fences(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with code blocks in reStructuredText."""
    turned, inside = [], None
    for line in lines:
        match = _FENCE.match(line)
        if match and inside is None:
            inside = match["indent"]
            turned += [f"{inside}.. code-block:: {match['language'] or 'text'}", ""]
        elif match:
            inside = None
            turned.append("")
        else:
            turned.append(line if inside is None or not line else f"   {line}")
    return turned


class NameRole:
    """The role of text in single backticks: code, and a link if it is a public name."""

    def __init__(self, names: list[str]) -> None:
        counts = Counter(name.rpartition(".")[2] for name in names)
        self._targets = {name: f"penstock.{name}" for name in names}
        # `Image` is a field and a transform: only the longer name is a link.
        short = {name.rpartition(".")[2]: f"penstock.{name}" for name in names}
        self._targets |= {name: target for name, target in short.items() if counts[name] == 1}

    def __call__(
        self, _role: str, _rawtext: str, text: str, _line: int, inliner: Inliner, *_: object
    ) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the nodes of the text."""
        text = text.replace("\x00", "\\")  # as docutils writes a backslash
        literal = nodes.literal(text, text)
        match = _NAME.fullmatch(text) or _CALL.fullmatch(text)
        target = self._targets.get(match["name"]) if match else None
        if target is None:
            return [literal], []
        reference = addnodes.pending_xref(
            text, literal, refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=True
        )
        reference["refdoc"] = inliner.document.settings.env.docname
        return [reference], []


def _hide_signature(app: Sphinx, kind: str, name: str, *_: object) -> tuple[str, None] | None:
    """Hide how an object is made that only Penstock makes, and repetitions of documented options."""
    hides = kind in ("class", "exception") and name.startswith(app.config.hidden_signatures)
    return ("", None) if hides else None


def _name_options(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, _content: nodes.TextElement
) -> nodes.Element | None:
    """Link the type of `**options`, a dict that only type checkers know, to the class of these options."""
    match = _CHOICES.fullmatch(node["reftarget"])
    if match is None:
        return None
    name = f"{match['name']}Options"
    target = f"penstock.options.{name}"
    return env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, "class", target, node, nodes.literal(name, name)
    )


def read_attributes(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines of each attribute in the section `Attributes` of a docstring, by its name."""
    found: dict[str, list[str]] = {}
    inside, name = False, ""
    for line in lines:
        if line and not line.startswith(" "):
            inside = line == _SECTION
        elif inside and (match := _ENTRY.match(line)):
            name = match["name"]
            found[name] = [line]
        elif inside and name and line:
            found[name].append(line)
    return found


def add_inherited(value: type, lines: list[str]) -> list[str]:
    """Return the docstring of a dataclass with the attributes that its bases describe."""
    own = read_attributes(lines)
    inherited: dict[str, list[str]] = {}
    for base in value.__mro__[1:]:
        inherited = read_attributes((getdoc(base) or "").splitlines()) | inherited
    missing = [each.name for each in fields(value) if each.name not in own and each.name in inherited]
    added = [line for name in missing for line in inherited[name]]
    if not added:
        return lines
    if not own:
        return [*lines, "", _SECTION, *added, ""]
    end = lines.index(own[list(own)[-1]][-1]) + 1
    return [*lines[:end], *added, *lines[end:]]


def add_flags(group: type[Settings], lines: list[str]) -> list[str]:
    """Return the docstring of a class of settings with the flags of commands, and earlier names."""
    taken = [each for command in COMMANDS.values() for each in command.settings]
    has_flags = any(issubclass(each, group) for each in taken)
    described = read_attributes(lines)
    for each in group.list_settings():
        more = f" On the command line ``{each.flag}``." if each.flag and has_flags else ""
        names = [f"``{name}``" for name in each.earlier]
        more += f" Also {' and '.join(names)}, as in earlier versions." if names else ""
        if more:
            at = lines.index(described[each.name][-1])
            lines = [*lines[:at], lines[at] + more, *lines[at + 1 :]]
    return lines


def list_defaults(value: object) -> dict[str, str]:
    """Return the defaults of a class of options as code, by the name of the attribute."""
    if isclass(value) and issubclass(value, Settings):
        return {each.name: repr(each.default) for each in value.list_settings()}
    if not isclass(value) or not is_dataclass(value):
        return {}
    defaults = {each.name: each.default for each in fields(value) if each.default is not MISSING}
    made = {each.name: each.default_factory for each in fields(value) if each.default_factory is not MISSING}
    return {
        name: repr(each) for name, each in (defaults | {name: make() for name, make in made.items()}).items()
    }


def show_attributes(lines: list[str], defaults: Mapping[str, str]) -> list[str]:
    """Return the lines of a docstring with types and defaults of attributes beside their names.

    Args:
        lines: The lines, in which each attribute is a directive that ends with a field for its type.
        defaults: Defaults by attribute, as code.
    """
    shown: list[str] = []
    at = 0
    for line in lines:
        if match := _ATTRIBUTE.fullmatch(line):
            shown.append(line)
            at = len(shown)
            if match["name"] in defaults:
                shown.append(f"   :value: {defaults[match['name']]}")
        elif line.startswith(_TYPE) and at:
            shown.insert(at, _TYPE + _QUALIFIER.sub(r"~\g<0>", line.removeprefix(_TYPE)))
        else:
            shown.append(line)
    return shown


def _prepare(_app: Sphinx, kind: str, _name: str, value: object, _options: object, lines: list[str]) -> None:
    if kind == "class" and isclass(value) and is_dataclass(value):
        lines[:] = add_inherited(value, lines)
    if kind == "class" and isclass(value) and issubclass(value, Settings):
        lines[:] = add_flags(value, lines)
    lines[:] = turn_fences(lines)


def _show_attributes(
    _app: Sphinx, kind: str, _name: str, value: object, _options: object, lines: list[str]
) -> None:
    if kind == "class":
        lines[:] = show_attributes(lines, list_defaults(value))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    names = list(load_public_names())
    app.add_role("name", NameRole(names))
    app.connect("autodoc-process-docstring", _prepare, priority=_BEFORE_NAPOLEON)
    app.connect("autodoc-process-docstring", _show_attributes, priority=_AFTER_NAPOLEON)
    app.add_config_value("hidden_signatures", (), "env", tuple)
    app.connect("autodoc-process-signature", _hide_signature)
    app.connect("missing-reference", _name_options)
    return {"parallel_read_safe": True}
