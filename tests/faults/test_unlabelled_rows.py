"""Records without a target are counted and left out of training, validation and evaluation, or refused."""

import os

import numpy as np
import pytest

import penstock as ps
from penstock.errors import FieldError, OptionError
from penstock.jobs.convert.convert import run_conversion
from penstock.plan.planner import PlanOverrides
from penstock.settings.conversion import ConvertOptions
from penstock.settings.training import TrainCall
from raising import containing
from training_data import Listener

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
keras = pytest.importorskip("keras")
from penstock.jobs.train.train import TrainJob, plan_training  # noqa: E402

NUM_ROWS = 200
OPTIONS = {"epochs": 1, "batch_size": 16, "seed": 3}
SMALL = ps.options.ModelOptions(preset="small")


def make_table(**columns):
    """Return rows, every fifth without a label; the label follows from x."""
    x = np.random.default_rng(4).normal(size=NUM_ROWS).astype(np.float32)
    label = [None if i % 5 == 0 else ("no", "yes")[int(each > 0)] for i, each in enumerate(x)]
    names = [f"r{i}" for i in range(NUM_ROWS)]
    return {"name": names, "x": x, "label": label, **columns}


def convert(folder, table=None, target="label", **options):
    return ps.convert(table or make_table(), folder, id="name", target=target, seed=1, **options)


def count_missing(split, name="label"):
    present = split.columns(fields=[name])[name].present
    return 0 if present is None else int((~present).sum())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return convert(tmp_path_factory.mktemp("unlabelled") / "set")


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    listener = Listener()
    out = tmp_path_factory.mktemp("unlabelled") / "run"
    return ps.train(data, out=out, watcher=listener, model_options=SMALL, **OPTIONS), listener


def test_x07_convert_keeps_rows_without_a_target_and_counts_them(tmp_path, data):
    assert sum(len(data[name]) for name in data.splits) == NUM_ROWS
    done = run_conversion(make_table(), tmp_path / "set", PlanOverrides(target="label"), ConvertOptions())
    assert containing("40 rows", "'label'") in done.notes


