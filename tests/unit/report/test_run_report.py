"""Reports on runs of all kinds, whose models add up their inputs, against evaluations and numbers by hand."""

import json
import re
import shutil
from dataclasses import replace
from html import unescape

import pytest

import penstock as ps
from fake_runs import FakeRun, fit_run
from penstock.errors import NoSuchPathError, OptionError, SchemaError, StateError, UnknownNameError
from penstock.model.task import Task
from penstock.report.report import is_run, write_report
from penstock.report.run_report import describe_history, describe_training, find_worst_slices
from penstock.score.evaluation import Evaluation, SliceScores
from penstock.score.split_evaluation import BY_LENGTH
from penstock.shards.staging.lock import OWNER_NAME
from penstock.training.history import write_history
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME
from penstock.transform.pipeline import without_fields
from raising import raises_with
from report_pages import check_page
from run_tables import write_tables


def test_folder_of_a_run_is_known_by_its_settings(tmp_path):
    assert not is_run(tmp_path)
    (tmp_path / CONFIG_NAME).touch()
    assert is_run(tmp_path)


def make_rows(num_rows=120, target=lambda number: "yes" if number % 3 else "no"):
    return [
        {
            "age": float(number % 7) if number % 5 else None,
            "kind": ("cat", "dog", "hen")[number % 3],
            "note": f"a shy animal, number {number}",
            "y": target(number),
        }
        for number in range(num_rows)
    ]


def report_on(run, folder, **options):
    """Return figures and page of a run, both checked."""
    out = folder / "report.html"
    found = write_report(run, out, importance=False, **options)
    json.dumps(found, allow_nan=False)
    page = out.read_text()
    check_page(page)
    return found, page


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    split = {"train": 0.6, "test": 0.4}
    return fit_run(make_rows(), tmp_path_factory.mktemp("run") / "data", target="y", split=split)


@pytest.fixture
def moving_run(run, tmp_path):
    """The same run with separate data, which a test may remove."""
    return FakeRun(run.pipeline, shutil.copytree(run.data, tmp_path / "data"))


def test_scores_equal_scores_of_an_evaluation(run, tmp_path):
    found, page = report_on(run, tmp_path)
    wanted = ps.evaluate(run, split="test", importance=False, mistakes=8)
    evaluation = found["evaluation"]
    assert (evaluation["split"], evaluation["records"]) == ("test", len(ps.open(run.data)["test"]))
    assert evaluation["targets"] == wanted.targets
    assert evaluation["confusion"] == wanted.confusion
    assert evaluation["calibrated"]["y"] == wanted.calibrated["y"]._asdict()
    assert "the calibration error would be " in page
    assert [each["row"] for each in evaluation["mistakes"]["y"]] == [
        each.row for each in wanted.mistakes["y"]
    ]
    assert found["data"]["records"] == 120


def test_data_without_a_column_is_reported_on_where_that_is_allowed(run, tmp_path):
    rows = [{name: each for name, each in row.items() if name != "age"} for row in make_rows()]
    data = ps.convert(rows, tmp_path / "set", target="y", split="test=1.0")
    with raises_with(SchemaError, "no column 'age' allow_missing_columns=True", field="age"):
        report_on(run, tmp_path, data=data)
    found, page = report_on(run, tmp_path, data=data, allow_missing_columns=True, overwrite=True)
    assert found["evaluation"]["missing_columns"] == ["age"]
    assert "no field 'age': it counts as missing in all records" in unescape(page)


def test_mistakes_show_the_inputs_of_their_records(run, tmp_path):
    found, page = report_on(run, tmp_path)
    worst = found["evaluation"]["mistakes"]["y"][0]
    sample = ps.open(run.data)["test"][worst["row"]]
    values = {each["name"]: each["text"] for each in worst["values"]}
    assert values["note"] == sample["note"]
    assert values["age"] == (f"{sample['age']:g}" if "age" in sample else None)
    assert "y" not in values  # it is named beside the prediction
    assert worst["truth"] == sample["y"]
    assert sample["note"] in page


