"""Values that are not a source, and sources of TFRecords."""

import os

import numpy as np
import pytest

from penstock.errors import NoSuchPathError, OptionError, PathError
from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source
from raising import containing, raises_with


@pytest.mark.parametrize("given", [None, 3, 2.5, True, b"pets.csv", bytearray(b"x"), object()])
def test_value_that_is_not_a_source_is_refused(given):
    with raises_with(OptionError, "source"):
        open_source(given, TextFiles())


def test_bare_array_gets_advice():
    with raises_with(OptionError, got="array([[0., 0.], [0., 0.], [0., 0.]])"):
        open_source(np.zeros((3, 2)), TextFiles())


def test_path_that_does_not_exist_names_the_nearest(tmp_path):
    (tmp_path / "pets.csv").write_text("a\n1\n")
    with raises_with(NoSuchPathError, f"'{tmp_path / 'pets.csv'}'"):
        open_source(tmp_path / "pet.csv", TextFiles())
    with raises_with(NoSuchPathError, path=str(tmp_path / "*.parquet")):
        open_source(str(tmp_path / "*.parquet"), TextFiles())
    with raises_with(OptionError, got="ftp://"):
        open_source("ftp://bucket/pets.csv", TextFiles())


def test_pipe_and_mixed_list_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pets.csv")
    with raises_with(PathError, path=str(tmp_path / "pets.csv")):
        open_source(tmp_path / "pets.csv", TextFiles())
    (tmp_path / "a.csv").write_text("a\n1\n")
    with raises_with(OptionError, got=containing("1}")):
        open_source([tmp_path / "a.csv", {"a": 1}], TextFiles())
