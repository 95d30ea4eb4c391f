"""An evaluation of a split by something that predicts: alignment, slices, importance, mistakes."""

import itertools
import json
import re
from itertools import pairwise

import numpy as np
import pytest

import penstock as ps
from image_files import jpeg
from penstock.errors import FieldError, OptionError, SchemaError, UnknownNameError
from penstock.model.task import find_tasks
from penstock.score.evaluation_batches import fit_batch_size
from penstock.score.scores import CLASS_SCORES
from penstock.score.split_evaluation import evaluate_split
from penstock.settings.prediction import EvaluateOptions
from penstock.transform.output import Output
from raising import containing, mentions, raises_with
from record_files import example, flip, write_plain

COUNT = 300
QUICK = {"bootstrap": 0, "importance": False, "mistakes": 0}


def make_columns(count: int = COUNT) -> dict:
    """Records in which the sign of x, alone, decides."""
    at = np.arange(count)
    x = ((at * 37) % 101 - 50.5) / 10
    return {
        "id": [f"pet-{i}" for i in at],
        "x": x.astype(np.float32),
        "noise": ((at * 53) % 89).astype(np.float32),
        "kind": [("cat", "dog", "eel")[i % 3] for i in at],
        "tokens": [list(range(i % 5)) for i in at],
        "region": [f"r{i % 4}" for i in at],
        "adopted": [("no", "yes")[int(value > 0)] for value in x],
    }


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    return convert(tmp_path_factory.mktemp("evaluated"), make_columns())


def convert(folder, columns, **options):
    fields = {"tokens": ps.fields.Sequence("int64")} if "tokens" in columns else {}
    return ps.convert(
        columns,
        folder / "pets",
        **{"id": "id", "target": "adopted", "fields": fields, "split": "train=0.2,test=0.8", **options},
    )


@pytest.fixture(scope="module")
def pipeline(pets):
    return ps.Pipeline.fit(pets, region=None)


def predict_by_x(pipeline):
    """Return a predictor that looks at x alone, by its stored value."""
    fitted = pipeline.transforms["x"].fitted

    def predict(inputs):
        x = inputs["x"] / fitted.factor[0] + fitted.shift[0]
        return {"adopted": (1 / (1 + np.exp(-x))).astype(np.float32)}

    return predict


def evaluate(pets, pipeline, predict=None, **options):
    options = EvaluateOptions(**options)
    predict = predict or predict_by_x(pipeline)
    return evaluate_split(predict, pipeline, find_tasks(pipeline), pets["test"], options)


def test_evaluation_of_a_perfect_model_finds_it_perfect(pets, pipeline) -> None:
    found = evaluate(pets, pipeline, bootstrap=50)
    assert (found.split, found.records) == ("test", len(pets["test"]))
    assert found.targets["adopted"]["auc"] == 1.0
    assert found.targets["adopted"]["accuracy"] == 1.0
    assert found.intervals["adopted"]["auc"] == (1.0, 1.0)
    assert found.mistakes == {"adopted": []}
    support = [each["support"] for each in found.classes["adopted"]]
    assert sum(support) == found.records
    assert found.confusion["adopted"]["matrix"] == [[support[0], 0], [0, support[1]]]


def test_evaluation_is_one_object_of_json_without_nan(pets, pipeline) -> None:
    form = json.loads(json.dumps(evaluate(pets, pipeline, slices=("region", "x")).to_json(), allow_nan=False))
    names = "split records targets intervals classes confusion slices importance ablation mistakes"
    assert set(names.split()) <= set(form)
    assert tuple(form["targets"]["adopted"]) == CLASS_SCORES


def test_evaluation_does_not_depend_on_the_batch_size(pets, pipeline) -> None:
    forms = [
        evaluate(pets, pipeline, batch_size=size, slices=["kind"], bootstrap=20).to_json()
        for size in (7, 256)
    ]
    assert forms[0] == forms[1]


