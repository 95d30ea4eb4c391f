"""Names of fields where keys meet."""

import pytest

from penstock.schema.inference import name_entries
from penstock.schema.survey import ListSurvey


@pytest.mark.parametrize(
    ("features", "lists", "named"),
    [
        (["a", "b"], ["c"], [("a", "a", False), ("b", "b", False), ("c", "c", True)]),
        (["a"], ["a"], [("context/a", "a", False), ("a", "a", True)]),
        (
            ["a", "context/a"],
            ["a"],
            [("context/context/a", "a", False), ("context/a", "context/a", False), ("a", "a", True)],
        ),
        (
            ["a", "context/a"],
            ["a", "context/a"],
            [
                ("context/context/a", "a", False),
                ("context/context/context/a", "context/a", False),
                ("a", "a", True),
                ("context/a", "context/a", True),
            ],
        ),
        ([""], [""], [("context/", "", False), ("", "", True)]),
    ],
)
def test_names_of_keys_that_meet_are_distinct(survey, features, lists, named):
    found = name_entries(
        survey({key: {"int64": 1} for key in features}, {key: {"records": 1, "int64": 1} for key in lists})
    )
    assert [(name, entry.key, isinstance(entry, ListSurvey)) for name, entry in found.items()] == named
