"""The setup of a `Predictor`: made once, when it is opened, for all requests and any number of threads."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

import penstock as ps
from fake_runs import FakeRun, fit_run
from penstock import fields as f
from penstock.errors import CellError, SchemaError
from penstock.jobs.predict import trained
from penstock.jobs.predict.predict import predict

FIELDS = {"kind": f.Category(optional=True), "age": f.Number("float32", optional=True)}
ROW = {"Kind": "cat", "age": "2.5", "weight": 4.0}
REQUESTS = [
    (ROW, {}),
    ({"weight": 4.0, "age": 2.5, "kind": "cat"}, {}),
    ({**ROW, "age": "2,5"}, {"decimal": ","}),
    ({"weight": 4.0}, {"allow_missing_columns": True}),
    ({**ROW, "colour": "red"}, {"keep": ("colour", "age")}),
    ({"Kind": ["dog", "none"], "age": [None, 3], "weight": [1, 2]}, {"batch_size": 1}),
    ([{**ROW, "weight": None}, ROW], {"on_error": "skip"}),
    ({**ROW, "age": "none"}, {"keep": "age"}),
]
REFUSED = [
    ({"Kind": "cat", "age": 2.5}, {}, SchemaError, "weight"),
    ({**ROW, "weight": "x"}, {}, CellError, "weight"),
    ({**ROW, "age": "none"}, {"missing": ""}, CellError, "age"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rows = [
        {
            "Kind": ("cat", "dog", "none")[n % 3],
            "age": ("none", n / 2)[n % 2],
            "weight": n + 0.5,
            "adopted": ("no", "yes")[n % 2],
        }
        for n in range(40)
    ]
    choices = {"missing": ("", "none"), "rename": {"Kind": "kind"}, "fields": FIELDS, "target": "adopted"}
    return fit_run(rows, tmp_path_factory.mktemp("set") / "pets", **choices)


def ask(predictor, request):
    """Return the rows of a prediction, and the notes on it."""
    data, options = request
    done = predictor.predict(data, **options)
    return done.to_pylist(), done.num_skipped, done.notes


def check_refused(predictor, number):
    data, options, error, field = REFUSED[number]
    with pytest.raises(error) as caught:
        predictor.predict(data, **options)
    assert caught.value.field == field


def test_recipe_and_pipeline_of_inputs_are_made_once(run, monkeypatch):
    made = []
    for name in ("find_recipe", "choose_batch_size", "Answer", "without_targets"):
        real = getattr(trained, name)
        monkeypatch.setattr(
            trained, name, lambda *args, name=name, real=real: (made.append(name), real(*args))[1]
        )
    predictor = ps.Predictor(run)
    assert sorted(made) == ["Answer", "choose_batch_size", "find_recipe", "without_targets"]
    for request in REQUESTS:
        ask(predictor, request)
    assert len(made) == 4


def test_request_is_answered_as_by_predict(run):
    predictor = ps.Predictor(run)
    for data, options in REQUESTS:
        found, expected = predictor.predict(data, **options), predict(run, as_rows(data), **options)
        assert found.table.equals(expected.table)
        assert (found.notes, found.cautions) == (expected.notes, expected.cautions)


def as_rows(data):
    """Return data as `predict` takes it, for which a dict is always columns."""
    return [data] if isinstance(data, dict) and not isinstance(data["weight"], list) else data


def test_request_leaves_nothing_for_later_requests(run):
    predictor = ps.Predictor(run)
    alone = [ask(ps.Predictor(run), request) for request in REQUESTS]
    for number in range(len(REFUSED)):
        check_refused(predictor, number)
    assert [ask(predictor, request) for request in REQUESTS] == alone
    assert [ask(predictor, request) for request in reversed(REQUESTS)] == alone[::-1]


def test_threads_share_a_setup_with_different_columns_and_options(run):
    alone = [ask(ps.Predictor(run), request) for request in REQUESTS]
    predictor = ps.Predictor(run)

    def work(number):
        found = []
        for step in range(3 * len(REQUESTS)):
            at = (number + step) % len(REQUESTS)
            found.append((at, ask(predictor, REQUESTS[at])))
            check_refused(predictor, step % len(REFUSED))
        return found

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            assert all(answer == alone[at] for at, answer in found)


def test_batch_size_of_a_request_is_for_that_request(run):
    predictor = ps.Predictor(run)
    rows = [ROW] * 3
    for options, calls in (({"batch_size": 1}, 3), ({"batch_size": 2}, 2), ({}, 1)):
        run.asked.clear()
        predictor.predict(rows, **options)
        assert len(run.asked) == calls


def test_data_set_is_read_when_opened_alone(run, tmp_path):
    """A run of an earlier version has no plan: it is in the manifest of the data set."""
    shutil.copytree(run.data, tmp_path / "pets")
    predictor = ps.Predictor(FakeRun(run.pipeline, tmp_path / "pets"))
    shutil.rmtree(tmp_path / "pets")
    request = ({**ROW, "age": "none"}, {})
    assert ask(predictor, request) == ask(ps.Predictor(run), request)


def test_settings_that_are_not_valid_are_refused_when_opened(run):
    with pytest.raises(SchemaError) as caught:
        ps.Predictor(FakeRun(run.pipeline, run.data, plan=["no object"]))
    assert caught.value.field == "$.plan"


def test_later_changes_to_the_pipeline_do_not_affect_requests(run):
    own = FakeRun(run.pipeline, run.data)
    predictor = ps.Predictor(own)
    predictor.predict(ROW)
    own.pipeline = own.pipeline.group("numbers", ["age", "weight"])
    predictor.predict(ROW)
    first, second = own.asked
    assert first.keys() == second.keys()
    assert "numbers" not in second