class InGroups:
    """Predicts groups of three batches, each after its last batch was read."""

    def __init__(self, predict):
        self._predict = predict
        self.sizes = []

    def predict_each(self, batches):
        copies = ({name: np.array(values) for name, values in each.items()} for each in batches)
        while group := list(itertools.islice(copies, 3)):
            self.sizes.append(len(group))
            yield from map(self._predict, group)


def test_evaluation_by_groups_of_batches_is_the_same(pets, pipeline) -> None:
    choices = {"batch_size": 7, "slices": ["kind"], "bootstrap": 20, "importance_records": 40}
    groups = InGroups(predict_by_x(pipeline))
    found = evaluate(pets, pipeline, groups, **choices)
    assert found.to_json() == evaluate(pets, pipeline, **choices).to_json()
    assert max(groups.sizes) == 3


def test_threshold_chosen_on_other_records_has_separate_scores(pets, pipeline) -> None:
    predict, tasks = predict_by_x(pipeline), find_tasks(pipeline)
    options = EvaluateOptions(**QUICK)
    found = [
        evaluate_split(predict, pipeline, tasks, pets["test"], options, None, {"adopted": threshold})
        for threshold in (0.5, 0.9999)
    ]
    usual, high = (each.thresholds["adopted"] for each in found)
    assert usual == {"threshold": 0.5, "accuracy": 1.0, "balanced_accuracy": 1.0, "f1": 1.0}
    assert high["threshold"] == 0.9999
    assert 0.5 <= high["balanced_accuracy"] < 1.0
    assert found[0].targets == found[1].targets
    assert mentions(str(found[1]), "threshold 1 balanced accuracy accuracy F1")
    assert evaluate(pets, pipeline, **QUICK).to_json()["thresholds"] == {}


def test_evaluation_reads_as_a_table(pets, pipeline) -> None:
    text = str(evaluate(pets, pipeline, **QUICK))
    assert mentions(text, "split 'test'")
    assert mentions(text, "(binary, 2 labels)")
    assert re.search(r"^  AUC +1\.00 +0\.500$", text, re.MULTILINE)


def test_importance_is_all_of_the_field_that_decides(pets, pipeline) -> None:
    found = evaluate(pets, pipeline, bootstrap=0)
    assert found.importance_records == found.records
    assert list(found.importance) == ["x", "noise", "kind", "tokens"]
    assert found.importance["x"] == pytest.approx(0.5, abs=0.1)
    assert {name: found.importance[name] for name in ("noise", "kind", "tokens")} == {
        "noise": 0.0,
        "kind": 0.0,
        "tokens": 0.0,
    }
    assert list(found.ablation) == ["numbers", "categories", "sequence"]
    assert found.ablation["numbers"] == pytest.approx(0.5, abs=0.1)
    assert found.ablation["categories"] == found.ablation["sequence"] == 0.0
    assert found.importance_by_target["adopted"] == found.importance


def test_importance_of_another_seed_is_another_draw(pets, pipeline) -> None:
    first, again, other = (evaluate(pets, pipeline, bootstrap=0, seed=seed).importance for seed in (0, 0, 1))
    assert first == again != other


def test_importance_sample_is_no_larger_than_asked(pets, pipeline) -> None:
    found = evaluate(pets, pipeline, bootstrap=0, importance_records=50)
    assert found.importance_records == 50
    assert found.records == len(pets["test"])


def test_importance_moves_indicators_masks_groups_and_maps_with_their_field(tmp_path) -> None:
    columns = make_columns(200)
    columns["gap"] = [None if i % 2 else 1.0 for i in range(200)]
    columns["adopted"] = [("no", "yes")[i % 2] for i in range(200)]
    pets = convert(tmp_path, columns)
    outputs = [Output("half", "float32")]
    pipeline = ps.Pipeline.fit(
        pets, gap=ps.transform.Scale(indicator=True), tokens=ps.transform.Pad(mask=True), region=None
    )
    pipeline = pipeline.map(lambda read: {"half": read["noise"].values / np.float32(2)}, ["noise"], outputs)
    pipeline = pipeline.group("both", ["x", "gap_missing"])
    seen = []

    def predict(inputs):
        seen.append(inputs)
        assert (
            inputs["tokens_mask"].sum(axis=1)
            == (inputs["tokens"] > 0).sum(axis=1) + inputs["tokens_mask"][:, 0]
        ).all()
        return {"adopted": inputs["both"][:, 1]}

    found = evaluate(pets, pipeline, predict, bootstrap=0)
    assert set(seen[0]) == {"both", "gap", "half", "kind", "tokens", "tokens_mask"}
    assert list(found.importance) == ["x", "noise", "kind", "tokens", "gap"]
    assert found.importance["gap"] == pytest.approx(0.5, abs=0.12)
    assert found.importance["x"] == found.importance["noise"] == 0.0


