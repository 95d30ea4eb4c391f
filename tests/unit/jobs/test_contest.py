"""What each input tells alone and all tell together, as a table."""

from penstock.jobs.contest import Contest, Entrant, find_guess, write_markdown

ALONE = Entrant("photo alone", ("photo",), 0.6166, 0.65512, 5.26, 12, 2345.6, 0.02)
TOGETHER = Entrant("all together", ("photo", "note"), 0.9333, 0.98871, 12.94, 11, 1234.5, 0.00123)
CONTEST = Contest((ALONE,), TOGETHER, 0.56333, "no", 300, 2400)


def test_rows_of_a_contest_begin_with_the_guess_and_end_with_all() -> None:
    assert CONTEST.header == ("What the model sees", "Accuracy", "AUC", "Training")
    assert CONTEST.rows() == [
        ("nothing: says 'no' always", "0.56", "0.50", ""),
        ("photo alone", "0.62", "0.66", "5.3 s"),
        ("all together", "0.93", "0.99", "12.9 s"),
    ]


def test_contest_explains_its_words_and_says_how_fast_it_was() -> None:
    assert CONTEST.explain() == [
        "Accuracy: which part of the 300 flowers of the test split, which no model saw before, was told "
        "rightly.",
        "AUC: how often a flower that sets seed is ranked above one that does not; 0.50 is chance.",
        "Speed, all together: 11 epochs of 2,400 records, 1,234 records/s, 0.1 % of the time waiting for "
        "input.",
    ]


def test_contest_as_json_has_every_model_by_its_inputs() -> None:
    found = CONTEST.to_json()
    assert (found["guess"], found["test_records"], list(found["alone"])) == (0.5633, 300, ["photo"])
    assert found["together"] == {
        "accuracy": 0.9333,
        "auc": 0.9887,
        "seconds": 12.94,
        "epochs": 11,
        "records_per_second": 1234,
        "waiting": 0.0012,
    }


def test_markdown_has_a_line_a_row_with_figures_to_the_right() -> None:
    assert write_markdown(("Metric", "Value"), [("auc", "0.987")]) == [
        "| Metric | Value |",
        "|---|--:|",
        "| auc | 0.987 |",
    ]


def test_guess_is_the_most_frequent_answer_of_the_train_split_judged_on_the_test_split() -> None:
    flowers = {
        "train": [{"seed": "yes"}, {"seed": "no"}, {"seed": "no"}],
        "test": [{"seed": "yes"}, {"seed": "yes"}, {"seed": "yes"}, {"seed": "no"}],
    }
    assert find_guess(flowers, "seed") == ("no", 0.25)
