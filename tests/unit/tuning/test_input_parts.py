"""Parts of the inputs: which ones short trials on validation keep, and what a run records about them."""

import re

import numpy as np
import pytest
import yaml

import penstock as ps
from penstock.errors import OptionError, StateError
from raising import mentions, raises_with
from training_data import Listener

keras = pytest.importorskip("keras")
from penstock.model.task import Task  # noqa: E402
from penstock.score.importance import find_parts  # noqa: E402
from penstock.settings.training import TrainOptions  # noqa: E402
from penstock.training.fit import Fit  # noqa: E402
from penstock.training.loaders import LoaderPlan  # noqa: E402
from penstock.training.run_facts import PartChoice, PartTrial  # noqa: E402
from penstock.training.train_plan import TrainPlan  # noqa: E402
from penstock.transform.pipeline import without_fields  # noqa: E402
from penstock.tuning import input_parts, trial  # noqa: E402
from penstock.tuning.input_parts import PartLosses, remove_parts  # noqa: E402
from penstock.tuning.trial import compute_losses  # noqa: E402

SMALL = ps.options.ModelOptions(preset="small")
TINY = SMALL.replace(units=(8,), members=1)  # where it does not matter what a model learns
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


def choose(found, exchanged, parts=("table", "text", "image"), first=True, scores=None):
    """Return the parts that are left out, and the trials that were made, given losses by names of parts."""
    tried = []

    def try_parts(chosen):
        tried.append(" + ".join(chosen))
        losses = found.get(tried[-1])
        if losses is None:
            return None
        return PartLosses(losses, exchanged if chosen == parts else {}, (scores or {}).get(tried[-1], {}))

    def find_first():
        return PartLosses(found[" + ".join(parts)], exchanged) if first else None

    return remove_parts(parts, find_first, try_parts), tried


BASE = make_losses(1.0)
WORSE = BASE + np.random.default_rng(5).normal(0.3, 0.3, len(BASE))
WORST = WORSE + np.random.default_rng(6).normal(0.3, 0.3, len(BASE))


def test_y02_parts_that_predictions_depend_on_need_no_trial():
    found = {"table + text + image": BASE}
    assert choose(found, {"table": WORSE, "text": WORSE, "image": WORSE}) == ({}, [])


def test_y02_doubtful_part_is_left_out_if_predictions_are_better_without_it():
    exchanged = {"table": WORST, "text": WORST, "image": BASE}
    found = {"table + text + image": WORSE, "table + text": BASE}
    reasons, tried = choose(found, exchanged)
    assert tried == ["table + text + image", "table + text"]
    assert list(reasons) == ["image"]
    losses = f"{WORSE.mean():#.3g} {BASE.mean():#.3g}"
    assert mentions(reasons["image"], f"{losses} standard errors on 400 records")


def test_y02_reason_has_as_many_digits_as_the_difference_of_its_losses_needs():
    better = BASE - np.random.default_rng(4).uniform(1e-6, 2e-6, len(BASE))
    exchanged = {"table": WORST, "text": WORST, "image": BASE}
    reasons, _ = choose({"table + text + image": BASE, "table + text": better}, exchanged)
    before, after = re.findall(r"\d\.\d+(?= with)", reasons["image"])
    assert float(before) > float(after)


@pytest.mark.parametrize("errors", [-3.0, 0.0, 1.9])
def test_y02_doubtful_part_is_kept_within_the_noise_of_validation(errors):
    noise = np.random.default_rng(3).normal(0, 0.3, len(BASE))
    gains = noise - noise.mean() + errors * noise.std(ddof=1) / np.sqrt(len(BASE))
    exchanged = {"table": WORSE, "text": WORSE, "image": BASE}
    found = {"table + text + image": BASE, "table + text": BASE - gains}
    assert choose(found, exchanged) == ({}, ["table + text + image", "table + text"])
    assert choose({**found, "table + text": BASE - gains - 0.1}, exchanged)[0].keys() == {"image"}


def test_y02_part_is_kept_if_a_score_is_higher_with_it():
    exchanged = {"table": WORST, "text": WORST, "image": BASE}
    found = {"table + text + image": WORSE, "table + text": BASE}
    for with_it, without in ((0.92, 0.89), (None, 0.9), (0.89, 0.92)):
        scores = {"table + text + image": {"y": with_it, "z": 0.5}, "table + text": {"y": without, "z": 0.5}}
        reasons, _ = choose(found, exchanged, scores=scores)
        assert list(reasons) == ([] if with_it == 0.92 else ["image"])


