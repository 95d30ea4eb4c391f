"""Records that are held out for validation follow the rule of the splits: no group is on both sides."""

import os

import numpy as np
import pytest

import penstock as ps
from penstock.errors import OptionError
from penstock.settings.training import TrainCall
from raising import containing
from training_data import Listener

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("keras")
from penstock.jobs.train.division import hold_out_records
from penstock.jobs.train.job import TrainJob
from penstock.jobs.train.train import plan_run, plan_training

NUM_ROWS, NUM_OWNERS, SHARE = 300, 30, 0.2
OWNERS = np.random.default_rng(1).integers(0, NUM_OWNERS, NUM_ROWS)
KINDS = np.random.default_rng(2).integers(0, 2, NUM_OWNERS)[OWNERS]
WHOLE = {"split": "train=1.0", "target": "kind"}


def make_rows(**columns):
    """Return rows, several for each owner, with the number of the owner as the input x."""
    return {"x": OWNERS * 0.5, "kind": [("no", "yes")[kind] for kind in KINDS], **columns}


def open_loaders(data, folder, **choices):
    watcher = Listener()
    options = TrainCall(**{"hold_out": SHARE, "batch_size": 50, "seed": 3, **choices})
    plan = plan_training(TrainJob(data=data, options=options), folder / "run")
    return plan, plan.make_loaders(watcher), watcher.notes


def list_inputs(loader, name="x"):
    return [value for inputs, *_ in loader for value in np.asarray(inputs[name]).ravel().tolist()]


RULES = {
    "group": ({"owner": OWNERS, "noise": np.arange(NUM_ROWS) * 0.1}, {"group": "owner"}),
    "id": ({"owner": OWNERS, "noise": np.arange(NUM_ROWS) * 0.1}, {"id": "owner"}),
    "column of splits": (
        {"owner": OWNERS, "noise": np.arange(NUM_ROWS) * 0.1, "part": ["train"] * NUM_ROWS},
        {"group": "owner", "split_by": "part", "split": None},
    ),
    "equal rows": ({}, {}),
}


@pytest.mark.parametrize("rule", RULES)
def test_y04_records_that_stay_together_are_held_out_together(tmp_path, rule):
    columns, options = RULES[rule]
    options = {name: each for name, each in {**WHOLE, **options}.items() if each is not None}
    data = ps.convert(make_rows(**columns), tmp_path / "set", **options)
    _, loaders, notes = open_loaders(data, tmp_path)
    trained, held = list_inputs(loaders.train), list_inputs(loaders.validation)
    assert len(trained) + len(held) == NUM_ROWS
    assert set(trained).isdisjoint(held)
    assert (loaders.num_train, loaders.num_validation) == (len(trained), len(held))
    assert abs(len(held) / NUM_ROWS - SHARE) < 0.06
    assert len(next(iter(loaders.read_targets()))["kind"]) == len(trained)
    assert any("held out for validation" in note for note in notes)


@pytest.mark.parametrize("share", [0.0, SHARE])
def test_hold_out_beside_a_validation_split_has_a_note(tmp_path, share):
    data = ps.convert(make_rows(), tmp_path / "set", target="kind", split="train=0.8,validation=0.2")
    watcher = Listener()
    plan_run(TrainJob(data=data, options=TrainCall(hold_out=share)), tmp_path, watcher)
    assert watcher.notes == ([containing("`hold_out=0.2` has no effect", "'validation'")] if share else [])
    watcher = Listener()
    alone = ps.convert(make_rows(), tmp_path / "alone", **WHOLE)
    plan_run(TrainJob(data=alone, options=TrainCall(hold_out=share)), tmp_path, watcher)
    assert watcher.notes == []


def test_y04_by_time_the_newest_records_are_held_out(tmp_path):
    times = np.random.default_rng(4).permutation(NUM_ROWS)
    rows = make_rows(x=times * 0.5, when=times)
    when = {"when": ps.fields.Number("int64")}
    data = ps.convert(rows, tmp_path / "set", time="when", fields=when, **WHOLE)
    _, loaders, notes = open_loaders(data, tmp_path)
    held = list_inputs(loaders.validation)
    assert len(held) == SHARE * NUM_ROWS
    assert min(held) > max(list_inputs(loaders.train))
    assert any("the newest by 'when'" in note for note in notes)


@pytest.mark.parametrize("role", ["group", "id"])
def test_y04_by_time_values_of_a_group_on_both_sides_are_counted(tmp_path, role):
    times = np.random.default_rng(4).permutation(NUM_ROWS)
    rows = make_rows(x=times * 0.5, when=times, owner=OWNERS)
    fields = {"when": ps.fields.Number("int64"), "owner": ps.fields.Category("int64")}
    data = ps.convert(rows, tmp_path / "set", time="when", fields=fields, **{role: "owner"}, **WHOLE)
    plan, loaders, notes = open_loaders(data, tmp_path)
    held = list_inputs(loaders.validation)
    assert min(held) > max(list_inputs(loaders.train))  # the rule of the splits: the time alone decides
    is_held = plan.held_out.rows.to_mask()
    owners = np.array([sample["owner"] for sample in data["train"]])
    num_both = len(set(owners[is_held]) & set(owners[~is_held]))
    assert containing(f"hold_out: {num_both} of {NUM_OWNERS} values of 'owner'") in notes
    assert (containing("the newest by 'when', of any 'owner'") in notes) == (role == "group")


