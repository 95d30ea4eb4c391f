"""The law that predictions of a record do not depend on its batch, for each kind of built model.

`python batch_sizes.py [CASE …]` checks all sizes of batches with the backend in KERAS_BACKEND.
"""

import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from PIL import Image as Picture

import penstock as ps
from built_models import Part, make_pipeline
from fit_sources import lists, nested, numbers, strings
from penstock.export.raw_inputs import RawInput, encode_rows
from penstock.fields import Category, Image, Number, Sequence, Tensor, Text
from penstock.model.build import build_model
from penstock.model.presets import fill_in_preset
from penstock.settings.model import ModelOptions
from penstock.training.keras_state import seeded
from penstock.transform import Encode, Keep, Pad, Scale, Tokenize
from penstock.transform import Image as Decode
from penstock.transform.pipeline import Pipeline

NUM_RECORDS = 43
UNITS = 8
_LEAST_RECORDS = 8
TOLERANCE = 1e-5  # of a probability, or of the range of the predictions of a number

_RNG = np.random.default_rng(17)
_WORDS = ("sails", "wooden", "small", "broken", "oak", "red", "very", "old")
Predict = Callable[[dict[str, Any]], Any]
Answer = Callable[[list[Any]], list[dict[str, Any]]]


def _draw_texts() -> list[str | bytes | None]:
    return [" ".join(_RNG.choice(_WORDS, _RNG.integers(0, 9))) for _ in range(NUM_RECORDS)]


def _draw_lists(make: Callable[[], Any], most: int = 6) -> list[Any]:
    return [[make() for _ in range(_RNG.integers(0, most))] for _ in range(NUM_RECORDS)]


def _draw_pictures(side: int = 16) -> list[str | bytes | None]:
    found: list[str | bytes | None] = []
    for _ in range(NUM_RECORDS):
        buffer = io.BytesIO()
        Picture.fromarray(_RNG.integers(0, 256, (side, side, 3), np.uint8)).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return found


def _draw_numbers(*shape: int) -> list[Any]:
    return list(_RNG.normal(0, 1, (NUM_RECORDS, *shape)).astype(np.float32))


def _draw_codes(number: int) -> list[int]:
    return [*range(number), *_RNG.integers(0, number, NUM_RECORDS - number).tolist()]


def _name_codes() -> list[str | bytes | None]:
    return [("oak", "red", "old")[code] for code in _draw_codes(3)]


TABLE: Mapping[str, Part] = {
    "age": (Number(), Scale(), numbers(_draw_numbers())),
    "height": (Number(optional=True), Scale(indicator=True), numbers([None, *_draw_numbers()[1:]])),
    "legs": (Number("int64"), Keep(), numbers(_draw_codes(5), "int64")),
    "wood": (Category(), Encode(), strings(_name_codes())),
}
NOTE: Mapping[str, Part] = {"note": (Text(), Tokenize(), strings(_draw_texts()))}
TEXTS: Mapping[str, Part] = {**NOTE, "review": (Text(), Tokenize(length=7), strings(_draw_texts()))}
SEQUENCES: Mapping[str, Part] = {
    **NOTE,
    "values": (Sequence("string"), Encode(), lists(_draw_lists(lambda: str(_RNG.choice(_WORDS))), "string")),
    "hours": (Sequence("int64"), Pad(), lists(_draw_lists(lambda: int(_RNG.integers(0, 24))))),
    "levels": (Sequence("float32"), Scale(), lists(_draw_lists(lambda: float(_RNG.normal())), "float32")),
    "visits": (
        Sequence("string", shape=None, stored="feature_list"),
        Encode(),
        nested(
            _draw_lists(lambda: [str(each) for each in _RNG.choice(_WORDS, _RNG.integers(0, 3))]), "string"
        ),
    ),
}
IMAGES: Mapping[str, Part] = {
    "photo": (Image("png"), Decode(size=16), strings(_draw_pictures())),
    "back": (Image("png"), Decode(size=16), strings(_draw_pictures())),
    "grid": (Tensor((12, 10), "float32"), Keep(), numbers(_draw_numbers(12, 10))),
    "box": (Tensor((5,), "float32"), Keep(), numbers(_draw_numbers(5))),
    "scan": (Tensor((6, 6, 6, 1), "float32"), Keep(), numbers(_draw_numbers(6, 6, 6, 1))),
}
YES: Mapping[str, Part] = {
    "y": (Category("int64", role="target"), Encode(), numbers(_draw_codes(2), "int64"))
}
PRICE: Mapping[str, Part] = {"price": (Number(role="target"), Keep("float32"), numbers(_draw_numbers()))}
KIND: Mapping[str, Part] = {"kind": (Category(role="target"), Encode(), strings(_name_codes()))}
TAGS = lists([[], *_draw_lists(lambda: str(_RNG.choice(_WORDS)))[1:]], "string")
SEVERAL: Mapping[str, Part] = {
    **YES,
    **PRICE,
    **KIND,
    "tags": (Sequence("string", role="target"), Encode("multi_hot"), TAGS),
    "place": (Tensor((2,), "float32", role="target"), Keep(), numbers(_draw_numbers(2))),
}
LARGE: Mapping[str, Part] = {"photo": (Image("png"), Decode(size=32), strings(_draw_pictures(32)))}
ALL: Mapping[str, Part] = {**TABLE, **SEQUENCES, **IMAGES}


