"""`run.yaml` as an object: tables come out as they went in, and wrong ones are refused with their path."""

from pathlib import Path

import pytest
import yaml

from penstock.errors import SchemaError
from penstock.foundation.json_form import Document, JsonValue
from penstock.training.run_config import RunConfig, StoredModel
from penstock.training.run_facts import PartChoice, PartTrial, RunFacts, RunSeconds, Stage

GOLDEN = Path(__file__).parents[2] / "golden"
FACTS = {
    "revision": 2,
    "keras": "3.15.1",
    "backend": "jax",
    "batch_size": 16,
    "steps_per_epoch": 6,
    "targets": {"y": {"kind": "multiclass", "labels": 10}, "price": {"kind": "regression", "labels": 0}},
    "logits": {"y": True, "price": False},
    "class_weights": {"y": [0.5, 2.0]},
    "numbers": {"price": {"scale": "log", "loss": "huber", "trials": {"log, huber": {"rmse": 2.5}}}},
    "parts": {
        "used": ["table"],
        "left_out": {"text": ["note"]},
        "trials": {"table": {"loss": 0.5, "scores": {"y": 0.75, "price": None}}},
        "exchanged": {"text": 0.25},
        "reasons": {"text": "It is noise."},
    },
    "stages": [{"trained": "head", "epochs": 2, "learning_rate": 0.001}],
    "seconds": {"trials": 1.5, "training": 0.0},
    "validation": None,
    "pipeline": "d689",
    "choices": {"y": {"records": 6, "temperature": 1.5}},
    "records": 40,
    "scores": {"fold-1": {"y": {"accuracy": 0.5, "auc": None}}},
    "mean": {"y": {"accuracy": 0.5}},
    "deviation": {"y": {"accuracy": None}},
}


def read_facts(table):
    return RunFacts.from_json(JsonValue(table, Document("run", root="facts")))


@pytest.mark.parametrize("name", ["earlier_run", "earlier_image_run"])
def test_run_of_an_earlier_version_is_read_and_written_unchanged(name):
    tables = yaml.safe_load((GOLDEN / name / "run.yaml").read_text())
    config = RunConfig.from_json(tables)
    assert config.to_json() == tables
    assert (config.data, config.target, config.facts.targets["y"].kind) == ("data", "y", "binary")
    assert config.train.epochs == tables["train"]["epochs"]


def test_model_of_an_earlier_version_is_read_with_the_options_that_it_lacks():
    config = RunConfig.from_json(yaml.safe_load((GOLDEN / "earlier_run" / "run.yaml").read_text()))
    assert isinstance(config.model, StoredModel)
    options = config.model.rebuild()
    assert (options.members, options.numbers, options.text, options.units) == (1, "ramps", "pool", (64,))


def test_model_whose_initial_weights_are_gone_is_rebuilt(tmp_path):
    table = {"image": "MobileNetV2", "image_weights": str(tmp_path / "gone.h5"), "fine_tune": True}
    config = RunConfig.from_json({"model": table})
    assert config.to_json() == {"model": table}
    assert isinstance(config.model, StoredModel)
    assert config.model.rebuild().image_weights is None
    with pytest.raises(FileNotFoundError):
        config.model.read()


def test_all_facts_are_read_and_written_again():
    found = read_facts(FACTS)
    choices = {"y": found.choices["y"].to_json()}
    assert found.to_json() == {**FACTS, "choices": choices}
    assert list(found.to_json()) == list(FACTS)
    trials = {"table": PartTrial(0.5, {"y": 0.75, "price": None})}
    reasons = {"text": "It is noise."}
    assert found.parts == PartChoice(("table",), {"text": ("note",)}, trials, {"text": 0.25}, reasons)
    assert found.stages == (Stage("head", 2, 0.001),)
    assert found.seconds == RunSeconds(1.5, 0.0)


def test_figures_that_are_not_finite_are_read():
    table = {"scores": {"a": {"y": {"rmse": float("inf")}}}}
    assert read_facts(table).to_json() == table


def test_no_facts_are_written_as_none():
    assert RunFacts().to_json() == {}
    assert RunConfig.from_json({"facts": {"targets": None, "logits": None}}).to_json() == {}


def test_all_tables_are_read_and_written_again():
    tables = {
        "source": ["a.csv", "b.csv"],
        "data": ["/sets/a", "/sets/b"],
        "target": ["y", "z"],
        "declared": {"y": {"type": "number", "dtype": "int64"}},
        "convert": {
            "target": "y",
            "drop": ["a", "b"],
            "missing": ["", "NA"],
            "seed": 3,
            "split": {"train": 1.0},
        },
        "fields": {"x": None, "note": {"kind": "tokenize"}},
        "groups": {"both": ["x", "z"]},
        "ensemble": {"members": 3},
        "folds": {"number": 2},
        "model": "own",
        "train": {"patience": None, "class_weights": {"y": {"no": 2}}, "parts": ["table"]},
        "facts": {"seconds": {"trials": 1.5}},
    }
    found = RunConfig.from_json(tables).to_json()
    assert found.pop("declared")["y"].items() >= tables.pop("declared")["y"].items()
    assert found == tables


