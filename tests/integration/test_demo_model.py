"""The part of the demo that trains: all of it, on a small meadow."""

import contextlib
import io
import json
import re
from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.cli.walk import print_step
from penstock.jobs.contest import Contest
from penstock.jobs.demo import demo
from penstock.jobs.meadow import NUM_NEW, TARGET
from penstock.jobs.race import Timed
from penstock.jobs.trial import ALONE
from penstock.training.display import TrainingDisplay
from penstock.training.progress import Progress, Silence

FLAGS = "--epochs 2 --batch-size 64 --learning-rate 0.003 --seed 7"


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """A whole run on few flowers: its folder, its facts, and what was printed."""
    place = tmp_path_factory.mktemp("trial") / "demo"
    facts, results, out = {}, {}, io.StringIO()

    def watch(name: str) -> TrainingDisplay:
        return TrainingDisplay(out, label=name, keeps_epochs=not name)

    with contextlib.redirect_stdout(out):
        for number, step in enumerate(demo(place, watch=watch, num_flowers=200, epochs=2), 1):
            print_step(number, step)
            facts |= step.finish().facts
            results[step.title] = step.result
    return SimpleNamespace(place=place, facts=facts, results=results, text=out.getvalue())


def test_demo_goes_from_raw_files_to_a_report(trial) -> None:
    assert trial.facts["rows"] == 200
    assert trial.facts["splits"] == {"train": 160, "validation": 20, "test": 20}
    assert set(trial.facts["alone"]) == {"photo", "note", "visit hours", "table columns"}
    for figures in (trial.facts["together"], *trial.facts["alone"].values()):
        assert 0 <= figures["accuracy"] <= 1
        assert 0 <= figures["auc"] <= 1
        assert figures["epochs"] == 2
        assert figures["seconds"] > 0
        assert figures["records_per_second"] > 0
        assert 0 <= figures["waiting"] <= 1
    json.dumps(trial.facts)  # `--json` prints them


def test_demo_trains_each_model_alone_on_its_own_fields_with_the_same_settings(trial) -> None:
    runs = {name: ps.open_run(trial.place / "runs" / name.replace(" ", "-")) for name in ALONE}
    for name, fields in ALONE.items():
        assert set(runs[name].pipeline.fields) - {TARGET} == set(fields)
        assert runs[name].settings["train"] == runs["photo alone"].settings["train"]
    together = ps.open_run(trial.facts["run"])
    assert together.settings["train"] == runs["photo alone"].settings["train"]
    default = ps.Pipeline.fit(ps.open(trial.place / "flowers"))
    assert together.pipeline.fingerprint() == default.fingerprint()  # as the command has it that is shown


def test_demo_figures_are_those_of_an_evaluation_on_the_test_split(trial) -> None:
    flowers = ps.open(trial.place / "flowers")
    found = ps.evaluate(trial.place / "runs" / "note-alone", flowers["test"], bootstrap=0, importance=False)
    assert found.targets[TARGET]["accuracy"] == pytest.approx(
        trial.facts["alone"]["note"]["accuracy"], abs=1e-4
    )
    stored = json.loads((trial.place / "evaluation.json").read_text())
    assert stored["records"] == 20
    assert stored["targets"][TARGET]["auc"] == pytest.approx(trial.facts["together"]["auc"], abs=1e-4)


def test_demo_predicts_every_new_row(trial) -> None:
    lines = (trial.place / "predicted.csv").read_text().splitlines()
    assert lines[0].startswith(f"id,{TARGET},{TARGET}_probability,{TARGET}_probability_")
    assert [line.split(",")[0] for line in lines[1:]] == [f"flower-{210 + n}" for n in range(NUM_NEW)]
    assert trial.facts["predicted"] == NUM_NEW
    right = f"{trial.facts['right']} of {NUM_NEW} are right, as only the maker of this meadow can know.\n"
    assert right in trial.text


def test_demo_prints_what_to_type_before_each_result(trial) -> None:
    place = trial.place
    run = f"{place}/runs/all-together"
    for typed in (
        f"$ head -4 {place}/flowers.csv\n",
        f"$ penstock convert {place}/flowers.csv {place}/flowers --id id --target sets_seed\n",
        f"$ penstock inspect {place}/flowers\n",
        f"$ penstock train {place}/flowers --out {run} {FLAGS}\n\nepoch 1/2: ",
        f"$ penstock evaluate {run}\n\nsplit 'test': 20 records\n",
        f"$ penstock predict {run} {place}/new.csv --out {place}/predicted.csv\n",
        ">>> for seen in [['photo'], ['note'], ['visit_hours'], ['petal_cm', 'soil', 'plot', 'seen_on']]:\n",
    ):
        assert typed in trial.text
    assert "\x1b" not in trial.text
    assert re.search(
        r"\nphoto alone: .+\nnote alone: .+\nvisit hours alone: .+\ntable columns alone: .+\n", trial.text
    )


def test_demo_code_for_one_input_alone_runs_as_printed(trial, tmp_path, monkeypatch, capsys) -> None:
    lines = re.search(r"(?:^(?:>>>|\.\.\.) .*\n)+", trial.text, re.MULTILINE)[0].splitlines()
    code = "\n".join(line[4:] for line in lines).replace("epochs=2", "epochs=1")
    code = re.sub(r"for seen in .*:", "for seen in [['note']]:", code)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "demo", "exec"), {})  # noqa: S102
    assert re.fullmatch(r"\['note'\] [01]\.\d+\n", capsys.readouterr().out)


def test_demo_report_shows_the_table_that_was_printed(trial) -> None:
    report = (trial.place / "report.md").read_text()
    contest = trial.results["What does each input tell alone, what do all tell together?"]
    assert isinstance(contest, Contest)
    for row in contest.rows()[:-1]:
        assert f"| {' | '.join(row)} |\n" in report
        assert re.search(rf"^{re.escape(row[0])} +{row[1]} ", trial.text, re.MULTILINE)
    assert f"| **all together** | **{contest.rows()[-1][1]}** |" in report
    assert (
        f"20 rows of `new.csv`, which it was asked about without the answer, {trial.facts['right']} were"
        in report
    )
    for line in contest.explain():
        assert f"- {line}\n" in report
        assert f"{line}\n" in trial.text


def test_speed_of_a_model_is_that_of_the_epochs_behind_the_first() -> None:
    timed = Timed(Silence())
    for epoch, (rate, waiting) in enumerate([(10.0, 0.9), (100.0, 0.1), (300.0, 0.3)]):
        look = Progress(epoch, 3, 5, 5, records_per_second=rate, waiting=waiting)
        timed.epoch(look, is_best=True)
        if not epoch:
            assert timed.measure() == (10.0, 0.9)
    assert timed.measure() == pytest.approx((150.0, 0.2))


@pytest.mark.long
def test_demo_shows_that_all_inputs_together_tell_more_than_the_best_alone(tmp_path, capsys) -> None:
    assert main(["demo", "--json", "--out", str(tmp_path / "demo")]) == 0
    facts = json.loads(capsys.readouterr().out)
    alone = [figures["accuracy"] for figures in facts["alone"].values()]
    assert max(alone) < 0.75
    assert facts["together"]["accuracy"] > max(alone) + 0.1
    assert facts["right"] > 14