def measure_files(columns):
    sizes = columns["photo"].stops - columns["photo"].starts
    return {"size": sizes.astype(np.float32)}


def test_importance_of_images_permutes_pixels_within_bounds(tmp_path, monkeypatch) -> None:
    shades = np.arange(90) % 2
    images = [jpeg(np.full((12, 12, 3), 40 + 150 * shade, np.uint8)) for shade in shades]
    columns = {"photo": images, "noise": (np.arange(90) % 7).astype(np.float32)}
    columns["adopted"] = [("no", "yes")[shade] for shade in shades]
    pets = convert(tmp_path, columns, id=None, fields={"photo": ps.fields.Image()})
    pipeline = ps.Pipeline.fit(pets, photo=ps.transform.Image(size=(8, 8)))

    def predict(inputs):
        return {"adopted": inputs["photo"].reshape(len(inputs["photo"]), -1).mean(axis=1) / 255}

    found = evaluate(pets, pipeline, predict, bootstrap=0)
    assert found.targets["adopted"]["auc"] == 1.0
    assert found.importance["photo"] == found.ablation["image"] == pytest.approx(0.5, abs=0.15)
    assert found.importance["noise"] == 0.0
    # A map that reads the photo as well gets the stored bytes, beside pixels under another name.
    beside = ps.Pipeline.fit(pets, photo=ps.transform.Image(size=(8, 8)))
    beside.map(measure_files, ["photo"], [Output("size", "float32")], keep=True)
    again = evaluate(pets, beside, predict, bootstrap=0)
    assert again.importance == found.importance
    monkeypatch.setattr("penstock.score.importance.MOST_BYTES", 1)
    assert evaluate(pets, pipeline, predict, bootstrap=0).importance_records == 64


def test_slices_go_by_value_and_add_up(pets, pipeline) -> None:
    found = evaluate(pets, pipeline, **QUICK, slices=("region", "kind")).slices
    assert {each.value for each in found["region"]} == {"r0", "r1", "r2", "r3"}
    assert {each.value for each in found["kind"]} == {"cat", "dog", "eel"}
    for slices in found.values():
        assert sum(each.records for each in slices) == len(pets["test"])
        assert [each.records for each in slices] == sorted((each.records for each in slices), reverse=True)
        assert all(each.targets["adopted"]["accuracy"] == 1.0 for each in slices)


def test_slices_of_numbers_are_ranges_of_as_many_records(pets, pipeline) -> None:
    slices = evaluate(pets, pipeline, **QUICK, slices=("x",)).slices["x"]
    assert len(slices) == 5
    assert all(abs(each.records - len(pets["test"]) / 5) < 6 for each in slices)
    assert all(before.high < after.low for before, after in pairwise(slices))
    # All of the lowest range are of one class.
    assert slices[0].targets["adopted"]["auc"] is None
    assert slices[0].name == f"{slices[0].low:.6g} to {slices[0].high:.6g}"


def test_slices_of_sequences_go_by_their_length(pets, pipeline) -> None:
    found = evaluate(pets, pipeline, **QUICK, slices=("tokens",))
    assert [each.value for each in found.slices["tokens"]] == [0, 1, 2, 3, 4]
    assert any(mentions(note, "tokens items") for note in found.notes)


