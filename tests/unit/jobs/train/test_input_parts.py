"""Parts of the inputs: which ones short trials on validation keep, and what a run records about them."""

import numpy as np
import pytest
import yaml

import penstock as ps
from penstock.errors import OptionError, StateError
from raising import mentions, raises_with
from training_data import Listener

keras = pytest.importorskip("keras")
from penstock.jobs.train import input_parts  # noqa: E402
from penstock.jobs.train.input_parts import (  # noqa: E402
    PartChoice,
    PartTrial,
    add_parts,
    is_lower,
)
from penstock.jobs.train.trial import compute_losses  # noqa: E402
from penstock.model.task import Task  # noqa: E402
from penstock.score.importance import find_parts  # noqa: E402
from penstock.training.options import TrainOptions  # noqa: E402
from penstock.training.train import Training  # noqa: E402

SMALL = ps.options.ModelOptions(preset="small")
WORDS = [
    "ash",
    "birch",
    "cedar",
    "elm",
    "fir",
    "hazel",
    "larch",
    "maple",
    "oak",
    "pine",
    "rowan",
    "spruce",
    "willow",
    "yew",
    "alder",
    "aspen",
]


def make_losses(mean, seed=0, rows=400):
    return np.abs(np.random.default_rng(seed).normal(mean, 0.3, rows))


def choose(found, *, is_sample=False):
    """Return the parts that are used, given losses by names of parts, and the trials that were made."""
    tried = []

    def find_losses(parts):
        tried.append(" + ".join(parts))
        return found.get(tried[-1])

    parts = tuple(dict.fromkeys(part for name in found for part in name.split(" + ")))
    return add_parts(parts, find_losses, ("image", "tensor"), is_sample=is_sample), tried


def test_part_that_lowers_the_loss_is_kept():
    base = make_losses(1.0)
    found = {"table": base, "text": make_losses(1.5, 1), "table + text": base - 0.1}
    assert choose(found) == (["table", "text"], ["table", "text", "table + text"])


@pytest.mark.parametrize("gain", [-0.1, 0.0])
def test_part_that_does_not_lower_the_loss_is_left_out(gain):
    base = make_losses(1.0)
    found = {"table": base, "image": make_losses(2.0, 1), "table + image": base - gain}
    assert choose(found)[0] == ["table"]


def test_gain_within_the_noise_is_not_enough():
    base, noise = make_losses(5.0), np.random.default_rng(3).normal(0, 4, 400)
    for errors, used in ((0.2, ["table"]), (0.8, ["table", "image"])):
        gains = noise - noise.mean() + errors * noise.std(ddof=1) / 20
        found = {"table": base, "image": base + 1, "table + image": base - gains}
        assert choose(found)[0] == used
        assert choose(found, is_sample=True)[0] == used


def test_gain_of_a_small_share_of_the_loss_is_not_enough():
    base = make_losses(1.0)
    assert is_lower(base, base * 0.985)
    assert not is_lower(base, base * 0.995)
    assert is_lower(base, base * 0.995, is_sample=True)


def test_parts_are_added_in_the_order_of_their_losses_and_images_last():
    base = make_losses(1.0)
    found = {
        "image": base,
        "table": base + 1,
        "text": base + 0.5,
        "table + text": base + 0.6,
        "image + text": base - 0.1,
    }
    used, tried = choose(found)
    assert used == ["text", "image"]
    assert tried == ["table", "text", "table + text", "image + text", "image"]


def test_parts_that_images_do_not_need_are_left_out():
    base = make_losses(1.0)
    found = {
        "table": base + 1,
        "text": base + 2,
        "table + text": base + 2,
        "table + image": base,
        "image": base,
    }
    used, tried = choose(found)
    assert used == ["image"]
    assert tried[-2:] == ["table + image", "image"]
    assert choose({**found, "image": None})[0] == ["table", "image"]


def test_images_are_tried_alone_where_there_is_nothing_else():
    base = make_losses(1.0)
    used, tried = choose({"image": base, "tensor": base + 1, "image + tensor": base - 0.1})
    assert used == ["image", "tensor"]
    assert tried == ["image", "tensor", "image + tensor"]