def test_split_can_be_chosen_and_must_exist(run, tmp_path):
    found, _ = report_on(run, tmp_path, split="train")
    assert found["evaluation"]["split"] == "train"
    with pytest.raises(UnknownNameError) as caught:
        write_report(run, None, split="tset")
    assert caught.value.field == "tset"


def test_run_whose_data_is_gone_has_a_report_that_says_so(moving_run, tmp_path):
    shutil.rmtree(moving_run.data)
    found, page = report_on(moving_run, tmp_path)
    assert (found["data"], found["evaluation"]) == (None, None)
    assert "data=DATASET" in found["notes"][0]
    assert str(moving_run.data) in found["notes"][0]
    assert "--data" in page


def test_data_can_be_elsewhere(moving_run, tmp_path):
    shutil.move(moving_run.data, tmp_path / "moved")
    found = write_report(moving_run, None, data=tmp_path / "moved", importance=False)
    assert found["evaluation"]["records"] > 0
    with pytest.raises(OptionError) as caught:
        write_report(tmp_path / "moved", None, data=tmp_path / "moved")
    assert caught.value.field == "data"


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (lambda number: number * 1.5, "regression"),
        (lambda number: ("a", "b", "c", "d")[number % 4], "multiclass"),
        (lambda number: f"class {number % 40}", "multiclass"),
        (lambda number: [("red", "big"), ("red",), ("big", "old")][number % 3], "multilabel"),
    ],
)
def test_each_kind_of_target_has_a_report(tmp_path, target, kind):
    fields = {"y": ps.fields.Sequence("string", role="target")} if kind == "multilabel" else None
    rows = make_rows(target=lambda number: list(target(number)) if kind == "multilabel" else target(number))
    overrides = {"y": ps.transform.Encode(output="multi_hot")} if kind == "multilabel" else None
    chosen = {"target": "y"} if fields is None else {"fields": fields}
    run = fit_run(rows, tmp_path / "data", overrides, **chosen)
    found, _ = report_on(run, tmp_path)
    assert found["evaluation"]["tasks"] == {"y": kind}
    assert found["evaluation"]["split"] == "train"
    curves = found["evaluation"]["curves"]["y"]
    assert set(curves) == ({"residuals"} if kind == "regression" else {"classes", "calibration"})


HOSTILE = '</style><script>alert("1")</script><img src=x onerror=alert(2)>\x00$\\frac{'


def test_hostile_names_texts_and_classes_are_text(tmp_path):
    rows = [
        {HOSTILE: HOSTILE * (number % 3 + 1), "x": float(number % 7), "y": f"{number % 3}{HOSTILE}"}
        for number in range(60)
    ]
    fields = {HOSTILE: ps.fields.Text(), "y": ps.fields.Category(role="target")}
    run = FinishedRun(fit_run(rows, tmp_path / "data", fields=fields), tmp_path / "<script>run")
    run.history = [{**row, f"{HOSTILE}_auc": 0.5} for row in ROWS]
    found, page = report_on(run, tmp_path)  # no tag or attribute of the page comes from data
    assert set(found["evaluation"]["confusion"]["y"]["labels"]) == {row["y"] for row in rows}
    assert any(HOSTILE in value["text"] for value in found["evaluation"]["mistakes"]["y"][0]["values"])
    assert page.count("&lt;script&gt;alert(") > 20
    assert "\x00" not in page


def test_several_targets_have_scores_each(tmp_path):
    rows = [{**row, "price": float(number)} for number, row in enumerate(make_rows())]
    found, _ = report_on(fit_run(rows, tmp_path / "data", target=["y", "price"]), tmp_path)
    assert set(found["evaluation"]["targets"]) == set(found["evaluation"]["worst_slices"]) == {"y", "price"}