@pytest.mark.parametrize(
    ("tables", "path", "expected"),
    [
        ({"source": {"a": "b"}}, "$.source", "a string, or a list of strings"),
        ({"data": []}, "$.data", "a string, or a list of strings"),
        ({"data": ["a", 3]}, "$.data[1]", "a string"),
        ({"target": 3}, "$.target", "a string, or a list of strings"),
        ({"declared": 3}, "$.declared", "an object"),
        ({"declared": {"x": {"type": "words"}}}, "$.declared.x.type", None),
        ({"convert": {"seeed": 3}}, "$.convert.seeed", None),
        ({"convert": {"seed": "three"}}, "$.convert.seed", None),
        ({"convert": {"split_by": "a", "split": {"train": 1}}}, "$.convert.split", None),
        ({"fields": ["x"]}, "$.fields", "an object"),
        ({"groups": {"both": "x"}}, "$.groups.both", "an array"),
        ({"groups": {"both": [3]}}, "$.groups.both[0]", "a string"),
        ({"ensemble": {}}, "$.ensemble.members", "an integer from 2 to 100"),
        ({"ensemble": {"members": 1}}, "$.ensemble.members", "an integer from 2 to 100"),
        ({"ensemble": {"members": 3, "size": 2}}, "$.ensemble.size", None),
        ({"folds": {"folds": 3}}, "$.folds.folds", None),
        ({"folds": 3}, "$.folds", "an object"),
        ({"model": "mine"}, "$.model", "options by name, or 'own' for a model of your own"),
        ({"model": {"preset": "huge"}}, "$.model.preset", "'small' or 'base'"),
        ({"model": {"text": "transformer", "token_width": 10}}, "$.model.token_width", None),
        ({"train": {"epochs": "many"}}, "$.train.epochs", "an integer of at least 1"),
        ({"train": {"epoch": 3}}, "$.train.epoch", None),
        ({"facts": []}, "$.facts", "an object"),
        ({"modell": {}}, "$.modell", None),
    ],
)
def test_wrong_table_is_refused_with_its_path(tables, path, expected):
    with pytest.raises(SchemaError) as caught:
        RunConfig.from_json({"data": "pets", **tables})
    assert caught.value.field == path
    assert expected is None or caught.value.expected == expected


@pytest.mark.parametrize(
    ("facts", "path"),
    [
        ({"revision": "2"}, "revision"),
        ({"keras": 3}, "keras"),
        ({"backend": True}, "backend"),
        ({"batch_size": 0}, "batch_size"),
        ({"steps_per_epoch": 2.5}, "steps_per_epoch"),
        ({"targets": 3}, "targets"),
        ({"targets": {1: {}}}, "targets"),
        ({"targets": {"y": 3}}, "targets.y"),
        ({"targets": {"y": {}}}, "targets.y.kind"),
        ({"targets": {"y": {"kind": ["binary"]}}}, "targets.y.kind"),
        ({"targets": {"y": {"kind": "binary"}}}, "targets.y.labels"),
        ({"targets": {"y": {"kind": "multiclass", "labels": 10_000_000_000}}}, "targets.y.labels"),
        ({"targets": {"y": {"kind": "multiclass", "labels": 0}}}, "targets.y.labels"),
        ({"targets": {"y": {"kind": "multiclass", "labels": True}}}, "targets.y.labels"),
        ({"targets": {"y": {"kind": "multiclass", "labels": 2.0}}}, "targets.y.labels"),
        ({"targets": {"y": {"kind": "regression", "labels": -1}}}, "targets.y.labels"),
        ({"logits": "x"}, "logits"),
        ({"logits": {"y": 1}}, "logits.y"),
        ({"class_weights": {"y": ["high"]}}, "class_weights.y[0]"),
        ({"numbers": {"y": {"scale": "root"}}}, "numbers.y.scale"),
        ({"numbers": {"y": {"loss": "absolute"}}}, "numbers.y.loss"),
        ({"numbers": {"y": {"trials": {"log": {"mae": "low"}}}}}, "numbers.y.trials.log.mae"),
        ({"parts": []}, "parts"),
        ({"parts": {"used": "table"}}, "parts.used"),
        ({"parts": {"left_out": ["text"]}}, "parts.left_out"),
        ({"parts": {"left_out": {"text": "note"}}}, "parts.left_out.text"),
        ({"parts": {"trials": {"table": {}}}}, "parts.trials.table.loss"),
        ({"parts": {"trials": {"a": {"loss": 1, "scores": {"y": "high"}}}}}, "parts.trials.a.scores.y"),
        ({"parts": {"exchanged": {"text": None, "image": "low"}}}, "parts.exchanged.image"),
        ({"parts": {"reasons": {"text": 3}}}, "parts.reasons.text"),
        ({"stages": [{"trained": "tail"}]}, "stages[0].trained"),
        ({"seconds": {"trials": -1}}, "seconds.trials"),
        ({"validation": 3}, "validation"),
        ({"pipeline": 3}, "pipeline"),
        ({"choices": {"y": {"records": -1}}}, "choices.y.records"),
        ({"records": -1}, "records"),
        ({"scores": {"average": {"y": 3}}}, "scores.average.y"),
        ({"mean": {"y": {"auc": "high"}}}, "mean.y.auc"),
        ({"deviation": 3}, "deviation"),
        ({"other": 3}, "other"),
    ],
)  # fmt: skip
def test_wrong_fact_is_refused_with_its_path(facts, path):
    with pytest.raises(SchemaError) as caught:
        read_facts(facts)
    assert caught.value.field == f"facts.{path}"