def test_x07_train_leaves_out_rows_without_a_target_and_counts_them(data, trained):
    run, listener = trained
    wanted = {name: count_missing(data[name]) for name in ("train", "validation")}
    assert all(wanted.values())
    for name, number in wanted.items():
        (note,) = [each for each in listener.notes if each == containing(repr(name), "'label'")]
        assert note == containing(f"{number} of {len(data[name])}")
    num_labelled = len(data["train"]) - wanted["train"]
    assert run.history[0]["step"] == -(-num_labelled // OPTIONS["batch_size"])
    assert run.tasks["label"].labels == ("no", "yes")
    assert run.config.train.unlabelled == "drop"


def test_x07_model_sees_exactly_the_labelled_rows_in_every_epoch(data, tmp_path):
    job = TrainJob(data=data, options=TrainCall(**OPTIONS))
    loader = plan_training(job, tmp_path).make_loaders().train
    assert len(data["train"].paths) == 1
    wanted = np.flatnonzero(data["train"].columns(fields=["label"])["label"].present).tolist()
    orders = [
        [place.record for step in range(loader.num_steps(epoch)) for place in loader.where(step, epoch)]
        for epoch in range(2)
    ]
    assert sorted(orders[0]) == sorted(orders[1]) == wanted
    assert orders[0] != orders[1]


def test_x07_evaluation_leaves_out_rows_without_a_target_and_counts_them(data, trained):
    found = ps.evaluate(trained[0], data["test"], bootstrap=0, importance=True)
    number = count_missing(data["test"])
    assert number
    assert found.records == len(data["test"]) - number
    assert containing(f"{number} of {len(data['test'])}") in found.notes


def test_x07_prediction_is_unaffected(trained, tmp_path):
    table = make_table()
    assert len(ps.predict(trained[0], {"name": table["name"], "x": table["x"]})) == NUM_ROWS


def test_x07_rows_without_a_target_are_refused_on_request(data, tmp_path):
    with pytest.raises(FieldError) as caught:
        ps.train(data, out=tmp_path / "run", watcher=Listener(), unlabelled="error", **OPTIONS)
    assert caught.value.field == "label"
    assert "unlabelled='drop'" in caught.value.advice
    assert "unlabelled='drop'" in caught.value.advice
    first = np.flatnonzero(~data["train"].columns(fields=["label"])["label"].present)[0]
    assert caught.value.record == first


def test_unlabelled_takes_two_words(tmp_path):
    with pytest.raises(OptionError) as caught:
        ps.options.TrainOptions(unlabelled="skip")
    assert (caught.value.what, caught.value.got) == (containing("unlabelled"), "'skip'")


def test_x07_statistics_are_over_labelled_rows(tmp_path):
    x = np.arange(100, dtype=np.float32)
    price = [None if i % 2 else float(i) for i in range(100)]
    data = ps.convert({"x": x, "price": price}, tmp_path / "set", target="price", split="train=1.0")
    options = TrainCall(**OPTIONS, class_weights="balanced")
    plan = plan_training(TrainJob(data=data, options=options), tmp_path / "run")
    (spread,) = [plan.pipeline.transforms["price"].fitted.spread]
    labels = np.arange(0, 100, 2)
    assert spread[2:] == pytest.approx((labels.mean(), labels.std()), rel=1e-6)


def test_x07_class_weights_count_labelled_rows(data, tmp_path):
    run = ps.train(
        data,
        out=tmp_path / "run",
        watcher=Listener(),
        class_weights="balanced",
        model_options=SMALL,
        **OPTIONS,
    )
    column = data["train"].columns(fields=["label"])["label"]
    words = [bytes(column.arena[a:b]) for a, b in zip(column.starts, column.stops, strict=True)]
    counts = [words.count(word) for word in (b"no", b"yes")]
    wanted = [sum(counts) / (2 * each) for each in counts]
    assert list(run.config.facts.class_weights["label"]) == pytest.approx(wanted)


def test_x07_record_with_several_targets_needs_all_of_them(tmp_path):
    price = [None if i % 7 == 0 else float(i) for i in range(NUM_ROWS)]
    data = convert(tmp_path / "set", make_table(price=price), ["label", "price"])
    job = TrainJob(data=data, options=TrainCall(**OPTIONS))
    loaders = plan_training(job, tmp_path / "run").make_loaders()
    columns = data["train"].columns(fields=["label", "price"])
    wanted = int((columns["label"].present & columns["price"].present).sum())
    assert sum(len(targets["label"]) for targets in loaders.read_targets()) == wanted


def test_x07_train_without_any_label_is_refused(tmp_path):
    table = {"x": np.arange(20.0), "price": [None] * 20}
    fields = {"price": ps.fields.Number(optional=True)}
    data = ps.convert(table, tmp_path / "set", target="price", fields=fields, split="train=1.0")
    with pytest.raises(OptionError) as caught:
        ps.train(data, out=tmp_path / "run", watcher=Listener(), **OPTIONS)
    assert caught.value.field == "price"
    assert "target=NAME" in caught.value.advice


def test_x07_killed_run_with_unlabelled_rows_is_resumed_to_the_same_weights(data, trained, tmp_path):
    class Kill(keras.callbacks.Callback):
        is_on = True

        def on_train_batch_end(self, batch, logs=None):
            if Kill.is_on and batch == 3:
                raise InterruptedError

    options = {"watcher": Listener(), "model_options": SMALL, "checkpoint_steps": 1, "callbacks": [Kill()]}
    options |= OPTIONS
    with pytest.raises(InterruptedError):
        ps.train(data, out=tmp_path / "run", **options)
    Kill.is_on = False
    run = ps.train(data, out=tmp_path / "run", resume=True, **options)
    pairs = zip(run.model.weights, trained[0].model.weights, strict=True)
    assert all(np.array_equal(a.__array__(), b.__array__()) for a, b in pairs)


def test_loader_of_ones_own_names_the_filter_at_a_record_without_a_target(data):
    pipeline = ps.Pipeline.fit(data)
    with pytest.raises(FieldError) as caught:
        list(data["train"].loader(pipeline))
    assert caught.value.field == "label"
    assert "filter=" in caught.value.advice
    loader = data["train"].loader(pipeline, filter="`label` is not None")
    assert sum(len(targets["label"]) for _, targets in loader) < len(data["train"])


def test_held_out_records_are_not_fitted_on(tmp_path):
    x = np.arange(200, dtype=np.float32) ** 2
    label = [("no", "yes")[i % 3 == 0] for i in range(200)]
    data = ps.convert({"x": x, "label": label}, tmp_path / "set", target="label", split="train=1.0")
    options = TrainCall(**OPTIONS, hold_out=0.3, class_weights="balanced")
    plan = plan_training(TrainJob(data=data, options=options), tmp_path / "run")
    loaders = plan.make_loaders()
    stored = data["train"].columns(fields=["x"])["x"].values[~plan.held_out.rows.to_mask()]
    assert len(stored) == 140
    fitted = plan.pipeline.transforms["x"].fitted
    assert fitted.shift[0] == pytest.approx(stored.mean(dtype=np.float64), rel=1e-6)
    assert sum(len(each["label"]) for each in loaders.read_targets()) == 140
    assert plan.pipeline.transforms["label"].fitted.values == ("no", "yes")