def test_slices_of_texts_that_hardly_repeat_go_by_their_length(tmp_path) -> None:
    columns = make_columns()
    columns["note"] = [f"{'ä' * (i % 3)}{i:03}" for i in range(COUNT)]
    columns["word"] = [("one", "three")[i % 2] for i in range(COUNT)]
    fields = {"note": ps.fields.Text(), "word": ps.fields.Text()}
    pets = convert(tmp_path, columns, fields=fields)
    pipeline = ps.Pipeline.fit(pets, note=None, word=None)
    found = evaluate(pets, pipeline, **QUICK, slices=["note", "word"])
    assert [each.value for each in found.slices["note"]] == [3, 4, 5]
    assert sum(each.records for each in found.slices["note"]) == len(pets["test"])
    assert {each.value for each in found.slices["word"]} == {"one", "three"}
    (note,) = found.notes
    assert mentions(note, "note characters")


def test_slices_have_one_for_missing_values_and_twenty_of_many(tmp_path) -> None:
    columns = make_columns()
    columns["region"] = [None if i % 10 == 0 else f"r{i % 30}" for i in range(COUNT)]
    pets = convert(tmp_path, columns, fields={"region": ps.fields.Category("string", optional=True)})
    pipeline = ps.Pipeline.fit(pets, region=None)
    found = evaluate(pets, pipeline, **QUICK, slices=["region"])
    assert len(found.slices["region"]) == 21
    assert (found.slices["region"][-1].value, found.slices["region"][-1].name) == (None, "(missing)")
    assert any(mentions(note, "region 7") for note in found.notes)


def test_slice_by_a_field_that_does_not_exist_names_the_nearest(pets, pipeline) -> None:
    with raises_with(UnknownNameError, field="regoin", advice=containing("'region'")):
        evaluate(pets, pipeline, slices=["regoin"])


def test_slice_by_an_image_is_refused(tmp_path) -> None:
    pets = convert(
        tmp_path,
        {"photo": [jpeg(np.zeros((4, 4, 3), np.uint8))] * 20, "adopted": ["no", "yes"] * 10},
        id=None,
        fields={"photo": ps.fields.Image()},
    )
    pipeline = ps.Pipeline.fit(pets)
    with raises_with(OptionError, "'photo' category text sequence image"):
        evaluate(pets, pipeline, lambda _: {}, slices=["photo"])


def test_mistakes_are_the_worst_with_their_stored_values(pets, pipeline) -> None:
    right = predict_by_x(pipeline)
    split = pets["test"]
    xs = split.columns(fields=["x"])["x"].values

    found = evaluate(pets, pipeline, lambda each: {"adopted": 1 - right(each)["adopted"]}, mistakes=4)
    worst = found.mistakes["adopted"]
    assert len(worst) == 4
    assert [each.loss for each in worst] == sorted((each.loss for each in worst), reverse=True)
    assert abs(worst[0].inputs["x"]) == np.abs(xs).max()
    for each in worst:
        sample = split[each.row]
        assert each.truth == sample["adopted"] != each.prediction
        assert each.probability > 0.5
        assert each.inputs["id"] == sample["id"]
        assert each.inputs["tokens"] == sample["tokens"].tolist()
        assert "adopted" not in each.inputs
        assert each.file == str(split.paths[0])
        assert each.record == each.row


def test_skipped_records_shift_nothing(tmp_path) -> None:
    columns = make_columns()
    pets = convert(tmp_path, columns)
    path = pets["test"].paths[0]
    pipeline = ps.Pipeline.fit(pets, region=None)
    path.write_bytes(flip(path.read_bytes(), 4000))
    opened = ps.open(tmp_path / "pets", on_error="skip")
    whole = len(pets["test"])
    found = evaluate(opened, pipeline, slices=["region"], batch_size=16, bootstrap=0)
    assert found.records == whole - 1
    assert any(mentions(note, "1 bad record") for note in found.notes)
    assert found.targets["adopted"]["accuracy"] == 1.0
    assert sum(each.records for each in found.slices["region"]) == whole - 1
    assert found.importance["x"] > 0.3
    right = predict_by_x(pipeline)
    wrong = evaluate(opened, pipeline, lambda each: {"adopted": 1 - right(each)["adopted"]}, mistakes=whole)
    assert len(wrong.mistakes["adopted"]) == whole - 1
    for each in wrong.mistakes["adopted"]:
        sample = opened["test"][each.row]
        assert (sample["id"], sample["adopted"]) == (each.inputs["id"], each.truth)


