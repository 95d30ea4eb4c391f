"""A pipeline's options as a mapping: what a YAML file holds, or a program says.

In: a mapping with `fields` and `groups`. Out: `Settings`, checked in form; fitting says what fits a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.foundation.wording import join_place
from penstock.transform.form import load_list, load_text, need_object


class Settings(NamedTuple):
    """What was chosen.

    Attributes:
        fields: By field name: options of its transform with their `kind`, the name of a kind, or None.
        groups: By the name of the new input: the inputs that it is made of.
    """

    fields: Mapping[str, object]
    groups: Mapping[str, tuple[str, ...]]


def load_settings(form: object) -> Settings:
    """Return the settings that a form holds.

    Raises:
        SchemaError: The form is not such a one; `field` and the message give the place.
    """
    root = need_object("$", {} if form is None else form, ("fields", "groups"))
    fields = need_object("$.fields", root.get("fields") or {})
    groups = need_object("$.groups", root.get("groups") or {})
    read_names = load_list(load_text)
    return Settings(
        fields, {name: read_names(join_place("$.groups", name), members) for name, members in groups.items()}
    )
