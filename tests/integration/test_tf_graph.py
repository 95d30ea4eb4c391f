"""`split.to_tf_graph()`: TensorFlow's operations alone give what the loader gives, and so does its code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from graph_images import JPEGS, PNGS, TURNED, open_images
from graph_rows import DTYPES, NUM_RECORDS, assert_same_batches, fit_some, write_rows, write_steps
from penstock.cli.main import main
from penstock.errors import OptionError
from penstock.transform import Encode, Image, Keep, Pad, Scale, Tokenize
from raising import containing, raises_with
from record_files import example, write_plain

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow")

BATCH_SIZE = 7


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> ps.Dataset:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows")


@pytest.fixture(scope="module")
def steps(tmp_path_factory) -> ps.Dataset:
    return write_steps(tmp_path_factory.mktemp("steps") / "steps")


def check_against_loader(data: ps.Dataset, pipeline: Any, ulps: int = 0) -> None:
    split = data["train"]
    loader = split.loader(pipeline, batch_size=BATCH_SIZE)
    graph = split.to_tf_graph(pipeline, batch_size=BATCH_SIZE)
    assert graph.element_spec == loader.to_tf(structure="dict").element_spec
    assert_same_batches(loader, graph, ulps)


DATES = {
    "day": (ps.fields.Date(), ps.transform.ExpandDate()),
    "gap": (ps.fields.Date(optional=True), ps.transform.ExpandDate(indicator=True)),
    "filled": (ps.fields.Date(default="2024-02-29"), ps.transform.ExpandDate()),
    "chosen": (ps.fields.Date(optional=True), ps.transform.ExpandDate(missing="2020-02-29", bins=0)),
    "at": (ps.fields.Date("microseconds"), ps.transform.ExpandDate()),
    "gap at": (ps.fields.Date("microseconds", optional=True), ps.transform.ExpandDate()),
    "hour": (ps.fields.Date("microseconds"), ps.transform.ExpandDate(parts=("hour",), indicator=True)),
    "scaled": (ps.fields.Date("microseconds", role="target"), ps.transform.Scale(bins=0)),
}


def test_dates_are_those_of_the_loader(tmp_path):
    """Also before 1970, in leap years, on the last day of a month, and where NumPy's years have no end."""
    rng = np.random.default_rng(3)
    days = np.concatenate([rng.integers(-800_000, 3_000_000, 300), np.arange(10_950, 11_050), [-719_468, -1]])
    micros = days * 86_400_000_000 + rng.integers(0, 86_400_000_000, len(days))
    rows = []
    for number, (day, micro) in enumerate(zip(days.tolist(), micros.tolist(), strict=True)):
        row = {name: day if field.unit == "days" else micro for name, (field, _) in DATES.items()}
        lacks = ("gap", "filled", "chosen", "gap at") if number % 4 == 1 else ()
        rows.append({name: None if name in lacks else value for name, value in row.items()})
    declared = {name: field for name, (field, _) in DATES.items()}
    data = ps.convert(rows, tmp_path / "out", fields=declared, split="train=1.0", shuffle=False)
    pipeline = ps.Pipeline.fit(data, **{name: transform for name, (_, transform) in DATES.items()})
    check_against_loader(data, pipeline)


NUMBERS = {
    "standard": {"float": Scale(), "int": Scale(), "exact": Scale(), "pair": Scale()},
    "minmax": {"int": Scale("minmax"), "exact": Scale("minmax"), "pair": Scale("minmax")},
    "clip": {"float": Scale("clip"), "exact": Scale("clip", quantiles=(0.05, 0.95))},
    "none": {"float": Scale("none"), "raw uint8": Scale("none"), "list bool": Scale("none")},
    "whole": {"pair": Scale(per="whole"), "raw uint64": Scale(per="whole")},
    "gaps": {"gap": Scale(), "gap_int": Scale(missing=-5), "gap_exact": Scale(indicator=True)},
    "gaps of arrays": {"gap_pair": Scale(indicator=True), "gap_raw": Scale(per="whole", missing=2)},
    "defaults": {
        "filled": Scale(indicator=True),
        "filled_exact": Scale(),
        "filled_pair": Scale(indicator=True),
    },
    "nan": {"nan": Scale("none", nan="missing", missing=1.5, indicator=True)},
    "nan kept": {"nan": Scale("none"), "gap": Scale("minmax", missing="mean")},
    "lists": {"floats": Scale("none", mask=True), "ints": Scale("none", length=4, keep="tail")},
    "ragged": {"floats": Scale("none", ragged=True)},
}


