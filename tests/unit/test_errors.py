"""The tree of errors: as drawn, with facts as attributes, one form of message, safe to pickle."""

import copy
import inspect
import pickle
import re

import pytest

from penstock import errors
from penstock.errors import (
    CellError,
    ChangedFileError,
    CorruptRecordError,
    FieldError,
    MissingPackageError,
    NoSuchPathError,
    NotTFRecordError,
    PenstockError,
    SourceError,
    TooManySkippedError,
    UnknownNameError,
    importing,
)

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, PenstockError) and value is not PenstockError
}
LEAF = re.compile(r"^(?P<indent>[│ ]*)[├└]── (?P<name>\w+)(?: \((?P<builtin>\w+)\))?")


def drawn_tree() -> dict[str, tuple[str, str | None]]:
    """Return parent and builtin of every class that the module's docstring draws."""
    tree = {}
    branch = ["PenstockError"]
    for line in errors.__doc__.splitlines():
        match = LEAF.match(line)
        if match is not None:
            depth = len(match["indent"]) // 4 + 1
            branch[depth:] = [match["name"]]
            tree[match["name"]] = (branch[depth - 1], match["builtin"])
    return tree


def test_tree_that_is_drawn_names_every_class():
    assert drawn_tree().keys() == CLASSES.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_class_has_the_parent_and_the_builtin_that_are_drawn(name):
    parent, builtin = drawn_tree()[name]
    kind = CLASSES[name]
    assert kind.__bases__[0].__name__ == parent
    drawn = [] if builtin is None else [builtin]
    assert [base.__name__ for base in kind.__bases__[1:]] == drawn
    inherited = [base for base in kind.__mro__ if base.__module__ == "builtins" and base is not object]
    assert inherited[0] is not Exception, f"{name} is no builtin error of any kind"
    assert kind.__doc__


FACTS = {
    "path": "train-00003-of-00128.tfrecord",
    "record": 17,
    "offset": 88214,
    "field": "payload",
    "expected": "0x1f3a90c2",
    "got": "0x00000000",
    "advice": "Run 'penstock verify shards/'.",
}


def test_message_says_where_what_expected_got_and_what_to_do():
    assert str(CorruptRecordError("payload CRC", **FACTS)) == (
        "train-00003-of-00128.tfrecord: payload CRC of record 17 at byte 88214: "
        "expected 0x1f3a90c2, got 0x00000000. Run 'penstock verify shards/'."
    )


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "something."),
        ({"path": "a"}, "a: something."),
        ({"record": 0}, "something of record 0."),
        ({"offset": 0}, "something at byte 0."),
        ({"expected": 0, "got": 0}, "something: expected 0, got 0."),
        ({"expected": "x"}, "something: expected x."),
        ({"got": "x"}, "something."),
        ({"advice": "Do it."}, "something. Do it."),
    ],
)
def test_message_leaves_out_unknown_parts(facts, message):
    assert str(FieldError("something", **facts)) == message


def test_message_of_a_whole_file_names_no_record():
    assert str(NotTFRecordError("not a TFRecord file", **{**FACTS, "advice": ""})) == (
        "train-00003-of-00128.tfrecord: not a TFRecord file: expected 0x1f3a90c2, got 0x00000000."
    )


def test_message_of_too_many_losses_names_the_last():
    error = TooManySkippedError("4 records could not be used", record=11, expected="at most 3", got=4)
    assert str(error) == "4 records could not be used, the last of them record 11: expected at most 3, got 4."


def test_message_of_a_key_error_is_no_repr():
    assert str(UnknownNameError("no field 'x'")) == "no field 'x'."


@pytest.mark.parametrize("name", CLASSES)
def test_attributes_survive_pickling_and_copying(name):
    error = CLASSES[name]("something", **FACTS)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert type(again) is CLASSES[name]
        assert {fact: getattr(again, fact) for fact in FACTS} == FACTS
        assert again.what == "something"
        assert (str(again), repr(again), again.args) == (str(error), repr(error), error.args)


def test_attributes_that_were_not_given_are_none():
    error = ChangedFileError("something")
    assert {fact: getattr(error, fact) for fact in FACTS} == {**dict.fromkeys(FACTS), "advice": ""}


def test_path_is_kept_as_text(tmp_path):
    assert NoSuchPathError("no such file", path=tmp_path).path == str(tmp_path)


def test_builtin_that_fits_catches_an_error():
    with pytest.raises(FileNotFoundError):
        raise NoSuchPathError("no such file")
    with pytest.raises(OSError, match="something"):
        raise ChangedFileError("something")
    with pytest.raises(ValueError, match="something"):
        raise NotTFRecordError("something")


@pytest.mark.parametrize(
    ("facts", "place"),
    [
        ({"row": 17, "line": 19}, " in row 17 (line 19)"),
        ({"row": 17}, " in row 17"),
        ({"line": 19}, " in line 19"),
        ({"row": 17, "offset": 88}, " in row 17 at byte 88"),
        ({}, ""),
    ],
)
def test_message_of_raw_data_names_the_row_and_the_line(facts, place):
    error = CellError("column 'age'", path="pets.csv", expected="a number", got="'old'", **facts)
    assert str(error) == f"pets.csv: column 'age'{place}: expected a number, got 'old'."
    assert (error.row, error.line) == (facts.get("row"), facts.get("line"))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (again.row, again.line, str(again)) == (error.row, error.line, str(error))


def test_cell_that_does_not_fit_is_caught_as_raw_data_and_as_a_field():
    for kind in (SourceError, FieldError, ValueError):
        with pytest.raises(kind):
            raise CellError("column 'age'")


@pytest.mark.parametrize(
    ("module", "extra", "text"),
    [
        (
            "torch",
            "torch",
            "needs the package 'torch', which is not installed. Run: pip install 'penstock[torch]'.",
        ),
        (
            "tensorflow",
            None,
            "needs the package 'tensorflow', which is not installed. Run: pip install tensorflow.",
        ),
        (
            "PIL.Image",
            "images",
            "needs the package 'pillow', which is not installed. Run: pip install 'penstock[images]'.",
        ),
    ],
)
def test_import_that_fails_names_the_package_as_it_is_installed(module, extra, text):
    with pytest.raises(MissingPackageError) as caught, importing("loading", extra):
        raise ModuleNotFoundError("no", name=module)
    assert str(caught.value) == f"loading {text}"


def test_package_that_is_missing_is_named_with_what_to_install():
    error = MissingPackageError.from_import(ModuleNotFoundError("no", name="pyarrow"), "penstock convert")
    assert isinstance(error, ImportError)
    assert str(error) == (
        "penstock convert needs the package 'pyarrow', which is not installed. "
        "Run: pip install 'penstock[convert]'."
    )
