"""`--model FILE:FUNCTION`: the model that a function in a file returns."""

import pytest

from penstock.errors import NoSuchPathError, OptionError, UnknownNameError
from penstock.jobs.model_file import load_model
from raising import containing, raises_with

CODE = """
class Model:
    def predict_on_batch(self, inputs): ...

def build():
    return Model()

def count():
    return 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(CODE)
    return path


def test_function_is_called_and_its_model_returned(file):
    assert type(load_model(f"{file}:build")).__name__ == "Model"


@pytest.mark.parametrize("text", ["model.py", "model.py:", "model:build", "model.py:a-b", ":build"])
def test_text_of_another_form_is_refused(text):
    with raises_with(OptionError, "--model --model model.py:build", expected="FILE:FUNCTION"):
        load_model(text)


def test_file_that_does_not_exist_names_the_nearest(file):
    with raises_with(NoSuchPathError, "model.py'"):
        load_model(f"{file.parent / 'modl.py'}:build")


def test_function_that_does_not_exist_names_the_nearest(file):
    with raises_with(UnknownNameError, "'build'", field="biuld"):
        load_model(f"{file}:biuld")


def test_value_that_is_not_a_model_is_refused(file):
    with raises_with(OptionError, "count()", expected=containing("keras.Model"), got="3"):
        load_model(f"{file}:count")
