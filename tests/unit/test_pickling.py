"""Datasets, splits and pipelines in a pickle and as a deep copy: by reference to files, and by JSON."""

import copy
import json
import logging
import multiprocessing
import os
import pickle
import pickletools

import numpy as np
import pytest

import penstock as ps
from penstock.errors import ChangedFileError, MissingShardError, NoSuchPathError, NotPicklableError
from penstock.transform.output import Output
from record_files import example, write_plain


def send(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


BOTH = pytest.mark.parametrize("send", [send, copy.deepcopy, copy.copy])


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """A folder with a manifest."""
    table = {"x": np.arange(40.0), "kind": ["a", "b"] * 20, "y": ["no", "yes"] * 20}
    folder = tmp_path_factory.mktemp("pickling") / "data"
    ps.convert(table, folder, target="y", split="train=0.8,test=0.2")
    return folder


def list_samples(dataset):
    return {name: list(dataset[name]) for name in dataset}


@BOTH
def test_dataset_of_a_manifest_is_the_same_again(converted, send):
    data = ps.open(converted, on_error="collect", options=ps.options.ReadOptions(strict=True))
    again = send(data)
    assert again is not data
    assert (again.schema, again.splits, again.notes, again.paths, again.manifest) == (
        *(data.schema, data.splits, data.notes, data.paths),
        data.manifest,
    )
    assert str(list_samples(again)) == str(list_samples(data))
    assert again["train"].rejected == []  # "collect" is kept
    assert again["train"].as_source().fingerprint == data["train"].as_source().fingerprint


@BOTH
def test_dataset_of_bare_files_keeps_declarations(pets, send):
    fields = {"age": ps.fields.Category("int64")}
    data = ps.open(pets, fields=fields, target="age", id="name")
    again = send(data)
    assert again.schema == data.schema
    assert (again.schema["age"].role, again.schema["name"].role) == ("target", "id")
    assert (again.notes, again.payload) == (data.notes, data.payload)
    assert list_samples(again) == list_samples(data)


@BOTH
def test_dataset_with_a_schema_reads_these_fields_alone(pets, send):
    again = send(ps.open(pets, schema=ps.Schema({"age": ps.fields.Number("int64")})))
    assert again["test"][0] == {"age": 9}


@pytest.mark.parametrize(
    "find",
    [
        lambda pets: os.fspath(pets / "train*.tfrecord"),
        lambda pets: sorted(pets.glob("train*")),
        lambda pets: iter(sorted(pets.glob("train*"))),
        lambda pets: {os.fspath(each) for each in pets.glob("train*")},
    ],
    ids=["glob", "list", "iterator", "set"],
)
def test_dataset_of_several_paths_is_the_same_again(pets, find):
    again = send(ps.open(find(pets)))
    assert sorted(sample["name"] for sample in again["train"]) == ["Ada", "Bo", "Rex"]


def test_relative_paths_start_at_the_folder_in_which_they_were_opened(pets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = ps.open("pets")
    monkeypatch.chdir("/")
    assert list_samples(send(data)) == list_samples(ps.open(pets))


@BOTH
def test_split_is_the_same_again_without_its_dataset(pets, send):
    split = ps.open(pets)["train"]
    again = send(split)
    assert (again.name, list(again), again.schema) == (split.name, list(split), split.schema)
    assert again.as_source().fingerprint == split.as_source().fingerprint


def test_pickle_holds_no_records_and_no_classes(converted):
    data = pickle.dumps(ps.open(converted))
    names = [str(argument) for opcode, argument, _ in pickletools.genops(data) if argument is not None]
    assert len(data) < 3000
    assert [name for name in names if name.startswith("penstock.")] == ["penstock.dataset"]


def test_files_that_changed_are_an_error(pets):
    data = pickle.dumps(ps.open(pets))
    split = pickle.dumps(ps.open(pets)["test"])
    write_plain(pets / "train-00001-of-00002.tfrecord", [example(name="Bob", age=1)])
    with pytest.raises(ChangedFileError) as caught:
        pickle.loads(data)  # noqa: S301
    assert caught.value.path == os.fspath(pets)
    assert "split 'train'" in caught.value.what
    assert "ps.open" in caught.value.advice
    assert list(pickle.loads(split)) == [{"age": 9, "name": "Kim"}]  # noqa: S301 - which did not change


def test_split_that_is_new_is_an_error_for_the_dataset(pets):
    data = pickle.dumps(ps.open(pets))
    write_plain(pets / "validation-00000-of-00001.tfrecord", [example(name="Bob", age=1)])
    with pytest.raises(ChangedFileError) as caught:
        pickle.loads(data)  # noqa: S301
    assert "split 'validation'" in caught.value.what


def test_data_set_that_was_written_again_is_an_error(tmp_path):
    table = {"x": np.arange(40.0), "y": ["no", "yes"] * 20}
    data = pickle.dumps(ps.convert(table, tmp_path / "data", target="y"))
    ps.convert({**table, "x": np.arange(40.0) + 1}, tmp_path / "data", target="y", overwrite=True)
    with pytest.raises(ChangedFileError):  # of the same size, with other values
        pickle.loads(data)  # noqa: S301


def test_files_that_are_gone_are_named(pets, converted, tmp_path):
    data = pickle.dumps(ps.open(pets))
    (pets / "train-00001-of-00002.tfrecord").unlink()
    with pytest.raises(MissingShardError):
        pickle.loads(data)  # noqa: S301
    for path in pets.iterdir():
        path.unlink()
    pets.rmdir()
    with pytest.raises(NoSuchPathError) as caught:
        pickle.loads(data)  # noqa: S301
    assert caught.value.path == os.fspath(pets)


def test_warnings_of_opening_are_not_repeated(tmp_path, caplog):
    path = write_plain(tmp_path / "train.tfrecord", [example(n=1, mixed=1), example(n=2, mixed="a")])
    with caplog.at_level(logging.WARNING, "penstock"):
        data = ps.open(path)
        assert caplog.records
        caplog.clear()
        again = send(data)
    assert caplog.records == []
    assert again.notes == data.notes


def test_dataset_that_skips_records_counts_from_zero_again(pets):
    again = send(ps.open(pets, on_error="skip"))
    assert again["train"].num_skipped == 0


@BOTH
def test_pipeline_is_the_same_again(converted, send):
    data = ps.open(converted)
    pipeline = ps.Pipeline.fit(data).group("both", ["x", "kind"][:1])
    pipeline.notes["x"] = "a note"
    again = send(pipeline)
    assert again is not pipeline
    assert (again.fingerprint(), again.notes) == (pipeline.fingerprint(), pipeline.notes)
    assert json.dumps(again.to_json()) == json.dumps(pipeline.to_json())
    assert again.inputs == pipeline.inputs
    again.group("more", ["kind"])  # which does not reach the other
    assert "kind" in pipeline.inputs


def double(columns):
    return {"twice": columns["x"].values * 2}


def test_pipeline_with_a_function_is_copied_and_not_pickled(converted):
    pipeline = ps.Pipeline.fit(ps.open(converted)).map(double, ["x"], [Output("twice", "float32", ())])
    with pytest.raises(NotPicklableError) as caught:
        pickle.dumps(pipeline)
    assert isinstance(caught.value, TypeError)
    assert "'double'" in caught.value.what
    assert "Pipeline.from_json(form, functions={…})" in caught.value.advice
    assert copy.deepcopy(pipeline).maps == pipeline.maps == ("double",)
    # The advice works.
    again = ps.Pipeline.from_json(json.loads(json.dumps(pipeline.to_json())), functions={"double": double})
    assert again.fingerprint() == pipeline.fingerprint()


@BOTH
def test_loader_and_mixture_refuse_with_advice(converted, send):
    split = ps.open(converted)["train"]
    with pytest.raises(NotPicklableError) as caught:
        send(split.loader())
    assert isinstance(caught.value, TypeError)
    assert "state_dict()" in caught.value.advice
    with pytest.raises(NotPicklableError) as caught:
        send(ps.mix([split, split]))
    assert "ps.mix()" in caught.value.advice


def read_rest(split, pipeline, state, answers):
    loader = split.loader(pipeline, batch_size=4, shuffle=True, seed=3)
    loader.load_state_dict(state)
    answers.put([inputs["x"].tolist() for inputs, _ in loader])


def test_process_that_is_spawned_continues_with_what_the_advice_says(converted):
    split = ps.open(converted)["train"]
    pipeline = ps.Pipeline.fit(ps.open(converted))
    loader = split.loader(pipeline, batch_size=4, shuffle=True, seed=3)
    batches = iter(loader)
    next(batches)
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    child = spawn.Process(target=read_rest, args=(split, pipeline, loader.state_dict(), answers))
    child.start()
    try:
        found = answers.get(timeout=120)
    finally:
        child.join(60)
    assert found == [inputs["x"].tolist() for inputs, _ in batches]
    assert child.exitcode == 0