@pytest.mark.parametrize("case", NUMBERS)
def test_scale_by_tensorflow_is_that_of_the_loader_to_the_last_bit(rows, case):
    check_against_loader(rows, fit_some(rows, **NUMBERS[case]))


def test_log_by_tensorflow_is_that_of_the_loader_to_a_unit_of_the_last_place(rows):
    logs = {name: Scale("log1p") for name in ("float", "int", "exact", "nan", "gap", "pair")}
    check_against_loader(rows, fit_some(rows, **logs), ulps=1)


KEPT = {
    "scalars": {"float": Keep(), "int": Keep(), "exact": Keep(), "code": Keep()},
    "cast": {
        "int": Keep("float32"),
        "code": Keep("int8"),
        "float": Keep("float64"),
        "raw uint8": Keep("int64"),
    },
    "lists of tensors": {f"list {dtype}": Keep() for dtype in DTYPES if dtype != "float64"},
    "raw tensors": {f"raw {dtype}": Keep() for dtype in DTYPES},
    "gaps": {"gap": Keep(missing=0), "gap_int": Keep(missing=-1), "gap_pair": Keep(missing=0.5)},
    "gaps of bytes": {"gap_raw": Keep(missing=0), "gap_exact": Keep(missing=2.5)},
    "defaults": {
        "filled": Keep(),
        "filled_exact": Keep(),
        "filled_pair": Keep(),
        "filled_raw": Keep("float32"),
    },
    "ragged": {"ints": Keep(ragged=True), "floats": Keep("float64", ragged=True)},
}


@pytest.mark.parametrize("case", KEPT)
def test_kept_values_by_tensorflow_are_those_of_the_loader(rows, case):
    check_against_loader(rows, fit_some(rows, **KEPT[case]))


CODES = {
    "index": {"kind": Encode(), "code": Encode(), "label": Encode()},
    "gaps": {"gap_kind": Encode(), "gap_code": Encode(), "filled_kind": Encode()},
    "one hot": {"kind": Encode("one_hot"), "gap_kind": Encode("one_hot"), "gap_code": Encode("one_hot")},
    "unknown": {"kind": Encode(max_values=2), "gap_code": Encode(vocabulary=(2, 1))},
    "no value is known": {"kind": Encode(min_count=99), "words": Encode(min_count=99)},
    "strict": {"kind": Encode(unknown="error"), "code": Encode("one_hot", unknown="error")},
    "words": {"words": Encode(mask=True), "ints": Encode(length=3)},
    "tail": {"words": Encode(keep="tail", length=2, mask=True)},
    "multiple": {"words": Encode(multiple=4), "ints": Encode(multiple=4, length=6, mask=True)},
    "ragged": {"words": Encode(ragged=True, length=3)},
    "sets": {"words": Encode("multi_hot"), "ints": Encode("multi_hot", max_values=3)},
    "counts": {"words": Encode("count", max_values=2), "ints": Encode("count")},
    "texts": {"text": Encode(), "gap_text": Encode(max_values=2)},
}


@pytest.mark.parametrize("case", CODES)
def test_codes_by_tensorflow_are_those_of_the_loader(rows, case):
    check_against_loader(rows, fit_some(rows, **CODES[case]))