def test_part_without_any_effect_is_kept():
    same = np.ones(5)
    assert choose({"a + b": same, "b": same, "a": same}, {"a": same, "b": same}, ("a", "b"))[0] == {}


def test_parts_are_compared_with_those_that_are_left_and_one_always_is():
    better = WORSE - 1
    exchanged = {"table": BASE, "text": BASE - 0.1, "image": BASE - 0.2}
    trials = {"table + text": WORSE, "table": BASE, "table + text + image": WORSE + 1}
    reasons, tried = choose({**trials, "": better}, exchanged)
    assert list(reasons) == ["image", "text"]
    assert tried == ["table + text + image", "table + text", "table"]


def test_failed_trial_is_no_reason_to_leave_a_part_out():
    exchanged = {"table": WORSE, "image": BASE}
    assert choose({"table + image": WORSE}, exchanged, ("table", "image"))[0] == {}
    assert choose({"table": BASE}, exchanged, ("table", "image"), first=False) == ({}, [])


def test_losses_of_records_equal_losses_of_training():
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


def test_note_names_parts_fields_reason_and_the_flag():
    trials = {"table": PartTrial(0.5), "table + image": PartTrial(0.625)}
    assert PartChoice(("table", "image"), {}, trials).describe() == ""
    reasons = {"image": "The validation loss is 0.625 with it and 0.5 without it."}
    note = PartChoice(("table",), {"image": ("front", "back")}, trials, {}, reasons).describe()
    assert mentions(note, "image (front, back). The validation loss is 0.625 with it parts='all'")


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
    given = {"epochs": 12, "watcher": Listener(), "model_options": TINY, **options}
    return ps.train(data, out=out, **given)


class Killer(Listener):
    """A watcher that ends a run like an interrupt, after its first epoch."""

    def epoch(self, look, *, is_best):
        raise KeyboardInterrupt


def read_parts(run):
    """Return what `run.yaml` holds about the parts."""
    return yaml.safe_load((run.folder / "run.yaml").read_text())["facts"].get("parts")


def test_y02_useless_photos_are_left_out_and_named(notes, tmp_path, caplog):
    listener = Listener()
    run = train(notes["useless"], tmp_path / "run", watcher=listener, model_options=SMALL)
    assert any("Short trial on validation: inputs without image" in note for note in listener.notes)
    found = read_parts(run)
    assert (found["used"], found["left_out"]) == (["table"], {"image": ["photo"]})
    assert list(found["trials"]) == ["table + image", "table"]
    assert found["trials"]["table"]["loss"] < found["trials"]["table + image"]["loss"]
    assert mentions(found["reasons"]["image"], "standard errors on 120 records")
    assert found["trials"]["table"]["scores"]["y"] > 0.5
    assert set(run.pipeline.inputs) == {"x", "kind"}
    assert mentions(caplog.text, "image (photo) parts='all'")
    stored = yaml.safe_load((run.folder / "run.yaml").read_text())
    assert stored["fields"]["photo"] is None
    assert "photo" not in ps.open_run(run.folder).pipeline.fields

    shown = ps.evaluate(run, bootstrap=0)
    assert shown.left_out == run.left_out == ps.open_run(run.folder).left_out
    assert shown.left_out_parts == {"image": ["photo"]}
    assert shown.to_json()["left_out_reasons"]["image"]
    assert "photo" in shown.unread
    assert mentions(str(shown), "Not read by the model: image (photo) parts='all'")
    assert shown.part_trials["y"]["table"] == found["trials"]["table"]["scores"]["y"]
    assert shown.parts_by_target == {}  # one part is used
    assert mentions(str(shown), "image (left out) table + image")
    assert shown.to_json()["part_trials"]["y"].keys() == found["trials"].keys()


