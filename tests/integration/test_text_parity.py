"""Texts become what Keras' TextVectorization makes of them: the same tokens, ids, rows, order of ids."""

import warnings
from typing import Any

import numpy as np
import pytest

from fit_sources import fit, run, strings
from penstock.schema.scalar import Text
from penstock.transform.text import Tokenize

STANDARDS = {
    "lower_and_strip": "lower_and_strip_punctuation",
    "lower": "lower",
    "strip": "strip_punctuation",
    None: None,
}
MODES = {"index": "int", "multi_hot": "multi_hot", "count": "count"}

# What other tools take for letters, white space or punctuation, and TextVectorization does not.
ODD = "ÀÉßẞſİıǅﬀΣσςЖжא中あ한\u00a0\u2003\u2028\u3000\u0085\u200b\ufeff…«“”—¿、。！\U0001f600\u0301\x1c\x7f\0"
WORDS = [
    "the",
    "The",
    "THE",
    "cat",
    "don't",
    "e-mail",
    "[UNK]",
    "...",
    "x" * 16,
    "y" * 17,
    "Zürich",
    "ÉCOLE",
    "a_b",
]


@pytest.fixture(scope="module")
def keras() -> Any:
    """Keras on TensorFlow. They warn while they are imported, and here warnings are errors."""
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        environment.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        warnings.simplefilter("ignore")
        pytest.importorskip("tensorflow")
        return pytest.importorskip("keras")


def make_text(rng: np.random.Generator) -> str:
    """Return a text of words, of odd characters, or of any."""
    kind = rng.integers(4)
    if kind == 0:
        words = rng.choice(WORDS, rng.integers(90))
        ends = rng.choice(["", "", ",", "!", "?!"], len(words))
        return str(rng.choice([" ", "\t", " \n ", "\u00a0"])).join(
            map("".join, zip(words, ends, strict=True))
        )
    if kind == 1:
        return "".join(rng.choice(list(ODD + " \t\n\v\f\r" + "aB."), rng.integers(80)))
    if kind == 2:
        return "".join(map(chr, rng.integers(0xD800, size=rng.integers(40))))
    return "".join(map(chr, rng.integers(128, size=rng.integers(700))))


def make_bytes(rng: np.random.Generator) -> bytes:
    """Return bytes that are no UTF-8, as a rule."""
    if rng.integers(2):
        return rng.bytes(rng.integers(300))
    return bytes(rng.choice(list(b"\xff\xc3\xa9Ab! \0"), 200).tolist())


def make_texts(rng: np.random.Generator, are_bytes: bool) -> list[bytes]:
    """Return some texts."""
    return [make_bytes(rng) if are_bytes else make_text(rng).encode() for _ in range(rng.integers(1, 40))]


def vectorize(keras: Any, texts: list[bytes], **options: Any) -> Any:
    """Return a layer that is adapted to texts."""
    layer = keras.layers.TextVectorization(**options)
    layer.adapt(np.array(texts, object))
    return layer


def read_vocabulary(layer: Any) -> list[bytes]:
    """Return the tokens of a layer by id, without special ones; they need be no UTF-8."""
    table = layer._lookup_layer.lookup_table
    if not int(table.size()):
        return []
    tokens, ids = table.export()
    return [tokens.numpy()[i] for i in np.argsort(ids.numpy())]


def as_bytes(token: str | bytes) -> bytes:
    return token.encode() if isinstance(token, str) else token


def check_parity(keras: Any, texts: list[list[bytes]], options: dict, layer_options: dict) -> None:
    """Fit and adapt on some texts, and compare on others."""
    train, other = texts
    layer = vectorize(keras, train, **layer_options)
    transform = fit(Tokenize(**options), Text(), strings(train))
    specials = 2 if transform.output == "index" else 1
    assert [as_bytes(token) for token in transform.tokens[specials:]] == read_vocabulary(layer)
    assert transform.num_codes == layer.vocabulary_size()
    for asked in (other, train, other[:1]):
        found, wanted = run(transform, strings(asked)), np.asarray(layer(np.array(asked, object)))
        # Where no text of a batch has a token, Keras gives no column, and we give one of padding.
        assert found.shape == wanted.shape or (wanted.shape[1], found.tolist()) == (0, [[0]] * len(asked))
        if wanted.shape[1]:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("seed", range(40))
def test_texts_of_any_characters_become_the_ids_that_keras_gives(keras, seed):
    rng = np.random.default_rng(seed)
    texts = [make_texts(rng, seed % 4 == 3) for _ in range(2)]
    size = [None, 3, 4, 10, 50, 20_000][seed % 6]
    length = [None, 1, 5, 64][seed % 4]
    check_parity(
        keras,
        texts,
        {"vocabulary_size": size, "length": length},
        {"max_tokens": size, "output_sequence_length": length},
    )


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("mode", MODES)
def test_texts_under_each_option_equal_keras(keras, standard, mode):
    for seed, size in enumerate([None, 3, 7, 100]):
        rng = np.random.default_rng(seed)
        check_parity(
            keras,
            [make_texts(rng, seed == 3) for _ in range(2)],
            {"vocabulary_size": size, "standardize": standard, "output": mode},
            {"max_tokens": size, "standardize": STANDARDS[standard], "output_mode": MODES[mode]},
        )


@pytest.mark.parametrize("mode", MODES)
def test_texts_that_are_not_split_equal_keras(keras, mode):
    texts = [b"The cat!", b"the cat", b"", b"...", b" a  b ", b"[UNK]", b"a b", b"\0", b"\xc2\xa0", b"\xff"]
    transform = fit(Tokenize(split=None, output=mode, standardize="lower"), Text(), strings(texts))
    layer = vectorize(keras, texts, split=None, output_mode=MODES[mode], standardize="lower")
    asked = [*texts, b"other"]
    wanted = np.asarray(layer(np.array(asked, object)[:, None]))
    np.testing.assert_array_equal(run(transform, strings(asked)), wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("with_specials", [False, True])
def test_texts_with_a_given_vocabulary_equal_keras(keras, mode, with_specials):
    specials = [] if not with_specials else ["", "[UNK]"] if mode == "index" else ["[UNK]"]
    words = [*specials, "the", "caf\u00e9", "Upper", "cat"]
    transform = fit(Tokenize(output=mode, vocabulary=words), Text(), strings(["not read"]))
    layer = keras.layers.TextVectorization(output_mode=MODES[mode], vocabulary=words)
    assert list(transform.tokens) == layer.get_vocabulary()
    texts = ["the Caf\u00e9, UPPER cat", "", "the the dog"]
    np.testing.assert_array_equal(run(transform, strings(texts)), np.asarray(layer(texts)))


def test_ragged_texts_equal_keras(keras):
    texts = [b"the cat sat", b"", b"a cat"]
    layer = vectorize(keras, texts, ragged=True)
    found = run(fit(Tokenize(ragged=True), Text(), strings(texts)), strings(texts))
    assert [found[i].tolist() for i in range(3)] == layer(np.array(texts, object)).to_list()
