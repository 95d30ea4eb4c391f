"""Words and pairs of words on a linear path to the outputs: what they add, and what they cost."""

from itertools import pairwise

import keras
import numpy as np
import pytest

from built_models import NOTE, NUM_ROWS, YES, make_pipeline, run
from fit_sources import numbers, strings
from penstock.fields import Category, Number, Text
from penstock.model.build import build_model
from penstock.model.encoder.ngrams import _count_pairs
from penstock.settings.model import ModelOptions
from penstock.transform import Encode, Keep, Tokenize

NUM_WORDS, NUM_PAIRS = 10, 1024  # of NOTE: padding, unknown words and eight words


def build(parts, **options):
    pipeline, inputs = make_pipeline(parts)
    chosen = ModelOptions(**{"preset": "small", **options})
    return build_model(pipeline.schema, pipeline, chosen), inputs


def silence(model, *kept):
    """Set all weights to 0, except in the named layers."""
    for layer in model.layers:
        if layer.name not in kept:
            layer.set_weights([np.zeros_like(each) for each in layer.get_weights()])


def sum_ngrams(ids, table):
    """Return the linear function of the n-grams of one text, word by word."""
    words = [int(each) for each in ids if each]
    found = [(each, 1 + 0.5 * np.log(each + 1)) for each in words]
    for first, second in pairwise(words):
        found.append((NUM_WORDS + (first * 40_503 + second) % NUM_PAIRS, 3.5))
    norm = np.sqrt(sum(weight**2 for _, weight in found))
    return sum(10 * weight / norm * table[each] for each, weight in found) if found else 0 * table[0]


@pytest.mark.parametrize("members", [1, 4])
def test_logits_are_the_sum_of_weighted_rows(members):
    model, inputs = build({"note": NOTE, "y": YES}, members=members)
    table = np.random.default_rng(1).normal(0, 0.1, (NUM_WORDS + NUM_PAIRS, 1)).astype("float32")
    model.get_layer("y_note_ngrams").set_weights([table])
    silence(model, "y_note_ngrams")
    wanted = 1 / (1 + np.exp(-np.array([sum_ngrams(each, table) for each in inputs["note"]])))
    np.testing.assert_allclose(run(model, inputs), wanted, rtol=1e-5)
    assert wanted[1] == 0.5  # of an empty text


def test_order_of_words_counts():
    model, inputs = build({"note": NOTE, "y": YES})
    table = np.arange(NUM_WORDS + NUM_PAIRS, dtype="float32")[:, None] * 1e-4
    model.get_layer("y_note_ngrams").set_weights([table])
    turned = {"note": inputs["note"].copy()}
    turned["note"][3] = turned["note"][3, ::-1]
    first, second = run(model, inputs), run(model, turned)
    assert first[3] != second[3]
    np.testing.assert_array_equal(np.delete(first, 3), np.delete(second, 3))


def test_rows_begin_at_0_and_have_no_influence_on_a_new_model():
    model, _ = build({"note": NOTE, "y": YES})
    assert not model.get_layer("y_note_ngrams").get_weights()[0].any()


def test_tokens_that_a_mask_leaves_out_have_no_influence():
    tokens = (Text(), Tokenize(length=4, mask=True), NOTE[2])
    model, inputs = build({"note": tokens, "y": YES})
    table = np.full((NUM_WORDS + NUM_PAIRS, 1), 0.1, "float32")
    model.get_layer("y_note_ngrams").set_weights([table])
    output = run(model, {**inputs, "note_mask": np.zeros_like(inputs["note_mask"])})
    assert (output == output[0]).all()


