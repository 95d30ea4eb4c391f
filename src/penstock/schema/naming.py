"""Which name each feature and each feature list gets.

In: a survey. Out: the features and lists by the names of their fields.
"""

from __future__ import annotations

from penstock.schema.survey import FieldSurvey, ListSurvey, Survey


def name_entries(survey: Survey) -> dict[str, FieldSurvey | ListSurvey]:
    """Return what was surveyed by field name: the key, or `context/KEY` where a list has the same key.

    Where that name is a key as well, `context/` is put before it again until the name is free.
    """
    taken = {*survey.fields, *survey.lists}
    entries: dict[str, FieldSurvey | ListSurvey] = {}
    for key, feature in survey.fields.items():
        name = key
        if key in survey.lists:
            while name in taken:
                name = f"context/{name}"
            taken.add(name)
        entries[name] = feature
    return {**entries, **survey.lists}