def test_text_that_decides_is_kept(notes, tmp_path, caplog):
    run = train(notes["useful"], tmp_path / "run", epochs=30, model_options=SMALL)
    found = read_parts(run)
    assert (found["used"], found["left_out"]) == (["table", "text"], {})
    assert list(found["trials"]) == ["table + text"]  # neither part is doubtful
    assert found["exchanged"]["text"] > 2 * found["trials"]["table + text"]["loss"]
    assert set(run.pipeline.inputs) >= {"x", "kind", "note"}
    assert not mentions(caplog.text, "parts='all'")
    shown = ps.evaluate(run, bootstrap=0)
    drops = shown.parts_by_target["y"]
    assert list(drops) == ["table", "text"]
    assert min(drops.values()) > 0.02
    assert drops["text"] == shown.importance["note"]
    assert drops["table"] >= max(shown.importance["x"], shown.importance["kind"]) - 0.05


def read_weights(run):
    return (run.folder / "weights.safetensors").read_bytes()


def test_run_killed_in_or_after_the_trials_ends_with_the_same_weights(notes, tmp_path, monkeypatch):
    options = {"epochs": 2, "checkpoint_steps": 1}
    out, data = tmp_path / "cut", notes["useless"]
    whole = train(data, tmp_path / "whole", **options)

    with pytest.raises(KeyboardInterrupt):  # in the run itself, before the choice
        train(data, out, watcher=Killer(), **options)
    assert (out / "checkpoints").exists()
    assert not (out / "run.yaml").exists()
    with monkeypatch.context() as patch:
        patch.setattr(input_parts, "run_trial", interrupt)  # in the trials after it
        patch.setattr(input_parts, "_DOUBT_ERRORS", np.inf)
        patch.setattr(input_parts, "MOST_SIDE", 7)  # a trial with all parts has smaller images than the run
        with pytest.raises(KeyboardInterrupt):
            train(data, out, resume=True, **options)
    assert not (out / "run.yaml").exists()

    run = train(data, out, resume=True, **options)
    assert read_parts(run) == read_parts(whole)
    assert read_weights(run) == read_weights(whole)
    monkeypatch.setattr(input_parts._Trials, "find_first", None)  # the choice is kept from here on
    run = train(data, out, resume=True, **options)
    assert read_weights(run) == read_weights(whole)
    with raises_with(StateError, "parts", expected="auto", got="all"):
        train(data, out, resume=True, parts="all", **options)


def interrupt(*_):
    raise KeyboardInterrupt


def test_call_that_fails_in_the_first_training_can_be_corrected(notes, tmp_path):
    out, data = tmp_path / "run", notes["useless"]
    with raises_with(OptionError, "monitor"):
        train(data, out, monitor="val_los", epochs=1)
    assert train(data, out, epochs=1).folder == out


def test_run_that_keeps_all_parts_is_trained_once(notes, tmp_path, monkeypatch):
    fits, fit = [], Fit.run_unfinished
    monkeypatch.setattr(Fit, "run_unfinished", lambda self: (fits.append(self.folder), fit(self))[1])
    monkeypatch.setattr(input_parts, "_DOUBT_ERRORS", -np.inf)
    listener = Listener()
    run = train(notes["useful"], tmp_path / "run", watcher=listener, epochs=2)
    assert fits == [run.folder]
    assert len(listener.epochs) == len(run.history) == 2
    assert len(set(listener.notes)) == len(listener.notes)
    given = train(notes["useful"], tmp_path / "given", epochs=2, parts="all")
    assert read_weights(run) == read_weights(given)
    assert run.config.facts.seconds.training is not None

    pair = train(notes["useful"], tmp_path / "pair", epochs=2, ensemble=2)
    assert fits[1:] == [tmp_path / "pair" / "member-1"]
    assert read_weights(pair.members[0]) == read_weights(run)


@pytest.mark.parametrize("parts", ["all", ["image"], ("table", "image")])
def test_given_parts_need_no_trial(notes, tmp_path, monkeypatch, parts):
    monkeypatch.setattr(input_parts._Trials, "find_first", None)
    run = train(notes["useless"], tmp_path / "run", parts=parts, epochs=1)
    assert read_parts(run) is None
    assert ("x" in run.pipeline.inputs) == (parts != ["image"])
    assert "photo" in run.pipeline.inputs
    again = train(notes["useless"], tmp_path / "run", parts=parts, epochs=1, resume=True)
    assert again.pipeline.fingerprint() == run.pipeline.fingerprint()