def test_failed_trial_is_no_reason_to_keep_or_to_stop():
    base = make_losses(1.0)
    assert choose({"table": None, "text": base, "table + text": base - 0.1})[0] == ["text", "table"]
    assert choose({"table": base, "text": base + 1, "table + text": None})[0] == ["table"]
    assert choose({"table": None, "text": None})[0] == ["table", "text"]


def test_equal_losses_are_no_gain():
    assert not is_lower(np.ones(5), np.ones(5))
    assert not is_lower(np.ones(5), np.ones(5), is_sample=True)
    assert is_lower(np.ones(1), np.zeros(1))


def test_losses_of_records_are_those_of_training():
    number = Task("y", "regression", mean=10.0, deviation=2.0)
    truth, predicted = np.array([10.0, 10.0]), np.array([12.0, 16.0])
    assert compute_losses(number, truth, predicted).tolist() == [1.0, 9.0]
    assert compute_losses(number, truth, predicted, is_robust=True).tolist() == [1.0, 5.0]
    logs = Task("y", "regression", method="log1p", shift=1.0, factor=2.0)
    assert compute_losses(logs, np.expm1([1.0, 2.0]), np.expm1([1.5, 2.0])).round(6).tolist() == [1.0, 0.0]
    assert logs.scale(logs.undo(np.array([-0.5, 3.0]))).round(6).tolist() == [-0.5, 3.0]
    kinds = Task("y", "multiclass", ("a", "b", "c"))
    chances = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])
    assert np.allclose(compute_losses(kinds, np.array([1.0, 1.0]), chances), -np.log([0.25, 0.8]))
    labels = Task("y", "multilabel", ("a", "b"), (2,))
    chances = np.array([[0.5, 0.25]])
    assert np.allclose(compute_losses(labels, np.array([[1.0, 0.0]]), chances), -np.log([0.5, 0.75]).mean())


