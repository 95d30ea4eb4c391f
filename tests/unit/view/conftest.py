"""A data set with pictures, texts and lists, with damaged and hostile records, and its browser."""

import pytest

from penstock.view.browser import Browser
from penstock.view.opened_data import open_data
from viewed_data import write_gallery


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    return write_gallery(tmp_path_factory.mktemp("data") / "gallery")


@pytest.fixture
def browser(gallery):
    made = Browser(open_data([str(gallery)]))
    yield made
    made.close()
