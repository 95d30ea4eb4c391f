"""Options for text files are checked when they are made."""

import pytest

from penstock.errors import OptionError
from penstock.source.options import SourceOptions


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
    ("options", "text"),
    [
        ({"delimiter": ""}, "delimiter: expected one ASCII character"),
        ({"delimiter": ";;"}, "got ';;'"),
        ({"delimiter": '"'}, "that is not a quote"),
        ({"delimiter": "\n"}, "a line end"),
        ({"delimiter": "§"}, "got '§'"),
        ({"delimiter": b","}, "got b','"),
        ({"encoding": "utf-9"}, "encoding: expected the name of a text encoding, got 'utf-9'"),
        ({"encoding": "base64"}, "got 'base64'"),
        ({"encoding": None}, "got None"),
        ({"missing": "NA"}, "missing: expected a tuple of str, got 'NA'"),
        ({"missing": (None,)}, "got (None,)"),
        ({"short_rows": "skip"}, "short_rows: expected 'raise' or 'fill', got 'skip'"),
    ],
)
def test_impossible_options_are_refused(options, text):
    with pytest.raises(OptionError) as caught:
        SourceOptions(**options)
    assert text in str(caught.value)