def test_without_validation_all_parts_are_used(tmp_path, monkeypatch):
    monkeypatch.setattr(input_parts._Trials, "find_first", None)
    draws = np.random.default_rng(0)
    texts = [" ".join(draws.choice(WORDS, 6)) for _ in range(200)]
    columns = {"x": draws.normal(size=200), "note": texts, "y": draws.normal(size=200)}
    data = ps.convert(columns, tmp_path / "data", target="y", split="train=1.0")
    run = train(data, tmp_path / "run", epochs=1)
    assert read_parts(run) is None
    assert {"x", "note"} <= set(run.pipeline.inputs)


class FixedTrial:
    """What `run_trial` returns, with the same loss for each record."""

    fit_seconds = 0.0

    def __init__(self, loss):
        self.loss = loss

    def find_losses(self, plan):
        return np.full(60, self.loss)

    def find_exchanged_losses(self, plan):
        return {"table": np.full(60, self.loss + 1), "image": np.full(60, self.loss)}

    def score(self):
        return {}


def test_trials_have_few_records_small_images_and_few_epochs(notes, tmp_path, monkeypatch):
    found = []

    def run_trial(plan, epochs, parts):
        photo = plan.pipeline.transforms.get("photo")
        loaders = plan.make_loaders()
        with loaders.train.read(0) as batches:
            num_records = sum(len(targets["y"]) for _, targets in batches)
        found.append((num_records, None if photo is None else photo.fitted.size, epochs))
        return FixedTrial(1 / len(found))

    monkeypatch.setattr(input_parts, "run_trial", run_trial)
    monkeypatch.setattr(input_parts, "fit_and_predict", lambda fit, parts: FixedTrial(1.0))
    monkeypatch.setattr(input_parts, "MOST_SIDE", 6)
    monkeypatch.setattr(input_parts, "MOST_IMAGES", 50)
    monkeypatch.setattr(input_parts, "MOST_PIXELS", 7 * 6 * 6 * 50)
    run = train(notes["useless"], tmp_path / "run", watcher=(listener := Listener()), epochs=1)
    assert [size for _, size, _ in found] == [(6, 6), None]  # the run itself was first, with all parts
    assert all(30 <= num_records <= 70 and epochs == 1 for num_records, _, epochs in found)
    assert set(run.pipeline.inputs) == {"x", "kind"}
    assert run.config.train.cache is None
    assert len(set(listener.notes)) == len(listener.notes)
    found.clear()
    with pytest.raises(KeyboardInterrupt):
        train(notes["useless"], tmp_path / "long", watcher=Killer(), epochs=30)
    assert [epochs for *_, epochs in found] == [7, 30]


def test_trials_compare_the_same_records_whatever_their_batches(notes, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "MOST_VALIDATION", 50)
    losses = []
    for batch_size in (16, 32):
        data = notes["useful"]
        options = TrainOptions(batch_size=batch_size, epochs=1)
        plan = TrainPlan(data, ps.Pipeline.fit(data), options, model_options=TINY)
        found = trial.run_trial(plan, 1, {"text": ["note"]})
        losses.append(len(found.find_losses(plan)))
        assert len(found.find_exchanged_losses(plan)["text"]) == 50
    assert losses == [50, 50]


def test_own_model_and_given_pipeline_use_all_parts(notes, tmp_path, monkeypatch):
    monkeypatch.setattr(input_parts._Trials, "find_first", None)
    data = notes["useless"]
    pipeline = ps.Pipeline.fit(data)
    run = train(data, tmp_path / "given", pipeline=pipeline, epochs=1)
    assert set(run.pipeline.inputs) == set(pipeline.inputs)
    model = ps.build_model(data.schema, pipeline, TINY)
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
    grouped = pipeline.group("row", ["x", "vector"])
    assert find_parts(grouped) == {"table": ("x", "vector"), "text": ("note",)}
    assert list(without_fields(grouped, ["note"]).inputs) == ["row"]
    assert "row" not in without_fields(grouped, ["x", "vector"]).inputs


@pytest.mark.parametrize(("number", "share"), [(60, 1.0), (2_000, 0.5), (500_000, 0.008)])
def test_sample_of_validation_records_is_large_enough_to_choose_by(number, share):
    plan = LoaderPlan(None, None, TrainOptions(), Listener(), sample=0.008)
    assert plan.find_sample(number) == share