def test_several_targets_have_scores_each_and_a_mean_importance(tmp_path) -> None:
    columns = make_columns()
    columns["price"] = columns["x"] * 2 + 1
    pets = convert(tmp_path, columns, target=["adopted", "price"])
    pipeline = ps.Pipeline.fit(pets, region=None, price=ps.transform.Scale())
    adopted = predict_by_x(pipeline)
    fitted = pipeline.transforms["x"].fitted

    def predict(inputs):
        return {**adopted(inputs), "price": (inputs["x"] / fitted.factor[0] + fitted.shift[0]) * 2 + 1}

    found = evaluate(pets, pipeline, predict, bootstrap=20, slices=["kind"])
    assert found.targets["price"]["r2"] == pytest.approx(1.0, abs=1e-6)
    assert found.targets["price"]["rmse"] == pytest.approx(0.0, abs=1e-4)
    assert found.targets["adopted"]["auc"] == 1.0
    each = [found.importance_by_target[name]["x"] for name in ("adopted", "price")]
    assert found.importance["x"] == pytest.approx(sum(each) / 2)
    assert "price" not in found.classes
    mistake = found.mistakes["price"][0] if found.mistakes["price"] else None
    assert mistake is None or mistake.truth == pytest.approx(mistake.prediction, abs=1e-4)


def test_predictions_that_are_not_finite_are_named_and_give_no_scores(pets, pipeline) -> None:
    def predict(inputs):
        chances = predict_by_x(pipeline)(inputs)["adopted"].copy()
        chances[0] = np.nan
        return {"adopted": chances}

    found = evaluate(pets, pipeline, predict, bootstrap=10, slices=["kind"])
    assert set(found.targets["adopted"].values()) == {None}
    assert set(found.importance.values()) == {None}
    assert any(mentions(note, "adopted 1 finite") for note in found.notes)
    json.dumps(found.to_json(), allow_nan=False)


def test_label_that_the_model_does_not_know_names_the_record(tmp_path) -> None:
    for split, labels in (("train", [0, 1, 1]), ("test", [0, 1, 7])):
        records = [example(x=float(i), y=label) for i, label in enumerate(labels)]
        write_plain(tmp_path / f"{split}-00000-of-00001.tfrecord", records)
    data = ps.open(tmp_path, fields={"y": ps.fields.Number("int64")}, target="y")
    pipeline = ps.Pipeline.fit(data)
    with raises_with(FieldError, "test-00000-of-00001.tfrecord 'y' 2 labels", record=2):
        evaluate(data, pipeline, lambda inputs: {"y": inputs["x"] * 0})


def test_labels_in_no_record_are_noted(tmp_path) -> None:
    for split, labels in (("train", [0, 1, 1]), ("test", [1, 1])):
        records = [example(x=float(i), y=label) for i, label in enumerate(labels)]
        write_plain(tmp_path / f"{split}-00000-of-00001.tfrecord", records)
    data = ps.open(tmp_path, fields={"y": ps.fields.Number("int64")}, target="y")
    found = evaluate(data, ps.Pipeline.fit(data), lambda inputs: {"y": inputs["x"] * 0})
    (note,) = found.notes
    assert mentions(note, "y 1 2")
    assert found.targets["y"]["auc"] is None
    assert found.importance == {"x": None}


def test_data_of_another_type_or_without_a_field_is_refused(tmp_path, pipeline) -> None:
    columns = make_columns(60)
    columns["kind"] = list(range(60))
    other = convert(tmp_path, columns)
    with raises_with(
        SchemaError,
        field="kind",
        expected=containing("category", "(scalar string, 3 values)"),
        got=containing("(scalar int64)"),
    ):
        evaluate(other, pipeline)
    del columns["kind"]
    other = convert(tmp_path / "more", columns)
    with raises_with(UnknownNameError, field="kind", got="'kind'"):
        evaluate(other, pipeline)


