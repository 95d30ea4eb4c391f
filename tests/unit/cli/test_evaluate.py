"""What `penstock evaluate` prints, and what it takes."""

import argparse
import re
import subprocess
import sys

import numpy as np
import pytest

from penstock.cli.evaluate import print_evaluation
from penstock.cli.model_arguments import EVALUATE
from penstock.model.task import Task
from penstock.score.class_report import describe_classes, describe_confusion
from penstock.score.evaluation import Evaluation, SliceScores
from penstock.score.intervals import find_intervals
from penstock.score.mistakes import Mistake
from penstock.score.scores import score
from raising import mentions

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
        classes={task.name: describe_classes(*records)} if task.labels else {},
        confusion={task.name: describe_confusion(*records)} if task.labels else {},
        **more,
    )


def read_lines(capsys) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_evaluation_prints_scores_classes_and_what_is_taken_for_what(capsys) -> None:
    print_evaluation(make_evaluation(BINARY, [0, 1, 1, 0], [0.2, 0.9, 0.4, 0.1]))
    lines = read_lines(capsys)
    assert lines[:3] == ["split 'test': 4 records", "", "adopted: binary, 2 labels"]
    assert lines[3].split("  ")[0] == "score"
    assert mentions(lines[5], "0.7500")
    at = lines.index("class  records  precision  recall      f1     auc")
    assert lines[at + 2 : at + 4] == [
        "no           2     0.6667  1.0000  0.8000  1.0000",
        "yes          2     1.0000  0.5000  0.6667  1.0000",
    ]
    at = lines.index("true class  predicted no  predicted yes")
    assert lines[at + 2 : at + 4] == [
        "no                     2              0",
        "yes                    1              1",
    ]


def test_score_that_is_not_defined_is_a_dash(capsys) -> None:
    print_evaluation(make_evaluation(BINARY, [1, 1], [0.2, 0.9], notes=("a\x1bnote",)))
    out, err = capsys.readouterr()
    assert any(line.startswith("auc                     –") for line in out.splitlines())
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
    assert "auc" in lines[at]
    assert "(1,500 records)" in lines[at + 1]
    assert [line.split() for line in lines[at + 4 : at + 8]] == [
        ["photo", "0.2000", "█" * 24],
        ["age", "0.0500", "█" * 6],
        ["na\\nme", "-0.0100"],
        ["bad", "–"],
    ]
    assert mentions(lines[at + 9], "fields")
    assert lines[at + 12].split() == ["image", "0.2000", "█" * 24]


@pytest.mark.parametrize(
    ("trials", "header", "row"),
    [
        ({}, ["part", "drop of auc"], ["text", "0.2000"]),
        ({"text": 0.7}, ["part", "drop of auc", "auc in trials"], ["text", "0.2000", "0.7000"]),
    ],
)
def test_parts_print_the_trials_if_there_were_any(capsys, trials, header, row) -> None:
    parts = {"adopted": {"text": 0.2}}
    more = {"parts_by_target": parts, "part_trials": {"adopted": trials}}
    found = make_evaluation(BINARY, [0, 1], [0.2, 0.9], **more)
    assert ("in trials" in str(found)) == bool(trials)
    assert "drop of auc without it" in str(found)
    print_evaluation(found)
    lines = read_lines(capsys)
    at = next(i for i, line in enumerate(lines) if line.startswith("part "))
    assert lines[at - 1].endswith(":")
    assert [re.split("  +", line) for line in (lines[at], lines[at + 2])] == [header, row]


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
    assert mentions(lines[at + 1], "f1 log_loss")
    assert lines[at + 3 : at + 6] == [
        "siamese          2    1.0000  1.0000  1.0000    0.1643",
        "1 to 2.5         1         –       –       –         –",
        "(missing)        1         –       –       –         –",
    ]
    at = lines.index("Worst mistakes:")
    assert lines[at + 1].split() == ["record", "truth", "prediction", "probability", "inputs"]
    assert lines[at + 3].split(maxsplit=4) == [
        "7",
        "no",
        "yes",
        "0.9876",
        "age=3.25, name=Rex\\n, ids=[1, 2]",
    ]


def test_numbers_and_sets_of_labels_print_how_far_off_they_are(capsys) -> None:
    mistake = Mistake(0, "a.tfrecord", 0, 2.0, 12345.678, None, 12343.678, {})
    print_evaluation(make_evaluation(NUMBERS, [2.0, 3.0], [12345.678, 3.0], mistakes={"price": [mistake]}))
    lines = read_lines(capsys)
    assert lines[-3].split()[:4] == ["record", "truth", "prediction", "error"]
    assert lines[-1].split() == ["0", "2.0000", "12,345.7", "12,343.7"]
    mistake = Mistake(0, "a.tfrecord", 0, ["x", "y"], [], None, 1.5, {})
    evaluation = make_evaluation(
        LABELS, [[1, 1], [0, 1]], [[0.1, 0.2], [0.3, 0.9]], mistakes={"tags": [mistake]}
    )
    print_evaluation(evaluation)
    lines = read_lines(capsys)
    assert "log loss" in lines[-3]
    assert lines[-1].split() == ["0", "x,", "y", "none", "1.5000"]
    assert not any("true class" in line for line in lines)


def test_many_classes_are_cut_and_their_confusion_left_out(capsys) -> None:
    task = Task("breed", "multiclass", tuple(f"b{i}" for i in range(25)))
    print_evaluation(make_evaluation(task, np.arange(25), np.eye(25)))
    lines = read_lines(capsys)
    assert mentions(lines, "5 --json")
    assert not any("true class" in line for line in lines)


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    EVALUATE.add_arguments(parser)
    return parser.parse_args(words)


def test_arguments_have_the_defaults_of_the_options() -> None:
    args = parse("runs/pets", "--slice", "breed", "--slice", "age", "--mistakes", "9")
    assert (args.folder, args.paths, args.split) == ("runs/pets", [], None)
    assert (args.slice, args.mistakes, args.bootstrap) == (["breed", "age"], 9, 500)
    assert (args.no_importance, args.json, args.model) == (False, False, None)


def test_scores_are_computed_without_keras_and_pyarrow():
    code = (
        "import sys, penstock.score.split_evaluation, penstock.score.evaluation\n"
        "print(sorted({'keras', 'tensorflow', 'pyarrow', 'jax', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