def test_hundreds_of_classes_have_a_report_of_bounded_size(tmp_path):
    rows = [{"x": float(number), "y": f"class {number % 800}"} for number in range(1600)]
    run = fit_run(rows, tmp_path / "data", target="y")
    found, page = report_on(run, tmp_path, mistakes=2, samples=2)
    assert found["evaluation"]["confusion"]["y"]["matrix"] is None
    assert len(found["evaluation"]["classes"]["y"]) == 800
    assert found["evaluation"]["slices"]["x"][0]["targets"]["y"]["auc"] is None  # areas would take hours
    assert found["evaluation"]["slices"]["x"][0]["targets"]["y"]["accuracy"] is not None
    assert len(page) < 200_000


def test_one_record_has_a_report(tmp_path):
    split = {"train": 0.98, "test": 0.02}
    run = fit_run(make_rows(60), tmp_path / "data", target="y", split=split)
    found, _ = report_on(run, tmp_path)
    assert found["evaluation"]["records"] == len(ps.open(run.data)["test"]) <= 2
    assert found["evaluation"]["targets"]["y"]["auc"] in (None, 0, 0.5, 1)


def test_importance_is_measured_by_input_and_by_kind(run, tmp_path):
    found = write_report(run, tmp_path / "report.html", importance_records=40)
    evaluation = found["evaluation"]
    assert set(evaluation["importance_by_target"]["y"]) == {"age", "kind", "note"}
    assert set(evaluation["ablation_by_target"]["y"]) == {"numbers", "categories", "text"}
    assert evaluation["importance_records"] == 40
    check_page((tmp_path / "report.html").read_text())


def make_evaluation(slices, kind="binary", overall=0.8):
    task = Task("y", kind, ("no", "yes") if kind == "binary" else ())
    name = "accuracy" if kind == "binary" else "mae"
    found = [
        SliceScores(value, None, None, records, {"y": {name: score}}) for value, records, score in slices
    ]
    return Evaluation(
        split="test",
        records=2000,
        tasks={"y": task},
        targets={"y": {name: overall}},
        intervals={},
        classes={},
        confusion={},
        slices={"kind": found},
    )


def test_worst_slices_have_enough_records_and_are_worse_than_all():
    slices = [("cat", 900, 0.9), ("dog", 500, 0.7), (None, 40, 0.6), ("hen", 19, 0.0), ("cow", 30, None)]
    found = find_worst_slices(make_evaluation(slices), "y")
    assert found["least"] == 20
    assert [(each["value"], each["records"], each["score"]) for each in found["slices"]] == [
        ("(missing)", 40, 0.6),
        ("dog", 500, 0.7),
    ]


def test_slices_by_length_have_their_unit_and_missing_values_none():
    found = make_evaluation([(12, 900, 0.7), (None, 40, 0.6)])
    found = replace(found, slice_notes=(f"kind{BY_LENGTH}characters",))
    assert [each["value"] for each in find_worst_slices(found, "y")["slices"]] == [
        "(missing)",
        "12 characters",
    ]


def test_worst_slices_of_numbers_have_the_largest_error():
    found = find_worst_slices(make_evaluation([("cat", 900, 0.9), ("dog", 500, 0.7)], "regression"), "y")
    assert [each["value"] for each in found["slices"]] == ["cat"]


ROWS = [
    {"epoch": 1, "loss": 0.9, "val_auc": 0.6, "learning_rate": 0.1, "waiting_seconds": 0.5, "seconds": 4.0},
    {"epoch": 2, "loss": 0.5, "val_auc": 0.8, "learning_rate": 0.1, "waiting_seconds": 0.1, "seconds": 5.5},
    {"epoch": 3, "loss": float("nan"), "val_auc": 0.7, "learning_rate": 0.0, "seconds": 6.0},
]