def test_numbers_are_learned_in_standard_units():
    prices = (Number(role="target"), Keep("float32"), numbers([10, 20, 30, 40, 50, 60]))
    model, inputs = build({"note": NOTE, "price": prices})
    table = np.zeros((NUM_WORDS + NUM_PAIRS, 1), "float32")
    cat = inputs["note"][5, 0]
    table[cat] = 0.1
    model.get_layer("price_note_ngrams").set_weights([table])
    silence(model, "price_note_ngrams")
    output = run(model, inputs)
    deviation = np.std([10, 20, 30, 40, 50, 60])
    np.testing.assert_allclose(output[5], 35 + deviation, rtol=1e-5)  # a text of one word: 10 times 0.1
    np.testing.assert_allclose(output[1], 35, rtol=1e-5)


def test_many_classes_have_short_rows_and_a_dense_layer():
    texts = [f"word{number} and" for number in range(40)]
    parts = {
        "note": (Text(), Tokenize(), strings(texts)),
        "kind": (Category(role="target"), Encode(), strings([f"kind{number}" for number in range(40)])),
    }
    model, inputs = build(parts)
    assert model.get_layer("kind_note_ngrams").output_dim == 16
    assert model.get_layer("kind_note_ngrams_dense").units == 40
    assert run(model, {"note": inputs["note"][:NUM_ROWS]}).shape == (NUM_ROWS, 40)


def test_texts_of_one_token_have_no_pairs():
    model, inputs = build({"note": (Text(), Tokenize(split=None), NOTE[2]), "y": YES})
    assert model.get_layer("y_note_ngrams").input_dim == 6  # padding, unknown words and four texts
    assert np.isfinite(run(model, inputs)).all()


def test_products_of_ids_fit_into_32_bits():
    words = tuple(f"w{number}" for number in range(120_000))
    tokens = (Text(), Tokenize(vocabulary=words), NOTE[2])
    model, _ = build({"note": tokens, "y": YES})
    size = model.get_layer("y_note_ngrams").input_dim
    assert size == 120_002 + (1 << 18)
    model.get_layer("y_note_ngrams").set_weights([np.ones((size, 1), "float32")])
    largest = np.full((1, 3), 120_001, "int32")
    silence(model, "y_note_ngrams")
    # A product that overflows would give an id outside of the table, and zeros or an error.
    word, pair = 1 + 0.5 * np.log(120_002), 3.5
    logit = 10 * (3 * word + 2 * pair) / np.sqrt(3 * word**2 + 2 * pair**2)
    np.testing.assert_allclose(run(model, {"note": largest}), [[1 / (1 + np.exp(-logit))]], rtol=1e-5)


@pytest.mark.parametrize(
    ("num_words", "num_pairs"), [(2, 1024), (1000, 32_768), (20_000, 1 << 18), (10**6, 1 << 18)]
)
def test_more_words_have_more_pairs(num_words, num_pairs):
    assert _count_pairs(num_words, 32) == num_pairs


def test_cost_falls_with_the_number_of_texts():
    costs = []
    for count in (NUM_ROWS, 10 * NUM_ROWS):
        texts = strings(["a cat", "an eel", "a dog"] * (count // 3))
        kinds = (Category("int64", role="target"), Encode(), numbers([0, 1, 0] * (count // 3), "int64"))
        model, _ = build({"note": (Text(), Tokenize(), texts), "y": kinds})
        costs.append(float(model.get_layer("y_note_ngrams").embeddings_regularizer.l2))
    assert costs[0] == pytest.approx(10 * costs[1], rel=1e-2)


def test_dropout_leaves_out_ngrams_only_in_training():
    model, inputs = build({"note": NOTE, "y": YES}, dropout=0.1)
    model.get_layer("y_note_ngrams").set_weights([np.full((NUM_WORDS + NUM_PAIRS, 1), 0.3, "float32")])
    np.testing.assert_array_equal(run(model, inputs), run(model, inputs))
    drawn = [np.asarray(model(dict(inputs), training=True)) for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()
    plain, _ = build({"note": NOTE, "y": YES}, dropout=0)
    assert not any(isinstance(each, keras.layers.Dropout) for each in plain.layers)
