"""What `penstock evaluate` prints, and what it takes."""

import re
import subprocess
import sys

import numpy as np
import pytest

from penstock.cli import arguments, evaluate
from penstock.cli.evaluate import print_evaluation
from penstock.cli.next_command import repeat_words
from penstock.errors import OptionError
from penstock.model.task import Task
from penstock.score.evaluation import Evaluation, SliceScores
from penstock.score.intervals import CalibratedError, find_intervals
from penstock.score.mistakes import Mistake
from penstock.score.score_text import MEANINGS
from penstock.score.scores import score, score_baseline
from penstock.score.target_figures import describe_classes, describe_confusion
from penstock.settings.advice import to_flags
from penstock.settings.command_line import parse
from penstock.settings.commands import EVALUATE
from penstock.settings.prediction import EvaluateCall
from penstock.training.left_out import ADVICE, LeftOutPart
from raising import mentions, raises_with

BINARY = Task("adopted", "binary", ("no", "yes"))
NUMBERS = Task("price", "regression")
LABELS = Task("tags", "multilabel", ("x", "y"), (2,))


def make_evaluation(task, truth, predicted, **more) -> Evaluation:
    records = (task, np.array(truth), np.array(predicted))
    return Evaluation(
        split="test",
        records=len(truth),
        tasks={task.name: task},
        targets={task.name: score(*records)},
        intervals={task.name: find_intervals(*records, 50, 0)},
        calibrated={task.name: CalibratedError(0.0464, 0.0815)} if task.labels else {},
        classes={task.name: describe_classes(*records)} if task.labels else {},
        confusion={task.name: describe_confusion(*records)} if task.labels else {},
        **more,
    )


def read_lines(capsys) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_evaluation_prints_scores_classes_and_confusions(capsys) -> None:
    print_evaluation(make_evaluation(BINARY, [0, 1, 1, 0], [0.2, 0.9, 0.4, 0.1]))
    lines = read_lines(capsys)
    assert lines[:3] == ["split 'test': 4 records", "", "adopted: binary, 2 labels"]
    assert lines[3].split("  ")[0] == "score"
    assert mentions(lines[5], "0.750")
    error = next(line for line in lines if line.startswith("calibration error"))
    assert " to " not in error  # no interval, but what to compare it with
    assert any(mentions(line, "calibration error 0.0464 0.0815") for line in lines)
    at = lines.index("class  records  precision  recall     F1   AUC")
    assert lines[at + 2 : at + 4] == [
        "no           2      0.667    1.00  0.800  1.00",
        "yes          2       1.00   0.500  0.667  1.00",
    ]
    at = lines.index("true class  predicted no  predicted yes")
    assert lines[at + 2 : at + 4] == [
        "no                     2              0",
        "yes                    1              1",
    ]


def test_score_that_is_not_defined_is_a_dash(capsys) -> None:
    print_evaluation(make_evaluation(BINARY, [1, 1], [0.2, 0.9], notes=("a\x1bnote",)))
    out, err = capsys.readouterr()
    assert any(line.split("  ")[0] == "AUC" and line.split()[1] == "–" for line in out.splitlines())
    assert err == "penstock: note: a\\x1bnote\n"


def test_importance_prints_bars_the_longest_first(capsys) -> None:
    found = make_evaluation(
        BINARY,
        [0, 1],
        [0.2, 0.9],
        importance_by_target={"adopted": {"age": 0.05, "photo": 0.2, "na\nme": -0.01, "bad": None}},
        ablation_by_target={"adopted": {"numbers": 0.05, "image": 0.2}},
        importance_records=1500,
    )
    print_evaluation(found)
    lines = read_lines(capsys)
    at = next(i for i, line in enumerate(lines) if line.startswith("Importance of the inputs"))
    assert "AUC" in lines[at]
    assert "(1,500 records)" in lines[at + 1]
    assert [line.split() for line in lines[at + 4 : at + 8]] == [
        ["photo", "0.200", "█" * 24],
        ["age", "0.0500", "█" * 6],
        ["na\\nme", "-0.0100"],
        ["bad", "–"],
    ]
    assert mentions(lines[at + 9], "fields")
    assert lines[at + 12].split() == ["image", "0.200", "█" * 24]