def test_history_has_metrics_times_and_the_best_epoch():
    found = describe_history(ROWS, RunConfig.from_json({"train": {"monitor": "val_auc"}}))
    assert found["metrics"] == {"loss": [0.9, 0.5, None], "val_auc": [0.6, 0.8, 0.7]}
    assert found["best_epoch"] == 2
    assert found["time"]["epoch"] == [4.0, 1.5, 0.5]
    assert found["time"]["waiting"] == [0.5, 0.1, None]
    assert found["seconds"] == 6.0


def test_history_without_validation_or_epochs_is_described():
    rows = [{"epoch": 1, "loss": 0.5, "seconds": 1.0}]
    assert describe_history(rows, RunConfig.from_json({"train": {"monitor": "val_loss"}}))["best_epoch"] == 1
    assert describe_history([], RunConfig())["best_epoch"] is None


TABLES = {"train": {"monitor": "val_auc", "cache": "<b>"}, "model": "own"}


class FinishedRun(FakeRun):
    """A run with a history, or an ensemble of such runs."""

    def __init__(self, run, folder, members=()):
        super().__init__(run.pipeline, run.data, folder, **TABLES)
        self.history, self.members = ROWS, members


def test_curves_and_times_of_training_are_drawn(run, tmp_path):
    found, page = report_on(FinishedRun(run, tmp_path / "pets"), tmp_path)
    assert found["run"]["histories"][""]["best_epoch"] == 2
    assert found["title"] == "pets"
    assert 'aria-label="loss of each epoch"' in page
    assert "waiting for data" in page


def test_members_of_an_ensemble_have_curves_and_scores_each(run, tmp_path):
    members = [FinishedRun(run, tmp_path / f"member-{number}") for number in (1, 2)]
    found, page = report_on(FinishedRun(run, tmp_path / "both", members), tmp_path)
    assert list(found["run"]["histories"]) == ["member-1", "member-2"]
    assert list(found["evaluation"]["members"]) == ["member-1", "member-2"]
    assert "member-2, validation" in page


REASON = "The validation loss is <b>lower</b> without it."
LEFT_OUT = {"used": ["table"], "left_out": {"text": ["note"]}, "reasons": {"text": REASON}}


def make_reduced(run, folder, **facts):
    """Return a finished run whose model does not read the text of the data."""
    reduced = FinishedRun(run, folder)
    reduced.pipeline = without_fields(run.pipeline, ["note"])
    reduced.set_tables(**TABLES, facts=facts)
    return reduced


def test_parts_that_the_model_does_not_read_are_on_the_first_screen_and_marked(run, tmp_path):
    found, page = report_on(make_reduced(run, tmp_path / "pets", parts=LEFT_OUT), tmp_path)
    assert found["run"]["left_out"] == [{"part": "text", "fields": ["note"], "reason": REASON}]
    first = page[: page.index('<h2 id="scores"')]
    assert "Not read by the model: text (note)." in first
    assert "The validation loss is &lt;b&gt;lower&lt;/b&gt; without it. To use all inputs" in first
    values = found["evaluation"]["mistakes"]["y"][0]["values"]
    assert {each["name"]: each["is_read"] for each in values} == {"age": True, "kind": True, "note": False}
    assert '<dt>note <span class="badge">not read</span></dt>' in page
    assert "<dt>age</dt>" in page


def test_run_that_reads_all_inputs_has_no_such_note(run, tmp_path):
    found, page = report_on(FinishedRun(run, tmp_path / "pets"), tmp_path)
    assert found["run"]["left_out"] == []
    assert "ot read" not in page


def test_baseline_is_beside_the_first_score(run, tmp_path):
    found, page = report_on(run, tmp_path)
    evaluation = found["evaluation"]
    assert evaluation["baselines"]["y"]["auc"] == 0.5
    assert re.search(r"<dt>AUC on test</dt><dd>[^<]*<small>[^<]*baseline 0\.500</small>", page)
    assert "Baseline: the most frequent class, yes, for every record" in page
    names = re.findall(r'<tr><th scope="row">([^<]*)<small class="narrow">', page)
    assert names == ["accuracy", "balanced accuracy", "AUC", "PR AUC", "F1", "log loss", "calibration error"]