def test_weights_of_records_do_not_count(tmp_path) -> None:
    columns = make_columns()
    columns["heavy"] = [1000.0 if i % 2 else 0.0 for i in range(COUNT)]
    pets = convert(tmp_path, columns, weight="heavy")
    pipeline = ps.Pipeline.fit(pets, region=None)
    assert list(pipeline.weights) == ["heavy"]

    def predict(inputs):
        return {"adopted": np.full(len(inputs["x"]), 0.9, np.float32)}

    share = np.mean([each["adopted"] == "yes" for each in pets["test"]])
    found = evaluate(pets, pipeline, predict, **QUICK)
    assert found.targets["adopted"]["accuracy"] == pytest.approx(share)


def test_one_record_is_scored_without_intervals_or_importance(tmp_path, pipeline, pets) -> None:
    one = ps.convert(
        pets["test"][:1], tmp_path / "one", id="id", target="adopted", split="test=1.0", schema=pets.schema
    )
    found = evaluate(one, pipeline)
    assert found.records == 1
    assert found.targets["adopted"]["accuracy"] == 1.0
    assert found.targets["adopted"]["auc"] is None
    assert set(found.intervals["adopted"].values()) == {None}
    assert set(found.importance.values()) == {None}
    json.dumps(found.to_json(), allow_nan=False)


def test_split_without_a_sound_record_is_refused(tmp_path) -> None:
    for split, payloads in (
        ("train", [example(x=1.0, y=1), example(x=2.0, y=0)]),
        ("test", [example(x=3, y=1)] * 2),
    ):
        write_plain(tmp_path / f"{split}-00000-of-00001.tfrecord", payloads)
    fields = {"x": ps.fields.Number(), "y": ps.fields.Number("int64")}
    data = ps.open(tmp_path, fields=fields, target="y", on_error="skip")
    with raises_with(OptionError, "split 'test'", got=containing(2)):
        evaluate(data, ps.Pipeline.fit(data["train"]), lambda inputs: {"y": inputs["x"]})


def test_batches_of_large_records_are_smaller(pets, pipeline, tmp_path) -> None:
    assert fit_batch_size(pipeline) == 256
    large = ps.convert(
        {"map": [np.zeros((200, 200), np.float32)] * 4, "y": [0.0, 1.0, 2.0, 3.0]},
        tmp_path / "large",
        target="y",
        split="train=1.0",
    )
    assert fit_batch_size(ps.Pipeline.fit(large)) == (16 << 20) // 160_000


def test_progress_is_reported_to_the_end(pets, pipeline) -> None:
    reported = []
    options = EvaluateOptions(bootstrap=0, batch_size=64)
    evaluate_split(
        predict_by_x(pipeline),
        pipeline,
        find_tasks(pipeline),
        pets["test"],
        options,
        lambda *each: reported.append(each),
    )
    count = len(pets["test"])
    assert reported[0] == ("predicting", 64, count)
    assert ("predicting", count, count) in reported
    assert reported[-1] == ("feature importance", 9, 9)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"batch_size": 0}, "batch_size 1 0"),
        ({"bootstrap": -1}, "bootstrap 0 -1"),
        ({"mistakes": True}, "mistakes 0 True"),
        ({"importance": 1}, "importance True False 1"),
        ({"slices": [3]}, "slices"),
        ({"slices": 3}, "slices 3"),
        ({"engine": "spark"}, "engine local ray spark"),
        ({"address": "head:6379"}, "address local head:6379"),
        ({"num_threads": 2}, "num_threads local 2 ray"),
        ({"engine": "ray", "num_threads": 0}, "num_threads 1 0"),
    ],
)
def test_option_that_cannot_be_is_refused(options, facts) -> None:
    with raises_with(OptionError, facts):
        EvaluateOptions(**options)
