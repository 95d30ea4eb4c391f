"""One declaration gives checks, keywords, tables and requests; see test_command_line for flags."""

import copy
import inspect
import pickle
from pathlib import Path
from typing import Annotated, Literal

import pytest

from penstock.errors import OptionError, SchemaError
from penstock.foundation.json_form import Document, JsonValue
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import TextFiles
from penstock.settings.keywords import takes
from penstock.settings.kinds import Count, Integer, Pairs
from penstock.settings.model import ModelOptions
from penstock.settings.setting import Settings, list_sections, setting
from penstock.settings.training import TrainOptions


class Retries(Settings, title="retries", affects_output=False):
    """How often requests are repeated."""

    attempts: Count = setting("Number of attempts. More are of little use.", default=5, earlier=("tries",))
    pause: Annotated[int, Integer(most=60)] | None = setting(
        "Seconds between them.", default=None, usual="twice as many each time"
    )

    def validate(self) -> None:
        if self.pause is not None and self.attempts == 1:
            raise self.refuse("pause", "more than one attempt")


class Fetch(Retries):
    """Options of a download."""

    kind: Literal["whole", "ranges"] = setting("What is read.", default="whole", stored="what")
    sizes: Annotated[dict[str, int], Pairs(value=Integer(least=1))] = setting("Sizes.", default={})


@takes(Fetch)
def fetch(url: str, folder: str = "here", *, options: Fetch) -> tuple[str, str, Fetch]:
    """Download.

    Args:
        url: What.
        options: How.
    """
    return url, folder, options


class Client:
    @takes(Fetch)
    def fetch(self, url: str, *, options: Fetch) -> str:
        """Download.

        Args:
            url: What.
            options: How.
        """
        return url


def test_invalid_value_is_refused_with_its_facts():
    with pytest.raises(OptionError) as caught:
        Fetch(attempts=0)
    assert (caught.value.field, caught.value.got, caught.value.expected) == (
        "attempts",
        "0",
        "an integer of at least 1",
    )
    assert caught.value.advice == "The default is 5."


def test_misspelled_choice_is_refused_with_the_nearest():
    with pytest.raises(OptionError, match="Did you mean 'ranges'"):
        Fetch(kind="range")


def test_fault_inside_a_value_names_its_path():
    with pytest.raises(OptionError, match=r"^sizes\['a'\]: expected an integer of at least 1, got "):
        Fetch(sizes={"a": 0})


def test_group_validates_values_together_for_every_verb():
    with pytest.raises(OptionError, match=r"^pause: expected more than one attempt, got 3"):
        Fetch(attempts=1, pause=3)


def test_keywords_of_a_function_equal_attributes_of_its_class():
    assert fetch("u", attempts=2) == ("u", "here", Fetch(attempts=2))
    assert fetch("u", "there")[1] == "there"
    assert fetch(url="u", folder="there", kind="ranges")[2].kind == "ranges"
    parameters = inspect.signature(fetch).parameters
    assert list(parameters) == ["url", "folder", "kind", "sizes", "attempts", "pause"]
    assert parameters["attempts"].default == 5
    assert parameters["pause"].annotation == int | None


def test_unknown_keyword_is_refused_with_the_function_and_the_nearest():
    with pytest.raises(OptionError, match=r"expected an option of fetch, .* Did you mean 'attempts'"):
        fetch("u", attemps=3)
    with pytest.raises(OptionError, match=r"expected an option of Fetch, .* See help\(Fetch\)"):
        Fetch(colour=3)
    with pytest.raises(OptionError, match="Did you mean 'attempts'"):
        fetch("u", trie=3)  # near the earlier name


def test_earlier_keyword_is_accepted_with_one_warning_that_names_the_line():
    with pytest.warns(FutureWarning, match="tries is now attempts") as caught:
        assert fetch("u", tries=3)[2].attempts == 3
    assert [each.filename for each in caught] == [__file__]


def test_earlier_and_present_keyword_together_are_refused():
    with pytest.raises(OptionError, match="either attempts or tries"):
        Fetch(tries=3, attempts=3)


def test_copy_and_narrow_keep_given_arrays():
    options = Fetch(attempts=3)
    assert options.given == {"attempts"}
    assert options.replace(kind="ranges").given == {"attempts", "kind"}
    assert options.narrow(Retries, pause=4) == Retries(attempts=3, pause=4)
    assert repr(options) == "Fetch(attempts=3)"


def test_settings_are_frozen_hashable_and_pickle():
    options = Fetch(sizes={"a": 2})
    with pytest.raises(AttributeError, match=r"use replace\(kind="):
        options.kind = "ranges"
    with pytest.raises(AttributeError):
        del options.kind
    assert pickle.loads(pickle.dumps(options)) == copy.copy(options) == options  # noqa: S301
    assert hash(options) == hash(options.replace())
    assert options != Fetch()


def test_table_is_read_with_the_path_of_its_fault():
    document = Document("run", path=Path("run.yaml"), root="$.fetch")
    options = Fetch(attempts=3, sizes={"a": 2})
    assert Fetch.from_json(JsonValue(options.to_json(), document)) == options
    assert Fetch.from_json(JsonValue({"tries": 3}, document)) == Fetch(attempts=3)
    for table, path in (
        ({"attempts": 0}, "$.fetch.attempts"),
        ({"attemps": 3}, "$.fetch.attemps"),
        ({"sizes": {"a": "many"}}, "$.fetch.sizes['a']"),
        (["attempts"], "$.fetch"),
    ):
        with pytest.raises(SchemaError) as caught:
            Fetch.from_json(JsonValue(table, document))
        assert caught.value.field == path


def test_table_of_given_values_alone():
    assert Fetch(attempts=3).to_json(only_given=True) == {"attempts": 3}


def test_request_has_options_that_affect_the_output_under_their_first_names():
    assert Fetch(attempts=3, kind="ranges").describe_output() == {"what": "ranges", "sizes": {}}


def test_sections_are_groups_in_the_order_of_declaration():
    found = {group.__name__: [each.name for each in listed] for group, listed in list_sections(Fetch)}
    assert found == {"Fetch": ["kind", "sizes"], "Retries": ["attempts", "pause"]}


def test_documentation_of_a_class_and_of_a_function_lists_all_options():
    assert "\n    url: What.\n    kind: What is read.\n    sizes: Sizes.\n" in inspect.getdoc(fetch)
    assert "\n    url: What.\n    kind: What is read.\n    sizes: Sizes.\n" in inspect.getdoc(Client.fetch)
    assert "attempts: Number of attempts. More are of little use." in Fetch.__doc__
    assert "pause: Seconds between them. Default: twice as many each time." in Fetch.__doc__


def test_verb_is_passed_to_a_stage_as_its_group():
    def read(options: TextFiles) -> str:
        return options.encoding

    assert read(ConvertOptions(encoding="latin-1")) == "iso8859-1"


def test_tables_of_training_read_the_tables_they_write():
    options = TrainOptions(epochs=3, image_size=96, parts=("text", "table"), class_weights={"y": {1: 2.0}})
    document = Document("run", path=Path("run.yaml"))
    again = TrainOptions.from_json(JsonValue(options.to_json(), document))
    assert again.to_json() == options.to_json()
    assert (again.image_size, again.parts) == ((96, 96), ("table", "text"))
    assert ModelOptions(units=[8, 4]).replace(l2=0.1).units == (8, 4)