TOKENS = {
    "usual": {"text": Tokenize(), "gap_text": Tokenize(), "filled_text": Tokenize()},
    "fixed": {"text": Tokenize(length=4, mask=True)},
    "tail": {"text": Tokenize(length=3, keep="tail", mask=True)},
    "multiple": {"text": Tokenize(multiple=5, mask=True)},
    "small": {"text": Tokenize(vocabulary_size=4)},
    "given": {"text": Tokenize(vocabulary=("fox", "the"))},
    "as they are": {"text": Tokenize(standardize=None)},
    "lowered": {"text": Tokenize(standardize="lower")},
    "stripped": {"text": Tokenize(standardize="strip")},
    "whole": {
        "text": Tokenize(split=None, mask=True),
        "gap_text": Tokenize(split=None, standardize=None, length=2),
    },
    "sets": {"text": Tokenize(output="multi_hot"), "gap_text": Tokenize(output="count", vocabulary_size=5)},
    "ragged": {"text": Tokenize(ragged=True)},
    "categories": {"kind": Tokenize()},
}


@pytest.mark.parametrize("case", TOKENS)
def test_tokens_by_tensorflow_are_those_of_the_loader(rows, case):
    check_against_loader(rows, fit_some(rows, **TOKENS[case]))


PADDED = {
    "longest": {"ints": Pad(mask=True), "floats": Pad(value=-1.5)},
    "fixed": {"ints": Pad(length=3, value=-1), "floats": Pad(length=9, dtype="float64")},
    "tail": {"ints": Pad(length=3, keep="tail", mask=True)},
    "multiple": {"ints": Pad(multiple=4, mask=True), "floats": Pad(multiple=8, length=3)},
    "ragged": {"ints": Pad(ragged=True, length=2), "floats": Pad(ragged=True, keep="tail", length=2)},
}


@pytest.mark.parametrize("case", PADDED)
def test_padded_lists_by_tensorflow_are_those_of_the_loader(rows, case):
    check_against_loader(rows, fit_some(rows, **PADDED[case]))


STEPS = {
    "one value": {"one": Pad(mask=True), "word": Encode(length=3)},
    "two values": {"two": Pad(length=3, mask=True, keep="tail"), "length": Scale()},
    "scaled": {"two": Scale(), "any": Scale()},
    "any number": {"any": Pad(mask=True), "words": Encode()},
    "cut steps": {
        "any": Pad(step_length=2, keep="tail", length=2),
        "words": Encode(step_length=2, multiple=3),
    },
    "cut rows": {"any": Pad(length=1), "words": Encode(length=1)},
    "sets": {"words": Encode("multi_hot"), "word": Encode("count"), "any": Encode("multi_hot")},
    "ragged": {"any": Pad(ragged=True, length=2), "one": Keep(ragged=True), "words": Encode(ragged=True)},
    "ragged pairs": {"two": Keep(ragged=True)},
    "context": {"name": Tokenize(), "length": Keep()},
}


@pytest.mark.parametrize("case", STEPS)
def test_feature_lists_by_tensorflow_are_those_of_the_loader(steps, case):
    check_against_loader(steps, fit_some(steps, **STEPS[case]))


def test_batches_of_one_size_have_shapes_that_are_known_beforehand(rows, steps):
    # Of one case a field: the first that has it.
    of_rows = {
        name: transform
        for cases in (PADDED, TOKENS, CODES, NUMBERS, KEPT)
        for case in reversed(cases.values())
        for name, transform in case.items()
        if not getattr(transform, "ragged", False)
    }
    of_steps = {**STEPS["cut steps"], **STEPS["two values"], **STEPS["one value"], **STEPS["context"]}
    for data, transforms in ((rows, of_rows), (steps, of_steps)):
        split, pipeline = data["train"], fit_some(data, **transforms)
        graph = split.to_tf_graph(pipeline, batch_size=BATCH_SIZE, last="drop")
        loader = split.loader(pipeline, batch_size=BATCH_SIZE, last="drop")
        assert graph.element_spec == loader.to_tf(structure="dict").element_spec
        assert {spec.shape[0] for spec in tf.nest.flatten(graph.element_spec)} == {BATCH_SIZE}
        assert_same_batches(loader, graph)