@dataclass(frozen=True)
class Case:
    """Inputs, targets and options of a model, and the deviation of the noise on its weights."""

    parts: Mapping[str, Part]
    options: ModelOptions
    deviation: float = 0.2

    @property
    def sizes(self) -> list[int]:
        """Sizes of batches that equal an axis of some tensor of the model, and their neighbours."""
        members, tasks = self.options.members or 1, (2, 3)
        width = fill_in_preset(self.options).token_width or 1
        found = {1, 2, members - 1, members, members + 1, UNITS, width, *tasks, 40}
        return sorted(found - {0})


def _make(parts: Mapping[str, Part], targets: Mapping[str, Part], members: int, **options: Any) -> Case:
    chosen = ModelOptions(preset="small", members=members, units=(UNITS,), **options)
    return Case({**parts, **targets}, chosen)


CASES: Mapping[str, Case] = {
    "table": _make(TABLE, YES, 16),
    "table, several targets": _make(TABLE, SEVERAL, 4),
    "table as ramps": _make(TABLE, PRICE, 1, numbers="ramps"),
    "one text": _make(NOTE, YES, 16),
    "texts": _make(TEXTS, YES, 16, token_width=32),
    "texts, a number": _make(TEXTS, PRICE, 4),
    "texts, several targets": _make(TEXTS, SEVERAL, 4),
    "texts, one member": _make(TEXTS, SEVERAL, 1),
    "pooled texts": _make(TEXTS, YES, 4, text="pool"),
    "convolutions": _make(SEQUENCES, YES, 4, text="conv"),
    "recurrent": _make(SEQUENCES, YES, 4, text="gru", sequence="gru"),
    "transformers": _make(SEQUENCES, YES, 4, text="transformer", sequence="transformer", token_width=8),
    "narrow transformer": _make(NOTE, YES, 4, text="transformer", token_width=4),
    "images and arrays": _make(IMAGES, KIND, 4),
    "images by plain networks": _make(IMAGES, YES, 1, image="cnn", array="cnn", share_images=False),
    "mixed": _make(ALL, YES, 16),
    "mixed, several targets": _make(ALL, SEVERAL, 4),
    "mixed, without outputs of parts": _make(ALL, YES, 4, part_outputs=False),
}
LONG_CASES: Mapping[str, Case] = {
    **CASES,
    # More noise in its 150 layers makes differences of rounding larger than the limit.
    "a model of keras.applications": replace(_make(LARGE, YES, 4, image="MobileNetV2"), deviation=0.16),
    "mixed, one member": _make(ALL, SEVERAL, 1),
    "mixed, sixteen members, several targets": _make(ALL, SEVERAL, 16),
}
ALL_SIZES = range(1, 41)


def build(case: Case) -> tuple[keras.Model, Pipeline]:
    """Return a model with random weights, and its pipeline."""
    pipeline, _ = make_pipeline(case.parts, num_rows=NUM_RECORDS)
    with seeded(0):  # with some weights, a network of images predicts the same for all records
        model = build_model(pipeline.schema, pipeline, case.options)
    rng = np.random.default_rng(0)
    # Other weights than initial ones, so that no bias is 0 and no n-gram without effect. A vector may be
    # a variance: it only grows.
    noise = [rng.normal(0, case.deviation, each.shape) for each in model.get_weights()]
    noise = [each**2 if each.ndim < 2 else each for each in noise]
    drawn = [(old + new).astype(old.dtype) for old, new in zip(model.get_weights(), noise, strict=True)]
    model.set_weights(drawn)
    return model, pipeline


def call(model: keras.Model) -> Predict:
    """Return a function that calls the model, operation by operation where the backend does so."""
    return partial(model, training=False)


def compile_for_each(model: keras.Model) -> Predict:
    """Return a function that predicts a batch with a function compiled for its shape."""

    def predict(batch: dict[str, Any]) -> Any:
        model.make_predict_function(force=True)
        return model.predict_on_batch(batch)

    return predict


