"""The viewer on a trained run: its predictions and mistakes equal an evaluation."""

import time

import numpy as np
import pytest

pytest.importorskip("keras")

import penstock as ps
from penstock.view.browser import Browser
from penstock.view.opened_data import open_data
from penstock.view.predictions import Outcome
from penstock.view.query import Query
from penstock.view.scan_jobs import Progress

pytestmark = pytest.mark.plain_graphs
SECONDS = 240


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    random = np.random.default_rng(5)
    x = random.normal(size=400).astype(np.float32)
    label = np.where(x + random.normal(size=400) > 0, "yes", "no")
    ps.convert({"x": x, "y": label, "id": np.arange(400)}, folder / "data", target="y", id="id")
    small = ps.options.ModelOptions(preset="small")
    ps.train(folder / "data", out=folder / "run", epochs=2, model_options=small)
    return folder / "run"


def wait(ask):
    end = time.monotonic() + SECONDS
    found = ask()
    while isinstance(found, Progress):
        assert time.monotonic() < end
        time.sleep(0.1)
        found = ask()
    return found


def test_predictions_and_mistakes_equal_an_evaluation(run):
    evaluated = ps.evaluate(run, bootstrap=0, importance=False, mistakes=1000)
    browser = Browser(open_data([str(run)]))
    try:
        assert browser.first_split == "test"
        outcome = wait(lambda: browser.find_outcome("test"))
        assert isinstance(outcome, Outcome)
        assert len(outcome.rows) == evaluated.records
        query = Query(split="test", show="mistakes", sort="loss:y", order="descending", size=100)
        page = wait(lambda: browser.read_page(query))
        worst = evaluated.mistakes["y"]
        assert [shown.record.row for shown in page.records] == [mistake.row for mistake in worst]
        first = page.records[0].predictions["y"]
        assert (first["truth"], first["prediction"]) == (worst[0].truth, worst[0].prediction)
        assert first["loss"] == pytest.approx(worst[0].loss, rel=1e-4)
        assert page.records[0].is_wrong
        correct = wait(lambda: browser.read_page(query.change(show="correct", sort="", order="ascending")))
        assert page.num_selected + correct.num_selected == evaluated.records
    finally:
        browser.close()
