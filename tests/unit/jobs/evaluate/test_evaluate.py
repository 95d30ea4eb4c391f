"""`penstock.evaluate`: what it opens, and what it refuses."""

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import penstock as ps
from fake_runs import FakeRun
from penstock.errors import NoSuchPathError, OptionError, SchemaError, UnknownNameError
from penstock.jobs.evaluate.evaluate import evaluate
from raising import containing, mentions, raises_with
from record_files import example, write_plain

QUICK = {"bootstrap": 0, "importance": False}


class KnownRun(FakeRun):
    """A run whose model gives a probability by the code of the kind."""

    def predictor(self):
        return lambda inputs: {"adopted": np.where(inputs["kind"] == self.code("dog"), 0.9, 0.1)}

    def code(self, kind):
        transform = self.pipeline.transforms["kind"]
        return transform.num_codes - len(transform.fitted.values) + transform.fitted.values.index(kind)


def convert(folder: Path, kinds, labels, **options) -> ps.Dataset:
    columns = {"id": [f"pet-{i}" for i in range(len(kinds))], "kind": list(kinds), "adopted": list(labels)}
    fields = {"kind": ps.fields.Category(), "adopted": ps.fields.Category()}
    shares = {"split": "train=0.5,test=0.5", "fields": fields, **options}
    return ps.convert(columns, folder, id="id", target="adopted", **shares)


@pytest.fixture(scope="module")
def pets(tmp_path_factory) -> ps.Dataset:
    kinds = ["dog", "cat"] * 40
    return convert(
        tmp_path_factory.mktemp("known") / "pets", kinds, ["yes" if kind == "dog" else "no" for kind in kinds]
    )


@pytest.fixture(scope="module")
def run(pets) -> KnownRun:
    return KnownRun(ps.Pipeline.fit(pets), pets.paths[0].parent)


@pytest.mark.parametrize("form", ["nothing", "path", "dataset", "split"])
def test_data_is_the_data_of_the_run_a_path_a_data_set_or_a_split(form, run, pets) -> None:
    data = {"nothing": None, "path": str(run.data), "dataset": pets, "split": pets["test"]}[form]
    found = evaluate(run, data, **QUICK)
    assert (found.split, found.records) == ("test", len(pets["test"]))
    assert found.targets["adopted"]["auc"] == 1.0


def test_split_may_be_named(run, pets) -> None:
    assert evaluate(run, split="train", **QUICK).records == len(pets["train"])


def test_split_that_does_not_exist_names_those_that_do(run) -> None:
    with pytest.raises(UnknownNameError) as caught:
        evaluate(run, split="tset")
    assert (caught.value.field, caught.value.got) == ("tset", "'train', 'test'")
    assert mentions(caught.value.advice, "penstock RUN labelled.csv")
    assert "ps.evaluate(run, data)" in caught.value.advice


def test_only_split_of_other_data_need_not_be_named(run, tmp_path) -> None:
    kinds = ["dog", "cat"] * 10
    other = convert(tmp_path / "other", kinds, ["yes", "no"] * 10, split="everything=1.0")
    assert evaluate(run, other, **QUICK).records == 20
    own = convert(tmp_path / "own", kinds, ["yes", "no"] * 10, split="train=1.0")
    with pytest.raises(UnknownNameError):  # what the run was trained on
        evaluate(KnownRun(run.pipeline, own.paths[0].parent), own.paths[0].parent, **QUICK)


def test_data_with_other_codes_goes_through_the_pipeline_of_the_run(run, tmp_path) -> None:
    # Fitted to this, "cat" would have the code that "dog" has in the run, and an unseen kind a separate one.
    kinds = ["cat", "cat", "dog", "newt"] * 20
    other = convert(tmp_path / "other", kinds, ["yes" if kind == "dog" else "no" for kind in kinds])
    own = KnownRun(ps.Pipeline.fit(other), tmp_path / "other")
    assert own.code("dog") != run.code("dog")
    found = evaluate(run, other, slices="kind", **QUICK)
    assert found.targets["adopted"]["accuracy"] == 1.0
    assert {each.value for each in found.slices["kind"]} == {"cat", "dog", "newt"}