@pytest.mark.parametrize(
    ("trials", "header", "row"),
    [
        ({}, ["part", "drop of AUC"], ["text", "0.200"]),
        ({"text": 0.7}, ["part", "drop of AUC", "AUC in trials"], ["text", "0.200", "0.700"]),
    ],
)
def test_parts_print_the_trials_if_there_were_any(capsys, trials, header, row) -> None:
    parts = {"adopted": {"text": 0.2}}
    more = {"parts_by_target": parts, "part_trials": {"adopted": trials}}
    found = make_evaluation(BINARY, [0, 1], [0.2, 0.9], **more)
    assert ("in trials" in str(found)) == bool(trials)
    assert "drop of AUC without it" in str(found)
    print_evaluation(found)
    lines = read_lines(capsys)
    at = next(i for i, line in enumerate(lines) if line.startswith("part "))
    assert lines[at - 1].endswith(":")
    assert [re.split("  +", line) for line in (lines[at], lines[at + 2])] == [header, row]


def test_baseline_is_beside_the_scores(capsys) -> None:
    truth = np.array([0, 0, 0, 1])
    baselines = {"adopted": score_baseline(BINARY, truth)}
    found = make_evaluation(BINARY, truth, [0.2, 0.1, 0.3, 0.9], baselines=baselines)
    print_evaluation(found)
    lines = read_lines(capsys)
    assert re.split("  +", lines[3])[:4] == ["score", "value", "95 % interval", "baseline"]
    assert re.split("  +", lines[5])[3] == "0.750"
    assert re.split("  +", lines[7])[3] == "0.500"
    assert mentions(lines[12], "Baseline: most frequent class, no, probabilities")
    assert lines[12] in str(found).replace("  Baseline", "Baseline")
    numbers = score_baseline(NUMBERS, np.array([2.0, 4.0]))
    print_evaluation(make_evaluation(NUMBERS, [2.0, 4.0], [2.0, 3.0], baselines={"price": numbers}))
    lines = read_lines(capsys)
    assert re.split("  +", lines[5]) == ["RMSE", "0.707", "0.00 to 1.00", "1.00", MEANINGS["rmse"]]
    assert mentions(lines[9], "Baseline: mean")


def test_parts_and_values_that_the_model_does_not_read_are_named(capsys) -> None:
    mistake = Mistake(7, "a.tfrecord", 3, "no", "yes", 0.9, 4.4, {"age": 3.25, "note": "sh\x1by"})
    parts = (LeftOutPart("text", ("no\x1bte",), "It is noise."),)
    found = make_evaluation(
        BINARY, [0, 1], [0.2, 0.9], left_out=parts, unread=("note",), mistakes={"adopted": [mistake]}
    )
    print_evaluation(found)
    lines = read_lines(capsys)
    assert lines[1:3] == ["Not read by the model: text (no\\x1bte). It is noise.", to_flags(ADVICE)]
    assert lines[-1].endswith("age=3.25, note=sh\\x1by (not read)")
    text = str(found)
    assert ADVICE in text
    assert "(not read)" in text
    form = found.to_json()
    assert (form["left_out_parts"], form["unread"]) == ({"text": ["no\x1bte"]}, ["note"])
    assert form["left_out_reasons"] == {"text": "It is noise."}


def test_importance_of_many_fields_prints_those_that_matter_most(capsys) -> None:
    drops = {f"f{i}": i / 100 for i in range(33)}
    print_evaluation(
        make_evaluation(
            BINARY,
            [0, 1],
            [0.2, 0.9],
            importance_by_target={"adopted": drops},
            ablation_by_target={"adopted": {"numbers": 0.4}},
        )
    )
    lines = read_lines(capsys)
    assert mentions(lines, "3 --json")
    assert any(line.startswith("f32 ") for line in lines)
    assert not any(line.startswith("f2 ") for line in lines)


