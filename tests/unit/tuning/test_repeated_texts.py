"""Texts that occur in several splits, nearly unchanged, are noted; short and different ones are not."""

import numpy as np
import pytest

import penstock as ps
from penstock.tuning import repeated_texts
from penstock.tuning.repeated_texts import find_repeated, note_repeated_texts, sign_texts

WORDS = [f"word{number}" for number in range(400)]


def write_texts(rng, count, length=30):
    return [" ".join(rng.choice(WORDS, length)) for _ in range(count)]


def convert(folder, splits):
    rows = [(text, name) for name, texts in splits.items() for text in texts]
    table = {
        "number": np.arange(len(rows)) / 7,  # so that no rows are identical
        "text": [text for text, _ in rows],
        "part": [name for _, name in rows],
        "y": ["yes" if number % 2 else "no" for number in range(len(rows))],
    }
    data = ps.convert(
        table, folder, target="y", split_by="part", fields={"text": ps.fields.Text()}, shuffle=False
    )
    return data, ps.Pipeline.fit(data)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_texts_that_differ_give_no_note(tmp_path, rng):
    texts = {name: write_texts(rng, 60) for name in ("train", "validation", "test")}
    assert list(note_repeated_texts(*convert(tmp_path / "data", texts))) == []


def test_texts_that_differ_in_case_punctuation_and_a_word_are_noted_with_a_pair(tmp_path, rng):
    texts = {name: write_texts(rng, 60, 60) for name in ("train", "validation", "test")}
    texts["validation"][7] = texts["train"][3].upper().replace(" ", ",  ") + "!"
    texts["validation"][9] = texts["train"][21].replace(texts["train"][21].split()[30], "another", 1)
    data, pipeline = convert(tmp_path / "data", texts)
    (note,) = note_repeated_texts(data, pipeline)
    assert "field 'text': 2 records of split 'validation'" in note
    assert "group=COLUMN" in note
    assert "such as record 7 of 'validation' and record 3 of 'train'" in note
    assert [data["train"][3]["text"], data["validation"][7]["text"]] == [
        texts["train"][3],
        texts["validation"][7],
    ]


def test_short_texts_that_repeat_give_no_note(tmp_path, rng):
    texts = {
        name: [*write_texts(rng, 20), *["ok", "very good, thank you all"] * 9] for name in ("train", "test")
    }
    assert list(note_repeated_texts(*convert(tmp_path / "data", texts))) == []


def test_one_split_gives_no_note(tmp_path, rng):
    texts = {"train": write_texts(rng, 20) * 2}
    assert list(note_repeated_texts(*convert(tmp_path / "data", texts))) == []


def test_a_split_that_cannot_be_read_is_left_out(tmp_path, rng):
    texts = {name: write_texts(rng, 20) for name in ("train", "validation", "test")}
    texts["validation"][4] = texts["train"][5]
    texts["test"][4] = texts["train"][5]
    data, pipeline = convert(tmp_path / "data", texts)
    (shard,) = (tmp_path / "data").glob("*test*.tfrecord*")
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 255
    shard.write_bytes(content)
    notes = list(note_repeated_texts(data, pipeline))
    assert ["'validation'" in each for each in notes] == [True]


def test_records_beyond_the_limit_are_left_out(tmp_path, rng, monkeypatch):
    texts = {name: write_texts(rng, 40) for name in ("train", "validation")}
    texts["validation"] = [*texts["train"]]
    data, pipeline = convert(tmp_path / "data", texts)
    monkeypatch.setattr(repeated_texts, "_MAX_RECORDS", 10)
    (note,) = note_repeated_texts(data, pipeline)
    assert "of the first 10 of each" in note


def join(texts):
    """Return ids and offsets of texts that are lists of ids."""
    offsets = np.cumsum([0, *map(len, texts)])
    return np.array([each for text in texts for each in text], np.int32), offsets.astype(np.int64)


def test_signatures_do_not_depend_on_the_texts_around():
    texts = [list(range(start, start + 24)) for start in (0, 50, 90)]
    alone = [sign_texts(*join([text])).hashes[0] for text in texts]
    together = sign_texts(*join([[], texts[0], [1, 2], texts[1], texts[2], []]))
    assert together.records.tolist() == [1, 3, 4]
    np.testing.assert_array_equal(together.hashes, alone)


def test_shingles_are_compared_as_a_set():
    rng = np.random.default_rng(0)
    agreements = []
    for _ in range(200):
        text = rng.integers(0, 10_000, 50).tolist()
        other = [*text[:40], *rng.integers(10_000, 20_000, 10).tolist()]  # 38 of 58 shingles are common
        first, second = (sign_texts(*join([each])).hashes[0] for each in (text, other))
        agreements.append(np.mean(first == second))
    assert np.mean(agreements) == pytest.approx(38 / 58, abs=0.03)


def test_half_of_a_text_is_not_enough():
    rng = np.random.default_rng(1)
    first = [rng.integers(0, 10_000, 40).tolist() for _ in range(300)]
    second = [[*text[:26], *rng.integers(10_000, 20_000, 14).tolist()] for text in first]
    assert find_repeated(sign_texts(*join(first)), sign_texts(*join(second))) is None


def test_no_texts_are_long_enough():
    short, long = sign_texts(*join([[1, 2, 3]])), sign_texts(*join([list(range(20))]))
    assert short.hashes.shape == (0, 32)
    assert find_repeated(short, long) is find_repeated(long, short) is None