def test_foreign_records_are_read_as_the_run_knows_their_fields(run, tmp_path) -> None:
    # A text of many values, for all that bytes tell.
    names = ["dog", *(f"no kind {i}" for i in range(40))]
    records = [example(kind=kind, adopted="yes" if kind == "dog" else "no") for kind in names]
    write_plain(tmp_path / "test-00000-of-00001.tfrecord", records)
    found = evaluate(run, tmp_path, **QUICK)
    assert (found.records, found.targets["adopted"]["accuracy"]) == (41, 1.0)


def test_value_that_is_not_data_is_refused(run) -> None:
    with raises_with(OptionError, "source"):
        evaluate(run, {})


def test_data_set_of_the_run_that_has_moved_is_named(run) -> None:
    moved = KnownRun(run.pipeline, run.data / "elsewhere")
    with raises_with(NoSuchPathError, "RUN DATASET"):
        evaluate(moved)
    with pytest.raises(NoSuchPathError):
        evaluate(run, run.data / "elsewhere")


def test_data_with_another_type_or_without_a_field_is_refused(run, tmp_path) -> None:
    numbers = {"kind": ps.fields.Number("int64"), "adopted": ps.fields.Category()}
    other = convert(tmp_path / "numbers", range(40), ["yes", "no"] * 20, fields=numbers)
    with raises_with(
        SchemaError,
        field="kind",
        expected=containing("category", "(scalar string, 2 values)"),
        got=containing("(scalar int64)"),
    ):
        evaluate(run, other)
    (tmp_path / "foreign").mkdir()
    path = tmp_path / "foreign" / "test-00000-of-00001.tfrecord"
    write_plain(path, [example(adopted="yes", sort="dog")] * 4)
    with raises_with(SchemaError, field="kind", got="'adopted', 'sort'"):
        evaluate(run, path)


def test_stored_data_without_a_target_needs_labels(run, tmp_path) -> None:
    path = tmp_path / "test-00000-of-00001.tfrecord"
    write_plain(path, [example(kind="dog")] * 4)
    with pytest.raises(UnknownNameError) as caught:
        evaluate(run, path, **QUICK)
    assert caught.value.field == "adopted"
    assert "labels" in caught.value.expected
    assert "ps.predict" in caught.value.advice


def test_values_that_are_not_a_run_or_an_option_are_refused(run) -> None:
    with raises_with(OptionError, "run", got="3"):
        evaluate(3)  # type: ignore[arg-type]
    with raises_with(OptionError, "'bootstraps' 'bootstrap'"):
        evaluate(run, bootstraps=3)  # type: ignore[call-arg]


def trained_on(run: KnownRun, split: Any, folder: Path) -> KnownRun:
    """Return a run with a state that has the fingerprint of its train split."""
    folder.mkdir(exist_ok=True)
    state = {"identity": {"data": split.as_source().fingerprint}}
    (folder / "state.json").write_text(json.dumps(state))
    return KnownRun(run.pipeline, run.data, folder)


@pytest.mark.parametrize("form", ["nothing", "path", "dataset", "split"])
def test_data_set_that_was_made_again_is_noted(form, run, tmp_path) -> None:
    kinds = ["dog", "cat"] * 40
    labels = ["yes" if kind == "dog" else "no" for kind in kinds]
    first = convert(tmp_path / "pets", kinds, labels)
    trained = trained_on(KnownRun(run.pipeline, tmp_path / "pets"), first["train"], tmp_path / "run")
    for seed in (0, 1):
        data = convert(tmp_path / "pets", kinds, labels, seed=seed, overwrite=True)
        given = {"nothing": None, "path": tmp_path / "pets", "dataset": data, "split": data["test"]}[form]
        found = evaluate(trained, given, **QUICK)
        said = [note for note in found.notes if "the data set was made again" in note]
        assert len(said) == seed
        assert str(found).count("\nnote: the data set was made again") == seed
        assert found.to_json()["notes"] == list(found.notes)


def test_other_data_or_a_run_without_a_state_is_not_noted(run, pets, tmp_path) -> None:
    other = convert(tmp_path / "other", ["dog", "cat"] * 20, ["yes", "no"] * 20)
    for data in (other, other["test"], tmp_path / "other"):
        assert evaluate(trained_on(run, pets["train"], tmp_path / "run"), data, **QUICK).notes == ()
    (tmp_path / "empty").mkdir()
    assert evaluate(KnownRun(run.pipeline, run.data, tmp_path / "empty"), **QUICK).notes == ()


