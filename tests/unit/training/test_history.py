"""`history.csv`: rows that go in come out, whatever epochs have in common; its curves and best epoch."""

import math

import pytest

from penstock.errors import WriteError
from penstock.training.history import (
    HISTORY_NAME,
    find_best,
    is_lower_better,
    list_metrics,
    pair_curves,
    pair_runs,
    read_history,
    write_history,
)
from raising import raises_with


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [
        {"epoch": 1, "step": 6, "loss": 0.1 + 0.2, "val_loss": 1e-30, "seconds": 0.25},
        {"epoch": 2, "step": 12, "loss": 1e300, "val_loss": -5.0, "seconds": 10.0},
    ]
    write_history(tmp_path, rows)
    assert (tmp_path / HISTORY_NAME).read_text() == (
        "epoch,step,loss,val_loss,seconds\n1,6,0.30000000000000004,1e-30,0.25\n2,12,1e+300,-5.0,10.0\n"
    )
    found = read_history(tmp_path)
    assert found == rows
    assert [type(value) for value in found[0].values()] == [int, int, float, float, float]


def test_rows_replace_existing_ones(tmp_path):
    write_history(tmp_path, [{"epoch": 1}, {"epoch": 2}])
    write_history(tmp_path, [{"epoch": 1}])
    assert read_history(tmp_path) == [{"epoch": 1}]
    assert [path.name for path in tmp_path.iterdir()] == [HISTORY_NAME]


def test_names_that_some_rows_lack_are_left_out_of_those(tmp_path):
    rows = [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "auc": 0.5, "loss": 1.0}]
    write_history(tmp_path, rows)
    assert (tmp_path / HISTORY_NAME).read_text() == "epoch,loss,auc\n1,2.0,\n2,1.0,0.5\n"
    assert read_history(tmp_path) == rows


def test_names_with_commas_and_quotes_stay_whole(tmp_path):
    rows = [{'a,"b"\nc': 1.5, "é": -2}]
    write_history(tmp_path, rows)
    assert read_history(tmp_path) == rows


def test_numbers_that_are_not_finite_are_kept(tmp_path):
    write_history(tmp_path, [{"a": math.nan, "b": math.inf, "c": -math.inf}])
    (row,) = read_history(tmp_path)
    assert math.isnan(row["a"])
    assert (row["b"], row["c"]) == (math.inf, -math.inf)


def test_no_file_and_no_rows_are_no_history(tmp_path):
    assert read_history(tmp_path) == []
    write_history(tmp_path, [])
    assert read_history(tmp_path) == []


def test_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with raises_with(WriteError, "history.csv"):
        write_history(tmp_path / "file", [])


def test_metrics_are_columns_with_gaps_where_a_number_is_absent_or_not_finite():
    rows = [{"epoch": 1, "loss": math.nan, "seconds": 1.0}, {"epoch": 2, "loss": 0.5, "auc": 0.7}]
    assert list_metrics(rows) == {"loss": [None, 0.5], "auc": [None, 0.7]}
    assert list_metrics([]) == {}


def test_curves_are_paired_with_curves_of_validation_and_the_loss_is_first():
    metrics = {"auc": [0.5], "loss": [0.9], "val_auc": [0.6], "val_loss": [0.8], "val_data_loss": [0.7]}
    assert pair_curves(metrics) == {
        "loss": {"training": [0.9], "validation": [0.8], "validation, without penalties": [0.7]},
        "auc": {"training": [0.5], "validation": [0.6]},
    }
    assert list(pair_curves(metrics)) == ["loss", "auc"]
    assert pair_curves({"loss": [None], "val_loss": [0.7], "val_data_loss": [0.7]}) == {
        "loss": {"validation": [0.7]}
    }


def test_curves_of_several_runs_are_validation_curves_if_there_are_any():
    one, other = {"loss": [0.9], "val_loss": [0.8]}, {"loss": [0.5]}
    assert pair_runs({"": one}) == {"loss": {"training": [0.9], "validation": [0.8]}}
    assert pair_runs({"a": one, "b": one}) == {"loss": {"a, validation": [0.8], "b, validation": [0.8]}}
    assert pair_runs({"a": other, "b": other}) == {"loss": {"a, training": [0.5], "b, training": [0.5]}}
    assert pair_runs({}) == {}


def test_best_epoch_has_the_best_monitored_metric_or_is_the_last():
    rows = [{"epoch": 1, "val_auc": 0.6, "val_loss": 0.3}, {"epoch": 2, "val_auc": 0.8, "val_loss": 0.4}]
    assert find_best(rows, "val_auc") is rows[1]
    assert find_best(rows, "val_loss") is rows[0]
    assert find_best([{**rows[0], "val_auc": math.nan}, rows[1]], "val_auc") is rows[1]
    assert find_best([{"epoch": 1, "val_auc": math.nan}], "val_auc")["epoch"] == 1
    assert find_best([{"loss": 0.1}, {"loss": 0.2}], "val_loss") == {"loss": 0.2}
    assert find_best([], "val_loss") is None


@pytest.mark.parametrize(
    ("monitor", "is_lower"),
    [
        ("loss", True),
        ("val_price_loss", True),
        ("val_mae", True),
        ("val_price_rmse", True),
        ("val_mse", True),
        ("val_mean_absolute_error", True),
        ("val_accuracy", False),
        ("val_auc", False),
        ("val_f1", False),
    ],
)
def test_name_of_the_monitor_decides_whether_less_is_better(monitor, is_lower):
    assert is_lower_better(monitor) is is_lower