def test_slices_and_mistakes_are_tables(capsys) -> None:
    scores = score(BINARY, np.array([0, 1]), np.array([0.2, 0.9]))
    mistake = Mistake(
        7, "a.tfrecord", 3, "no", "yes", 0.9876, 4.4, {"age": 3.25, "name": "Rex\n", "ids": [1, 2]}
    )
    found = make_evaluation(
        BINARY,
        [0, 1],
        [0.2, 0.9],
        slices={
            "breed": [
                SliceScores("siamese", None, None, 2, {"adopted": scores}),
                SliceScores(None, 1.0, 2.5, 1, {"adopted": dict.fromkeys(scores)}),
                SliceScores(None, None, None, 1, {"adopted": dict.fromkeys(scores)}),
            ]
        },
        mistakes={"adopted": [mistake]},
    )
    print_evaluation(found)
    lines = read_lines(capsys)
    at = lines.index("By breed:")
    assert lines[at + 1].split("  ")[-1].strip() == "log loss"
    assert lines[at + 3 : at + 6] == [
        "siamese          2      1.00  1.00  1.00     0.164",
        "1 to 2.5         1         –     –     –         –",
        "(missing)        1         –     –     –         –",
    ]
    at = lines.index("Worst mistakes:")
    assert lines[at + 1].split() == ["record", "truth", "prediction", "probability", "inputs"]
    assert lines[at + 3].split(maxsplit=4) == [
        "7",
        "no",
        "yes",
        "0.988",
        "age=3.25, name=Rex\\n, ids=[1, 2]",
    ]


def test_numbers_and_sets_of_labels_print_how_far_off_they_are(capsys) -> None:
    mistake = Mistake(0, "a.tfrecord", 0, 2.0, 12345.678, None, 12343.678, {})
    print_evaluation(make_evaluation(NUMBERS, [2.0, 3.0], [12345.678, 3.0], mistakes={"price": [mistake]}))
    lines = read_lines(capsys)
    assert lines[-3].split()[:4] == ["record", "truth", "prediction", "error"]
    assert lines[-1].split() == ["0", "2", "12,346", "12,344"]
    mistake = Mistake(0, "a.tfrecord", 0, ["x", "y"], [], None, 1.5, {})
    evaluation = make_evaluation(
        LABELS, [[1, 1], [0, 1]], [[0.1, 0.2], [0.3, 0.9]], mistakes={"tags": [mistake]}
    )
    print_evaluation(evaluation)
    lines = read_lines(capsys)
    assert "log loss" in lines[-3]
    assert lines[-1].split() == ["0", "x,", "y", "none", "1.50"]
    assert not any("true class" in line for line in lines)


def test_many_classes_are_cut_and_their_confusion_left_out(capsys) -> None:
    task = Task("breed", "multiclass", tuple(f"b{i}" for i in range(25)))
    print_evaluation(make_evaluation(task, np.arange(25), np.eye(25)))
    lines = read_lines(capsys)
    assert mentions(lines, "5 --json")
    assert not any("true class" in line for line in lines)


def test_flags_of_predictions_are_repeated_and_others_left_out() -> None:
    words = [
        "run",
        "a.csv",
        "--slice",
        "b",
        "--no-importance",
        "--seed=3",
        "--missing",
        "NA",
        "--split",
        "test",
        "--threads",
        "2",
    ]
    kept = ["run", "a.csv", "--missing", "NA", "--split", "test", "--threads", "2"]
    assert repeat_words(parse(EVALUATE, words), evaluate._OWN_FLAGS) == kept


def test_flags_reach_the_options_and_the_model_is_loaded_when_it_is_needed(monkeypatch) -> None:
    monkeypatch.setattr(arguments, "load_model", lambda text: f"model of {text}")
    words = "runs/pets x.csv --slice breed --slice age --missing NA --max-rejects 3 --no-importance"
    call = parse(EVALUATE, [*words.split(), "--model", "m.py:build"])
    options = arguments.read_with_model(call, EvaluateCall)
    assert options == EvaluateCall(
        slices=("breed", "age"), missing=("", "NA"), max_skipped=3, importance=False, model=options.model
    )
    assert options.model() == "model of m.py:build"
    assert arguments.repeat_model(call) == ["--model", "m.py:build"]
    assert call.notes == ("--max-rejects is now --max-skipped",)


def test_tasks_without_a_cluster_are_refused_by_the_flag() -> None:
    with raises_with(OptionError, "--threads local 2 ray"):
        parse(EVALUATE, ["run", "--threads", "2"]).read(EvaluateCall)


def test_scores_are_computed_without_keras_and_pyarrow():
    code = (
        "import sys, penstock.score.split_evaluation, penstock.score.evaluation\n"
        "print(sorted({'keras', 'tensorflow', 'pyarrow', 'jax', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