def test_wrong_predictions_are_named_by_words(run, tmp_path):
    _, page = report_on(run, tmp_path)
    mistakes = page[page.index('<h2 id="mistakes"') :]
    assert '<p class="verdict"><span class="badge serious">wrong</span> true <b>' in mistakes
    assert "log loss" in mistakes


def test_time_of_trials_is_added_to_the_time_of_training(run, tmp_path):
    seconds = {"trials": 24.0, "training": 31.0}
    found, page = report_on(make_reduced(run, tmp_path / "pets", seconds=seconds), tmp_path)
    assert found["run"]["seconds"] == seconds
    assert "<dd>55.0 s<small>trials 24.0 s, training 31.0 s</small></dd>" in page
    assert "Short trials: 24.0 s; training: 31.0 s; together 55.0 s." in page


def test_run_without_stored_times_has_the_time_of_its_epochs(run, tmp_path):
    found = describe_training(make_reduced(run, tmp_path / "pets"))
    assert found["seconds"] == {"trials": None, "training": 6.0}


def test_members_share_the_trials_and_are_trained_one_by_one(run, tmp_path):
    members = [make_reduced(run, tmp_path / "m", seconds={"trials": 0.0, "training": 5.0}) for _ in "ab"]
    whole = make_reduced(run, tmp_path / "both", seconds={"trials": 8.0, "training": 5.0})
    whole.members = members
    assert describe_training(whole)["seconds"] == {"trials": 8.0, "training": 10.0}
    members[0].set_tables()
    assert describe_training(whole)["seconds"] == {"trials": 8.0, "training": 6.0}


def make_folds(folder):
    scores = {f"fold-{number}": {"y": {"auc": 0.5 + number / 10, "f1": None}} for number in (1, 2)}
    facts = {
        "records": 40,
        "scores": scores,
        "mean": {"y": {"auc": 0.65, "f1": None}},
        "deviation": {"y": {"auc": 0.07, "f1": None}},
    }
    folder.mkdir()
    write_tables(folder, {"folds": {"number": 2}, "train": {"monitor": "val_auc"}, "facts": facts})
    for name in scores:
        (folder / name).mkdir()
        left_out = {"parts": LEFT_OUT} if name == "fold-2" else {}
        write_tables(folder / name, {"data": "data", "facts": left_out})
        write_history(folder / name, ROWS[:2])
    return facts


def test_cross_validation_has_scores_of_its_folds(tmp_path):
    facts = make_folds(tmp_path / "folds")
    found, page = report_on(tmp_path / "folds", tmp_path)
    assert found["kind"] == "folds"
    assert found["folds"]["mean"] == facts["mean"]
    assert found["folds"]["histories"]["fold-2"]["best_epoch"] == 2
    assert "fold-1, validation" in page
    assert {name: len(parts) for name, parts in found["folds"]["left_out"].items()} == {
        "fold-1": 0,
        "fold-2": 1,
    }
    assert "fold-2: <b>Not read by the model: text (note).</b>" in page
    assert found["data"] is None


def test_unfinished_cross_validation_is_refused(tmp_path):
    make_folds(tmp_path / "folds")
    write_tables(tmp_path / "folds", {"folds": {"number": 2}})
    with pytest.raises(StateError) as caught:
        write_report(tmp_path / "folds", None)
    assert "resume=True" in caught.value.advice


def test_run_whose_training_has_just_begun_is_refused(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / OWNER_NAME).write_text("{}")
    with pytest.raises(StateError) as caught:
        write_report(folder, None)
    assert (caught.value.path, caught.value.expected) == (str(folder), "a finished one")


def test_path_of_nothing_is_refused(tmp_path):
    with pytest.raises(NoSuchPathError):
        write_report(tmp_path / "nothing", tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []
