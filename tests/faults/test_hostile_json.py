"""X11: every value of a manifest and of a pipeline, replaced by hostile ones: accepted, or a named error."""

import io
import json
import logging
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import ManifestError, PenstockError, SchemaError, StateError
from penstock.foundation.json_form import Document, JsonValue
from penstock.jobs.predict.raw_layout import find_recipe
from penstock.settings.groups import TextFiles
from penstock.training.recorded_data import RecordedData
from penstock.training.run_writer import Checkpoint, Checkpoints
from penstock.training.snapshot import Snapshot

# As JSON text: Python's own writer makes neither 10^400 nor lone surrogates of it.
HOSTILE = (
    *("null", "true", "-1", "0", "1.5", '"x"', '""', r'"\ud800"', "[]", "[[]]", "{}", '{"x": 1}'),
    *(str(2**63), "1" + "0" * 400, "-1" + "0" * 400, "9" * 5000, "1e400", "1e308", "NaN", "-Infinity"),
    *('[1, "x", null]', '{"float": "nan"}', '{"base64": "AA=="}', '{"base64": 3}', "[" * 5000 + "]" * 5000),
)
MARK = "the value to replace"
Place = tuple[str | int, ...]


def list_places(form: object, place: Place = ()) -> Iterator[Place]:
    """Yield the path of every subtree and leaf; of a long list, the paths of the first and last two items."""
    yield place
    if isinstance(form, dict):
        for key, value in form.items():
            yield from list_places(value, (*place, key))
    elif isinstance(form, list):
        for at in sorted({*range(len(form))[:2], *range(len(form))[-2:]}):
            yield from list_places(form[at], (*place, at))


def replace(form: object, place: Place, value: object) -> object:
    if not place:
        return value
    copy = dict(form) if isinstance(form, dict) else list(form)
    copy[place[0]] = replace(copy[place[0]], place[1:], value)
    return copy


def mutate(form: object, place: Place, hostile: str) -> str:
    return json.dumps(replace(form, place, MARK)).replace(json.dumps(MARK), hostile)


def draw(form: object, per_place: int) -> Iterator[tuple[Place, str]]:
    """Yield some hostile values for each place: each in turn, so that all are used about equally often."""
    values = cycle(HOSTILE)
    for place in list_places(form):
        for hostile in islice(values, per_place):
            yield place, hostile


@pytest.fixture(autouse=True)
def no_log(monkeypatch):
    monkeypatch.setattr(logging.getLogger("penstock"), "disabled", True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    image = pytest.importorskip("PIL.Image")
    photo = io.BytesIO()
    image.new("RGB", (5, 4), (1, 2, 3)).save(photo, "PNG")
    samples = [
        {
            "age": number,
            "height": number / 3,
            "kind": ("cat", "dog", "cow")[number % 3],
            "name": f"a name of {number} words",
            "tags": [1] * (number % 3 + 1),
            "vector": np.arange(3, dtype=np.float32) * number,
            "photo": photo.getvalue(),
            "adopted": ("no", "yes")[number % 2],
        }
        for number in range(12)
    ]
    folder = tmp_path_factory.mktemp("hostile") / "pets"
    ps.convert(samples, folder, target="adopted")
    return folder


@pytest.fixture
def manifest(folder):
    """The parsed manifest, whose file is as it was again after the test."""
    path = folder / "penstock.json"
    text = path.read_text()
    yield json.loads(text)
    path.write_text(text)


def open_mutated(folder, text):
    (folder / "penstock.json").write_text(text)
    ps.Pipeline.fit(ps.open(folder))


def run_cases(use, form, per_place):
    num_refused = num_cases = 0
    for place, hostile in draw(form, per_place):
        num_cases += 1
        try:
            use(mutate(form, place, hostile))
        except PenstockError:
            num_refused += 1
        except Exception as error:
            pytest.fail(f"{place} = {hostile[:40]}: {type(error).__name__}: {error}")
    return num_refused, num_cases


def test_x11_manifest_with_any_value_replaced_is_accepted_or_refused(folder, manifest):
    num_refused, num_cases = run_cases(lambda text: open_mutated(folder, text), manifest, 3)
    assert num_refused > num_cases / 2


@pytest.mark.long
def test_x11_manifest_with_any_value_replaced_by_any_other(folder, manifest):
    num_refused, num_cases = run_cases(lambda text: open_mutated(folder, text), manifest, len(HOSTILE))
    assert num_refused > num_cases / 2


def test_x11_inspect_names_the_fault_of_a_manifest(folder, manifest, capsys):
    for place, hostile in draw({key: manifest[key] for key in ("split", "order", "rejects", "source")}, 9):
        (folder / "penstock.json").write_text(mutate(manifest, place, hostile))
        assert main(["inspect", str(folder)]) in (0, 1), (place, hostile)
        assert "internal" not in capsys.readouterr().err, (place, hostile)


def load_mutated(path, records, text):
    path.write_text(text)
    next(iter(records.loader(ps.Pipeline.load(path), batch_size=4)))


def test_x11_pipeline_with_any_value_replaced_is_accepted_or_refused(folder, tmp_path):
    records = ps.open(folder)["train"]
    form = ps.Pipeline.fit(records).to_json()
    path = tmp_path / "pipeline.json"
    num_refused, num_cases = run_cases(lambda text: load_mutated(path, records, text), form, 5)
    assert num_refused > num_cases / 2


@pytest.mark.long
def test_x11_pipeline_with_any_value_replaced_by_any_other(folder, tmp_path):
    records = ps.open(folder)["train"]
    form = ps.Pipeline.fit(records).to_json()
    path = tmp_path / "pipeline.json"
    num_refused, num_cases = run_cases(lambda text: load_mutated(path, records, text), form, len(HOSTILE))
    assert num_refused > num_cases / 2


@pytest.mark.parametrize(
    ("place", "hostile", "field"),
    [
        ("statistics.num_rows", "-1", "$.statistics.num_rows"),
        ("statistics.fields.age.count", '"x"', "$.statistics.fields.age.count"),
        ("statistics.fields.age.values.mean", "1" + "0" * 400, "$.statistics.fields.age.values.mean"),
        ("statistics.fields.age.values.quantiles", "[1, 2]", "$.statistics.fields.age.values.quantiles"),
        (
            "statistics.fields.age.values.quantiles",
            '{"0.5": 1}',
            '$.statistics.fields.age.values.quantiles["0.01"]',
        ),
        ("statistics.fields.vector.elements.means", "[1]", "$.statistics.fields.vector.elements.deviations"),
        ("statistics.fields.kind.frequencies.counts", "[]", "$.statistics.fields.kind.frequencies.counts"),
        (
            "statistics.fields.kind.frequencies.values",
            '["cat", 1, "dog"]',
            "$.statistics.fields.kind.frequencies.values[1]",
        ),
        (
            "statistics.fields.kind.frequencies.values",
            "[1, 2, 3]",
            "$.statistics.fields.kind.frequencies.values",
        ),
        ("split.duplicates", "[]", "$.split.duplicates"),
        ("split.shares.train", "1" + "0" * 400, "$.split.shares.train"),
        ("rejects.count", "1.5", "$.rejects.count"),
        ("plan.columns.age.type", "[]", "$.plan.columns.age.type"),
        ("source", '[{"name": 3}]', "$.source[0].name"),
    ],
)
def test_x11_fault_of_a_manifest_is_named_by_its_path(folder, manifest, place, hostile, field):
    (folder / "penstock.json").write_text(mutate(manifest, tuple(place.split(".")), hostile))
    with pytest.raises(ManifestError) as caught:
        ps.open(folder)
    assert (caught.value.field, caught.value.path) == (field, str(folder / "penstock.json"))


@pytest.mark.parametrize(
    ("place", "hostile", "field"),
    [
        ("transforms.age.fitted.shift", "[1" + "0" * 400 + "]", "$.transforms.age.fitted.shift[0]"),
        ("transforms.age.fitted.low", "NaN", "$.transforms.age.fitted.low"),
        ("transforms.kind.fitted.default", "-1", "$.transforms.kind.fitted.default"),
        ("transforms.kind.fitted.default", r'"\ud800"', "$.transforms.kind.fitted.default"),
        ("transforms.photo.fill", "1" + "0" * 400, "$.transforms.photo.fill"),
        ("transforms.name.tokenizer", r'"\ud800"', "$.transforms.name.tokenizer"),
    ],
)
def test_x11_fault_of_a_pipeline_is_named_by_its_path(folder, tmp_path, place, hostile, field):
    form = ps.Pipeline.fit(ps.open(folder)).to_json()
    path = tmp_path / "pipeline.json"
    path.write_text(mutate(form, tuple(place.split(".")), hostile))
    with pytest.raises(SchemaError) as caught:
        ps.Pipeline.load(path)
    assert (caught.value.field, caught.value.path) == (field, str(path))


CALLBACKS = [{"kind": "BestEpoch", "values": {"best": 0.5}, "arrays": {}}]
MEMORY = {"epoch": 1, "loader": {"step": 2}, "history": [{"loss": 0.1}], "seconds": 1.5}


@pytest.mark.parametrize(
    ("callbacks", "memory"),
    [
        *([CALLBACKS, MEMORY | {key: value}] for key in MEMORY for value in ("x", 10**400, None, [1])),
        ([{"kind": "BestEpoch", "values": []}], MEMORY),
        ([[]], MEMORY),
    ],
)
def test_x11_checkpoint_with_other_types_than_a_run_writes_is_refused(tmp_path, callbacks, memory):
    arrays = {"model/0": np.zeros(2, np.float32)}
    Checkpoints(tmp_path, {}).save(Checkpoint(3, Snapshot(arrays, {"model/0": "kernel"}, callbacks), memory))
    with pytest.raises(StateError) as caught:
        Checkpoints(tmp_path, {}).load()
    assert caught.value.__cause__.field.startswith("$.")


def test_x11_state_of_a_run_with_any_value_replaced_is_accepted_or_refused(tmp_path):
    arrays = {"model/0": np.zeros(2, np.float32)}
    Checkpoints(tmp_path, {"seed": 1}).save(
        Checkpoint(3, Snapshot(arrays, {"model/0": "kernel"}, CALLBACKS), MEMORY)
    )
    path = tmp_path / "state.json"

    def load(text):
        path.write_text(text)
        Checkpoints(tmp_path, {"seed": 1}).load()

    num_refused, num_cases = run_cases(load, json.loads(path.read_text()), len(HOSTILE))
    assert num_refused > num_cases / 2


@pytest.mark.parametrize(
    "plan", [[1], "x", {"resize": 10**400, "columns": []}, {"resize": "x"}, {"resize": -1}]
)
def test_x11_plan_of_a_run_with_a_wrong_type_is_refused(folder, plan):
    pipeline = ps.Pipeline.fit(ps.open(folder))
    form = JsonValue({"schema": pipeline.schema.to_json(), "plan": plan}, Document("fields of the run"))
    with pytest.raises(SchemaError):
        find_recipe(pipeline, RecordedData.from_json(form, TextFiles()), None)