def test_note_names_parts_fields_losses_and_the_flag():
    trials = {"table": PartTrial(0.5), "image": PartTrial(0.9), "table + image": PartTrial(0.625)}
    assert PartChoice(("table", "image"), {}, trials).describe() == ""
    note = PartChoice(("table",), {"image": ("front", "back")}, trials).describe()
    assert mentions(note, "image (front, back) table: 0.5 image: 0.9 table + image: 0.625 --parts all")


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Return a data set with photos that carry nothing, and another one with texts that do."""
    draws = np.random.default_rng(2)
    rows = 400
    x, kinds = draws.normal(size=rows), draws.choice(["a", "b"], rows).tolist()
    texts = [" ".join(WORDS[word] for word in row) for row in draws.integers(0, len(WORDS), (rows, 5))]
    has_oak = np.array(["oak" in text.split() for text in texts])
    photos = list(draws.integers(0, 255, (rows, 8, 8, 3), np.uint8))
    noise = draws.normal(0, 0.5, rows)
    tables = {
        "useless": {"photo": photos, "y": 3 * x + noise},
        "useful": {"note": texts, "y": x + 5 * has_oak + noise},
    }
    fields = {"useless": {"photo": ps.fields.Image()}, "useful": {"note": ps.fields.Text()}}
    folder = tmp_path_factory.mktemp("notes")
    return {
        name: ps.convert(
            {"x": x.astype(np.float32), "kind": kinds, **columns},
            folder / name,
            target="y",
            fields=fields[name],
            split="train=0.5,validation=0.3,test=0.2",
        )
        for name, columns in tables.items()
    }


def train(data, out, **options):
    given = {"epochs": 12, "watcher": Listener(), "model_options": SMALL, **options}
    return ps.train(data, out=out, **given)


class Killer(Listener):
    """A watcher that ends a run like an interrupt, after its first epoch."""

    def epoch(self, look, *, is_best):
        raise KeyboardInterrupt


def read_parts(run):
    """Return what `run.yaml` holds about the parts."""
    return yaml.safe_load((run.folder / "run.yaml").read_text())["facts"].get("parts")


def test_useless_photos_are_left_out_and_named(notes, tmp_path):
    listener = Listener()
    run = train(notes["useless"], tmp_path / "run", watcher=listener)
    found = read_parts(run)
    assert (found["used"], found["left_out"]) == (["table"], {"image": ["photo"]})
    assert list(found["trials"]) == ["table", "table + image"]
    assert found["trials"]["table"]["scores"]["y"] > 0.5
    assert set(run.pipeline.inputs) == {"x", "kind"}
    assert mentions(listener.notes, "image (photo) --parts all")
    stored = yaml.safe_load((run.folder / "run.yaml").read_text())
    assert stored["fields"]["photo"] is None
    assert "photo" not in ps.open_run(run.folder).pipeline.fields

    shown = ps.evaluate(run, bootstrap=0)
    assert shown.left_out_parts == {"image": ["photo"]}
    assert shown.part_trials["y"]["table"] == found["trials"]["table"]["scores"]["y"]
    assert shown.parts_by_target == {}  # one part is used
    assert mentions(str(shown), "image (left out) table + image")
    assert shown.to_json()["part_trials"]["y"].keys() == found["trials"].keys()


def test_text_that_decides_is_kept_and_runs_are_equal(notes, tmp_path):
    listener = Listener()
    run = train(notes["useful"], tmp_path / "run", watcher=listener, epochs=30)
    found = read_parts(run)
    assert (found["used"], found["left_out"]) == (["table", "text"], {})
    losses = {name: trial["loss"] for name, trial in found["trials"].items()}
    assert losses["table + text"] < min(losses["table"], losses["text"])
    assert set(run.pipeline.inputs) >= {"x", "kind", "note"}
    assert not mentions(listener.notes, "--parts all")
    shown = ps.evaluate(run, bootstrap=0)
    drops = shown.parts_by_target["y"]
    assert list(drops) == ["table", "text"]
    assert min(drops.values()) > 0.02
    assert drops["text"] == shown.importance["note"]
    assert drops["table"] >= max(shown.importance["x"], shown.importance["kind"]) - 0.05


def test_run_killed_in_or_after_the_trials_ends_with_the_same_weights(notes, tmp_path, monkeypatch):
    options = {"epochs": 2, "checkpoint_steps": 1}
    whole = train(notes["useless"], tmp_path / "whole", **options)
    find_losses = input_parts._Trials.find_losses

    def fail_together(self, chosen):
        if len(chosen) == 2:
            raise KeyboardInterrupt
        return find_losses(self, chosen)

    with monkeypatch.context() as patch:
        patch.setattr(input_parts._Trials, "find_losses", fail_together)
        with pytest.raises(KeyboardInterrupt):
            train(notes["useless"], tmp_path / "cut", **options)
    assert not (tmp_path / "cut" / "run.yaml").exists()

    with pytest.raises(KeyboardInterrupt):
        train(notes["useless"], tmp_path / "cut", resume=True, watcher=Killer(), **options)
    monkeypatch.setattr(input_parts._Trials, "find_losses", None)  # the choice is kept from here on
    run = train(notes["useless"], tmp_path / "cut", resume=True, **options)
    assert read_parts(run) == read_parts(whole)
    weights = [(each.folder / "weights.safetensors").read_bytes() for each in (whole, run)]
    assert weights[0] == weights[1]
    with raises_with(StateError, "parts", expected="auto", got="all"):
        train(notes["useless"], tmp_path / "cut", resume=True, parts="all", **options)


@pytest.mark.parametrize("parts", ["all", ["image"], ("table", "image")])
def test_given_parts_need_no_trial(notes, tmp_path, monkeypatch, parts):
    monkeypatch.setattr(input_parts._Trials, "find_losses", None)
    run = train(notes["useless"], tmp_path / "run", parts=parts, epochs=1)
    assert read_parts(run) is None
    assert ("x" in run.pipeline.inputs) == (parts != ["image"])
    assert "photo" in run.pipeline.inputs
    again = train(notes["useless"], tmp_path / "run", parts=parts, epochs=1, resume=True)
    assert again.pipeline.fingerprint() == run.pipeline.fingerprint()


def test_without_validation_all_parts_are_used(tmp_path, monkeypatch):
    monkeypatch.setattr(input_parts._Trials, "find_losses", None)
    draws = np.random.default_rng(0)
    texts = [" ".join(draws.choice(WORDS, 6)) for _ in range(200)]
    columns = {"x": draws.normal(size=200), "note": texts, "y": draws.normal(size=200)}
    data = ps.convert(columns, tmp_path / "data", target="y", split="train=1.0")
    run = train(data, tmp_path / "run", epochs=1)
    assert read_parts(run) is None
    assert {"x", "note"} <= set(run.pipeline.inputs)


class FixedTrial:
    """What `run_trial` returns, with the same loss for each record."""

    def __init__(self, loss):
        self.loss = loss

    def find_losses(self, training):
        return np.full(60, self.loss)

    def score(self):
        return {}


def test_trials_have_few_records_small_images_and_few_epochs(notes, tmp_path, monkeypatch):
    found = []

    def run_trial(training, epochs):
        photo = training.pipeline.transforms.get("photo")
        loaders = training.make_loaders()
        with loaders.train.read(0) as batches:
            num_records = sum(len(targets["y"]) for _, targets in batches)
        found.append((num_records, None if photo is None else photo.fitted.size, epochs))
        return FixedTrial(1 / len(found))

    monkeypatch.setattr(input_parts, "run_trial", run_trial)
    monkeypatch.setattr(input_parts, "MOST_SIDE", 6)
    monkeypatch.setattr(input_parts, "MOST_IMAGES", 50)
    monkeypatch.setattr(input_parts, "MOST_PIXELS", 7 * 6 * 6 * 50)
    run = train(notes["useless"], tmp_path / "run", watcher=(listener := Listener()), epochs=1)
    assert [size for _, size, _ in found] == [None, (6, 6), (6, 6)]
    assert all(30 <= num_records <= 70 and epochs == 1 for num_records, _, epochs in found)
    assert run.pipeline.transforms["photo"].fitted.size == (8, 8)
    assert run.settings["train"]["cache"] is None
    assert len(set(listener.notes)) == len(listener.notes)
    found.clear()
    with pytest.raises(KeyboardInterrupt):
        train(notes["useless"], tmp_path / "long", watcher=Killer(), epochs=30)
    assert [epochs for *_, epochs in found] == [30, 7, 7]


def test_own_model_and_given_pipeline_use_all_parts(notes, tmp_path, monkeypatch):
    monkeypatch.setattr(input_parts._Trials, "find_losses", None)
    data = notes["useless"]
    pipeline = ps.Pipeline.fit(data)
    run = train(data, tmp_path / "given", pipeline=pipeline, epochs=1)
    assert set(run.pipeline.inputs) == set(pipeline.inputs)
    model = ps.build_model(data.schema, pipeline, SMALL)
    run = train(data, tmp_path / "own", model=model, model_options=None, epochs=1)
    assert set(run.pipeline.inputs) == set(pipeline.inputs)
    with raises_with(OptionError, "parts", expected="'auto' or 'all', as a pipeline is given"):
        train(data, tmp_path / "both", pipeline=pipeline, parts=["table"])


def test_unknown_part_is_refused(notes, tmp_path):
    with raises_with(OptionError, "parts 'imge' 'image'", got="['imge']"):
        train(notes["useless"], tmp_path / "run", parts=["imge"])
    with raises_with(
        OptionError, field="parts", expected="parts of the inputs: 'table' or 'image'", got="'text'"
    ) as caught:
        train(notes["useless"], tmp_path / "run", parts=["text"])
    assert "leave the option out" in caught.value.advice


def test_group_of_several_kinds_is_part_of_the_table(tmp_path):
    columns = {
        "x": np.arange(40) / 7,
        "vector": [[1.0, 2.0]] * 40,
        "note": ["oak and ash"] * 40,
        "y": np.arange(40) / 3,
    }
    fields = {"vector": ps.fields.Tensor((2,), "float32"), "note": ps.fields.Text()}
    data = ps.convert(columns, tmp_path / "data", target="y", fields=fields)
    pipeline = ps.Pipeline.fit(data)
    assert find_parts(pipeline) == {"table": ("x",), "text": ("note",), "tensor": ("vector",)}
    grouped = pipeline.copy().group("row", ["x", "vector"])
    assert find_parts(grouped) == {"table": ("x", "vector"), "text": ("note",)}
    assert list(grouped.without_fields(["note"]).inputs) == ["row"]
    assert "row" not in grouped.without_fields(["x", "vector"]).inputs


@pytest.mark.parametrize(("number", "share"), [(60, 1.0), (2_000, 0.5), (500_000, 0.008)])
def test_sample_of_validation_records_is_large_enough_to_choose_by(number, share):
    training = Training(data=None, pipeline=None, folder=None, options=TrainOptions(), sample=0.008)
    assert training.plan_loaders().find_sample(number) == share
