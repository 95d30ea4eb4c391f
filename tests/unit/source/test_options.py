"""Options for text files are checked when they are made."""

import pytest

from penstock.errors import OptionError
from penstock.source.options import SourceOptions
from raising import raises_with


def test_usual_options():
    options = SourceOptions()
    assert (options.delimiter, options.encoding, options.missing, options.short_rows) == (
        None,
        "utf-8",
        ("",),
        "raise",
    )


def test_options_are_normalised():
    options = SourceOptions(encoding="Latin-1", missing=["", "NA"])
    assert (options.encoding, options.missing) == ("iso8859-1", ("", "NA"))


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"delimiter": ""}, "delimiter ASCII"),
        ({"delimiter": ";;"}, "';;'"),
        ({"delimiter": '"'}, "delimiter '\"'"),
        ({"delimiter": "\n"}, "delimiter '\\n'"),
        ({"delimiter": "§"}, "'§'"),
        ({"delimiter": b","}, "b','"),
        ({"encoding": "utf-9"}, "encoding text 'utf-9'"),
        ({"encoding": "base64"}, "'base64'"),
        ({"encoding": None}, "None"),
        ({"missing": "NA"}, "missing 'NA'"),
        ({"missing": (None,)}, "missing (None,)"),
        ({"short_rows": "skip"}, "short_rows 'raise' 'fill' 'skip'"),
    ],
)
def test_impossible_options_are_refused(options, facts):
    with raises_with(OptionError, facts):
        SourceOptions(**options)