def test_y04_by_time_a_group_that_the_records_lack_is_noted(tmp_path):
    times = np.random.default_rng(4).permutation(NUM_ROWS)
    rows, when = make_rows(x=times * 0.5, when=times, owner=OWNERS), {"when": ps.fields.Number("int64")}
    data = ps.convert(
        rows, tmp_path / "set", time="when", group="owner", drop=["owner"], fields=when, **WHOLE
    )
    _, _, notes = open_loaders(data, tmp_path)
    assert containing("hold_out: the records lack 'owner'") in notes


def test_y04_pipeline_is_fitted_without_the_records_that_are_held_out(tmp_path):
    data = ps.convert(make_rows(owner=OWNERS), tmp_path / "set", group="owner", **WHOLE)
    plan, _, _ = open_loaders(data, tmp_path)
    is_held = plan.held_out.rows.to_mask()
    x = np.asarray(data["train"].columns(fields=["x"])["x"].values)
    (shift,) = plan.pipeline.transforms["x"].to_json()["fitted"]["shift"]
    assert np.isclose(shift, x[~is_held].mean(), rtol=1e-5)
    assert not np.isclose(shift, x.mean(), rtol=1e-4)


def test_y04_classes_are_divided_evenly_as_in_folds(tmp_path):
    rows = {"x": np.arange(200) * 0.5, "kind": ["rare" if i % 10 == 0 else "usual" for i in range(200)]}
    data = ps.convert(rows, tmp_path / "set", **WHOLE)
    held = hold_out_records(data, 0.25).rows.to_mask()
    kinds = np.array([sample["kind"] for sample in data["train"]])
    assert [int((kinds[held] == kind).sum()) for kind in ("rare", "usual")] == [5, 45]


def test_y04_records_without_a_target_take_no_share(tmp_path):
    kinds = [None if i % 2 else ("no", "yes")[i % 4 // 2] for i in range(NUM_ROWS)]
    data = ps.convert(make_rows(x=np.arange(NUM_ROWS) * 0.5, kind=kinds), tmp_path / "set", **WHOLE)
    _, loaders, _ = open_loaders(data, tmp_path)
    assert len(list_inputs(loaders.validation)) == SHARE * NUM_ROWS / 2
    assert len(list_inputs(loaders.train)) == (1 - SHARE) * NUM_ROWS / 2


def test_y04_bad_record_is_on_neither_side(tmp_path):
    data = ps.convert(make_rows(x=np.arange(NUM_ROWS) * 0.5), tmp_path / "set", compression="none", **WHOLE)
    path = data["train"].paths[0]
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(whole)
    data = ps.open(path, target="kind", on_error="skip")
    _, loaders, _ = open_loaders(data, tmp_path)
    trained, held = list_inputs(loaders.train), list_inputs(loaders.validation)
    assert len(trained) + len(held) == NUM_ROWS - 1
    assert set(trained).isdisjoint(held)


def test_y04_records_of_one_group_cannot_be_divided(tmp_path):
    data = ps.convert(make_rows(owner=["one"] * NUM_ROWS), tmp_path / "set", group="owner", **WHOLE)
    _, loaders, notes = open_loaders(data, tmp_path)
    assert loaders.validation is None
    assert loaders.num_train == NUM_ROWS
    assert any("cannot be divided" in note and "'owner'" in note for note in notes)


@pytest.mark.parametrize("option", ["group", "time"])
def test_y04_rule_by_a_column_that_the_records_lack_is_an_error(tmp_path, option):
    rows = make_rows(owner=OWNERS + 0.5 if option == "time" else OWNERS)
    data = ps.convert(rows, tmp_path / "set", drop=["owner"], **{option: "owner"}, **WHOLE)
    with pytest.raises(OptionError) as caught:
        hold_out_records(data, SHARE)
    assert (caught.value.field, caught.value.got) == ("hold_out", "records without it")


def test_y04_run_whose_held_out_records_were_chosen_otherwise_is_not_continued(tmp_path):
    data = ps.convert(make_rows(owner=OWNERS), tmp_path / "set", group="owner", **WHOLE)
    plan, loaders, _ = open_loaders(data, tmp_path)
    assert plan.identify(loaders.train, None)["held_out"] == plan.held_out.rows.digest()
    alone, plain, _ = open_loaders(data, tmp_path, hold_out=0.0)
    assert "held_out" not in alone.identify(plain.train, None)