def list_training_notes(found) -> list[str]:
    assert all(f"note: {note}" in str(found) for note in found.notes)
    return [note for note in found.to_json()["notes"] if note.startswith("the model was trained on")]


@pytest.mark.parametrize("form", ["name", "dataset", "split", "copy"])
@pytest.mark.parametrize("has_state", [True, False])
def test_split_that_the_run_was_trained_on_is_noted(form, has_state, run, pets, tmp_path) -> None:
    trained = trained_on(run, pets["train"], tmp_path / "run") if has_state else run
    copy = tmp_path / "copy"
    shutil.copytree(run.data, copy)
    given = {"name": None, "dataset": pets, "split": pets["train"], "copy": copy}[form]
    name = None if form == "split" else "train"
    is_noted = has_state or form != "copy"  # a copy is recognized by the state alone
    assert len(list_training_notes(evaluate(trained, given, split=name, **QUICK))) == is_noted
    other = pets["test"] if form == "split" else given
    assert not list_training_notes(evaluate(trained, other, **QUICK))


def test_only_split_that_the_run_was_trained_on_is_noted_with_the_share_held_out(run, tmp_path) -> None:
    path = tmp_path / "pets.tfrecord"
    write_plain(path, [example(kind=kind, adopted=kind) for kind in ("yes", "no") * 20])
    fields = {"kind": ps.fields.Category(), "adopted": ps.fields.Category(role="target")}
    split = ps.open(path, schema=ps.Schema(fields))["all"]
    trained = trained_on(KnownRun(run.pipeline, path), split, tmp_path / "run")
    trained.own_data = path
    (note,) = list_training_notes(evaluate(trained, split="all", **QUICK))
    assert "held out" not in note
    trained.set_tables(facts={"validation": "held out of train"}, train={"hold_out": 0.25})
    (note,) = list_training_notes(evaluate(trained, split="all", **QUICK))
    assert mentions(note, "25%")


def test_raw_data_that_the_data_set_was_made_from_is_noted(run, tmp_path) -> None:
    for name in ("own", "other"):
        (tmp_path / f"{name}.csv").write_text("kind,adopted\n" + "dog,yes\ncat,no\n" * 10)
    known = KnownRun(run.pipeline, run.data)
    known.set_tables(source=str(tmp_path / "own.csv"))
    assert len(list_training_notes(evaluate(known, tmp_path / "own.csv", **QUICK))) == 1
    assert not list_training_notes(evaluate(known, str(tmp_path / "other.csv"), **QUICK))


def test_dates_are_shown_as_dates(run, tmp_path) -> None:
    days = [f"2020-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(80)]
    columns = {
        "id": [f"pet-{i}" for i in range(80)],
        "kind": ["dog", "cat"] * 40,
        "born": days,
        "adopted": ["no", "yes"] * 40,
    }
    fields = {"kind": ps.fields.Category(), "adopted": ps.fields.Category()}
    data = ps.convert(
        columns, tmp_path / "dated", id="id", target="adopted", fields=fields, split="train=0.5,test=0.5"
    )
    dated = KnownRun(ps.Pipeline.fit(data), tmp_path / "dated")
    found = evaluate(dated, slices="born", mistakes=2, **QUICK)
    ranges = [each.name.split(" to ") for each in found.slices["born"]]
    assert len(ranges) == 5
    assert all(low in days and high in days for low, high in ranges)
    assert {"form", "name"}.isdisjoint(found.slices["born"][0].to_json())
    assert [each.inputs["born"] in days for each in found.mistakes["adopted"]] == [True, True]
    assert json.dumps(found.to_json())


def test_functions_of_maps_are_handed_to_the_run(run, monkeypatch, tmp_path) -> None:
    given = []

    def open_run(path, model, functions):
        given.append((path, model, functions))
        return run

    monkeypatch.setitem(sys.modules, "penstock.training.run_model", ModuleType("run_model"))  # no Keras
    monkeypatch.setattr(sys.modules["penstock.jobs.evaluate.evaluate"], "open_run", open_run)
    functions = {"ratio": dict}
    evaluate(tmp_path, run.data, model="model", functions=functions, **QUICK)
    assert given == [(tmp_path, "model", functions)]
