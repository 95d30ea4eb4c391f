"""NaN in vectors and infinity anywhere: refused by predict and evaluate as by training, never an answer."""

import numpy as np
import pytest

import penstock as ps
from fake_runs import fit_run
from penstock.errors import CellError, FieldError
from penstock.jobs.evaluate.evaluate import evaluate
from penstock.jobs.predict.predict import predict
from raising import containing

NAN, INF = float("nan"), float("inf")
NUM = 20


def rows(**changes):
    """Return labelled rows; a change gives the value of one field in row 3."""
    made = [
        {"x": n / 2, "v": [1.0, float(n)], "list": [0.5] * (1 + n % 3), "sold": ("no", "yes")[n % 2]}
        for n in range(NUM)
    ]
    for name, value in changes.items():
        made[3][name] = value
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    fields = {"v": ps.fields.Tensor((2,), "float32"), "list": ps.fields.Sequence("float32")}
    return fit_run(rows(), tmp_path_factory.mktemp("finite") / "set", target="sold", fields=fields)


BAD = [{"x": INF}, {"x": -INF}, {"v": [1.0, NAN]}, {"v": [INF, 1.0]}, {"list": [NAN]}, {"list": [1.0, INF]}]


@pytest.mark.parametrize("change", BAD, ids=str)
@pytest.mark.parametrize("job", [predict, evaluate])
def test_t02_raw_row_that_is_not_finite_is_named(run, job, change):
    with pytest.raises(CellError) as caught:
        job(run, rows(**change))
    (name,) = change
    assert (caught.value.field, caught.value.row) == (name, 4)


@pytest.mark.parametrize("change", BAD, ids=str)
def test_t02_raw_row_that_is_not_finite_is_skipped_with_a_count(run, change):
    found = predict(run, rows(**change), on_error="skip")
    assert (len(found), found.num_skipped) == (NUM - 1, 1)
    assert evaluate(run, rows(**change), on_error="skip", bootstrap=0).records == NUM - 1


@pytest.mark.parametrize("change", BAD, ids=str)
def test_t02_stored_record_that_is_not_finite_is_named(run, tmp_path, change):
    fields = {"v": ps.fields.Tensor((2,), "float32"), "list": ps.fields.Sequence("float32")}
    data = ps.convert(
        rows(**change), tmp_path / "set", target="sold", fields=fields, split="train=1", shuffle=False
    )
    (name,) = change
    with pytest.raises(FieldError) as caught:
        predict(run, data["train"])
    assert (caught.value.field, caught.value.record) == (name, 3)
    with pytest.raises(FieldError) as caught:
        evaluate(run, data["train"], bootstrap=0)
    assert caught.value.field == name
    assert caught.value.got == containing("1 of 20", 3)


def test_missing_numbers_are_predicted(run):
    found = predict(run, rows(x=None))
    assert len(found) == NUM
    assert np.isfinite(found.to_pandas().select_dtypes("number")).all(axis=None)