def test_default_pipeline_with_targets_weights_and_a_group_is_that_of_the_loader(rows):
    pipeline = ps.Pipeline.fit(rows, kind=Encode("one_hot"), gap=Scale(indicator=True))
    pipeline = pipeline.group("numbers", ["float", "gap_missing", "kind", "int"]).group("more", ["exact"])
    check_against_loader(rows, pipeline)


def test_weights_without_a_target_have_a_name_of_their_own(rows):
    check_against_loader(rows, fit_some(rows, int=Scale(), weight=Keep("float64")))


def test_compressed_files_and_mixed_ones_give_the_same_batches(rows, tmp_path):
    pipeline = fit_some(rows, int=Keep(), text=Tokenize())
    packed = write_rows(tmp_path / "packed", is_compressed=True)
    check_against_loader(packed, pipeline)
    mixed = ps.open([*rows["train"].paths[:1], *packed["train"].paths[1:]], schema=rows.schema)
    (name,) = mixed.splits
    assert_same_batches(mixed[name].loader(pipeline), mixed[name].to_tf_graph(pipeline))
    shuffled = mixed[name].to_tf_graph(pipeline, shuffle=True)
    assert sum(len(inputs["int"]) for inputs, _ in shuffled) == NUM_RECORDS


def test_shuffled_records_are_all_there_in_an_order_that_the_seed_gives(rows):
    pipeline = fit_some(rows, int=Keep())

    def read(seed: int) -> list[list[int]]:
        graph = rows["train"].to_tf_graph(pipeline, batch_size=5, shuffle=True, seed=seed)
        return [[n for inputs, _ in graph for n in inputs["int"].numpy().tolist()] for _ in range(2)]

    first, again, other = read(3), read(3), read(4)
    stored = [number * number - 7 for number in range(NUM_RECORDS)]
    assert first == again
    assert [sorted(epoch) for epoch in first] == [stored, stored]
    assert first[0] != first[1]
    assert first[0] not in (stored, other[0])


def test_value_without_a_code_or_beyond_its_type_ends_the_iteration(rows, tmp_path):
    strict = fit_some(rows, code=Encode(vocabulary=(5, 7, -3), unknown="error"), int=Keep("int16"))
    check_against_loader(rows, strict)

    for name, row in (("code", {"code": 6, "int": 0}), ("int", {"code": 5, "int": 2**15})):
        path = write_plain(tmp_path / f"{name}.tfrecord", [example(**row)])
        other = ps.open(path, schema=rows.schema.select(("code", "int")))
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"'{name}\\\\?'"):
            list(other[other.splits[0]].to_tf_graph(strict))


def test_record_without_a_required_value_ends_the_iteration(rows, tmp_path):

    pipeline = fit_some(rows, int=Keep(), kind=Encode())
    path = write_plain(tmp_path / "short.tfrecord", [example(int=1, kind="cat"), example(int=1)])
    other = ps.open(path, schema=rows.schema.select(("int", "kind")))
    with pytest.raises(tf.errors.InvalidArgumentError, match="kind"):
        list(other[other.splits[0]].to_tf_graph(pipeline))


def test_what_is_no_pipeline_is_refused(rows):
    facts = {"expected": containing("Pipeline"), "got": containing("None")}
    with raises_with(OptionError, what=containing("pipeline"), **facts):
        rows["train"].to_tf_graph(None)


def test_last_choice_that_is_none_is_refused(rows):
    facts = {"expected": containing("'short'", "'drop'"), "got": "'pad'"}
    with raises_with(OptionError, what=containing("last"), **facts):
        rows["train"].to_tf_graph(fit_some(rows, int=Keep()), last="pad")