def predict_in_batches(
    case: Case, pipeline: Pipeline, predict: Predict, size: int, num_batches: int | None = None
) -> list[Any]:
    """Return the outputs for the first batches of a size, each padded for itself."""
    stop = NUM_RECORDS if num_batches is None else min(NUM_RECORDS, max(_LEAST_RECORDS, num_batches * size))
    found = []
    for start in range(0, stop, size):
        rows = np.arange(start, min(stop, start + size))
        columns = {name: column.take(rows) for name, (_, _, column) in case.parts.items()}
        inputs, _, _ = pipeline.apply(columns, len(rows))
        outputs = keras.tree.flatten(predict(inputs))
        found.append([np.array(keras.ops.convert_to_numpy(each)) for each in outputs])
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def count_predictions(outputs: list[Any]) -> int:
    """Return the number of predictions in outputs: one for each record and target."""
    return sum(len(each) for each in outputs)


def measure_difference(first: list[Any], second: list[Any]) -> float:
    """Return the largest difference of outputs of the same records, in parts of the range of each output."""
    worst = 0.0
    for one, other in zip(first, second, strict=True):
        rows = min(len(one), len(other))
        scale = max(1.0, float(np.ptp(one)))
        worst = max(worst, float(np.abs(one[:rows] - other[:rows]).max()) / scale)
    return worst


class Compared(NamedTuple):
    """Sizes of batches that were compared, once for each form of a model, and predictions in them."""

    num_sizes: int
    num_predictions: int


def check(
    case: Case, sizes: Iterable[int], compiled_sizes: Iterable[int], num_batches: int | None = None
) -> Compared:
    """Compare predictions in batches of each size with predictions of all records; return the counts."""
    model, pipeline = build(case)
    expected = predict_in_batches(case, pipeline, call(model), NUM_RECORDS)
    for each in expected:
        assert np.isfinite(each).all()
        assert np.ptp(each, axis=0).min() > 100 * TOLERANCE, "predictions that cannot differ"
    num_sizes = num_predictions = 0
    for predict, chosen in ((call(model), sizes), (compile_for_each(model), compiled_sizes)):
        for size in chosen:
            found = predict_in_batches(case, pipeline, predict, size, num_batches)
            difference = measure_difference(expected, found)
            assert difference <= TOLERANCE, f"batches of {size}: predictions differ by {difference:.3g}"
            num_sizes += 1
            num_predictions += count_predictions(found)
    return Compared(num_sizes, num_predictions)


def ask_predictor(folder: Path, format: str) -> Answer:
    """Return a function that answers requests by `ps.Predictor`."""
    predictor = ps.Predictor(folder, backend="onnx" if format == "onnx" else None)

    def answer(rows: list[Any]) -> list[dict[str, Any]]:
        found = predictor.predict(rows).to_pylist()
        return [{name: each for name, each in row.items() if name != "row"} for row in found]

    return answer


def ask_saved_model(folder: Path) -> Answer:
    """Return a function that answers requests by TensorFlow."""
    import tensorflow as tf  # noqa: PLC0415 - other backends do without it

    from penstock.export import serve_rows  # noqa: PLC0415

    loaded = tf.saved_model.load(folder)
    form = json.loads((folder / "export.json").read_text())["details"]["inputs"]
    inputs = {name: RawInput.from_json(name, each) for name, each in form.items()}

    def answer(rows: list[Any]) -> list[dict[str, Any]]:
        request = {"inputs": encode_rows(inputs, rows)}
        found = serve_rows._ask(loaded.signatures["serving_default"], [request], "")
        return [{name: each[row] for name, each in found.items()} for row in range(len(rows))]

    return answer


def check_exported(answer: Answer, rows: list[Any], sizes: Iterable[int], num_targets: int) -> Compared:
    """Compare the answers to requests of each size with those to all rows; return what was compared."""
    expected, num_sizes, num_rows = answer(rows), 0, 0
    for size in sizes:
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        for one, other in zip(expected, [each for part in parts for each in answer(part)], strict=True):
            for name, value in one.items():
                same = np.array_equal(value, other[name])
                if np.issubdtype(np.asarray(value).dtype, np.floating):
                    limit = TOLERANCE * np.maximum(1.0, np.abs(value))
                    same = bool(np.all(np.abs(value - other[name]) <= limit))
                assert same, f"requests of {size} rows: {name} is {other[name]}, not {value}"
            num_rows += 1
        num_sizes += 1
    return Compared(num_sizes, num_rows * num_targets)


if __name__ == "__main__":
    for name in sys.argv[1:] or LONG_CASES:
        print(name, *check(LONG_CASES[name], ALL_SIZES, ALL_SIZES, 1), sep="\t", flush=True)