def test_graph_runs_in_the_data_service_as_no_python_is_in_it(rows):
    pipeline = ps.Pipeline.fit(rows)
    graph = rows["train"].to_tf_graph(pipeline, batch_size=BATCH_SIZE)
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    address = dispatcher.target.removeprefix("grpc://")
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=address))
    served = graph.apply(service.distribute(service.ShardingPolicy.OFF, dispatcher.target))
    assert_same_batches(rows["train"].loader(pipeline, batch_size=BATCH_SIZE), served)
    del worker


READER = """
import runpy, sys
import numpy as np

for script in sys.argv[1:]:
    arrays = {}
    for number, batch in enumerate(runpy.run_path(script)["dataset"]):
        for part, values in enumerate(batch):
            for name, value in values.items():
                if hasattr(value, "row_splits"):
                    arrays[f"{number}/{part}/{name}/splits"] = value.row_splits
                    value = value.values
                arrays[f"{number}/{part}/{name}"] = value
    np.savez(script + ".npz", **arrays)
"""


def print_code(data: ps.Dataset, pipeline: ps.Pipeline, script: Path, capsys: Any) -> None:
    """Write what the command prints into a script, and the pipeline beside it."""
    script.parent.mkdir()
    pipeline.save(script.with_name("pipeline.json"))
    folder = str(data.paths[0].parent)
    assert main(["inspect", folder, "--tf", "--pipeline", str(script.with_name("pipeline.json"))]) == 0
    script.write_text(capsys.readouterr().out, encoding="utf-8")


def read_printed(script: Path) -> list[list[dict[str, Any]]]:
    """Return the batches that a script gave."""
    batches: dict[str, list[dict[str, Any]]] = {}
    with np.load(f"{script}.npz") as arrays:
        for key, array in arrays.items():
            number, part, name = key.split("/")
            parts = batches.setdefault(number, [{}, {}])
            parts += [{}] * (int(part) >= len(parts))
            parts[int(part)][name] = array
    return list(batches.values())


def test_printed_code_gives_the_batches_of_the_loader(rows, steps, tmp_path, capsys):
    words = tuple(f"word{number}" for number in range(1500))
    full = ps.Pipeline.fit(
        rows,
        text=Tokenize(vocabulary=("the", *words), mask=True),
        code=Encode(vocabulary=tuple(range(-5, 1200))),
        kind=Encode("one_hot"),
        gap=Scale(indicator=True),
        words=Encode("count"),
        pair=Scale("minmax"),
    ).group("numbers", ["float", "gap_missing", "kind"])
    context = ps.Pipeline.fit(steps, words=Encode("multi_hot"), any=Pad(step_length=2))
    (tmp_path / "photos").mkdir()
    photos = open_images(tmp_path / "photos" / "train.tfrecord", [*JPEGS, *TURNED, *PNGS])
    pixels = fit_some(photos, photo=Image(size=(20, 30), resize="pad", fill=(1, 2, 3)))
    cases = [(rows, full, 0), (steps, context, 0), (photos, pixels, 1)]
    scripts = [tmp_path / f"script {number}" / "batches.py" for number in range(len(cases))]
    for (data, pipeline, _), script in zip(cases, scripts, strict=True):
        print_code(data, pipeline, script, capsys)
    reader = tmp_path / "reader.py"
    reader.write_text(READER)
    subprocess.run([sys.executable, str(reader), *map(str, scripts)], check=True, capture_output=True)
    for (data, pipeline, tolerance), script in zip(cases, scripts, strict=True):
        assert_same_batches(
            data["train"].loader(pipeline, augment=False), read_printed(script), pixels=tolerance
        )
    code = scripts[0].read_text(encoding="utf-8")
    assert 'PIPELINE_FILE = pathlib.Path(__file__).with_name("pipeline.json")' in code
    assert 'TEXT = PIPELINE["transforms"]["text"]["vocabulary"]' in code
    assert "word7" not in code
    assert 'KIND = ["cat", "dog", "eel", "emu", "Ünï"]' in code
