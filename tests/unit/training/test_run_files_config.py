"""`run.yaml`: tables that go in come out, and every fault of a file names its line."""

from pathlib import Path, PurePosixPath

import pytest

from penstock.errors import NoSuchPathError, PathError, SchemaError, WriteError
from penstock.settings.training import TrainOptions
from penstock.training.run_config import RunConfig
from penstock.training.run_files import CONFIG_NAME, read_config, write_config
from raising import mentions, raises_with
from run_tables import read_tables


@pytest.fixture
def refuse(tmp_path):
    """Return the error for a file of some text, without its path."""

    def read(text):
        path = tmp_path / "my.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(SchemaError) as caught:
            read_config(path)
        return str(caught.value).removeprefix(f"{path}: ")

    return read


def test_tables_are_read_as_they_were_written(tmp_path):
    tables = {
        "data": "data",
        "source": ["pets.csv", "more.csv"],
        "convert": {"target": "sold", "seed": 3},
        "target": "sold",
        "fields": {"note": {"tokenize": {"max_tokens": 8}}},
        "model": "own",
        "train": {
            "epochs": 2,
            "patience": None,
            "learning_rate": 1e-3,
            "class_weights": {"sold": {"0": 1.0, "no": 2}},
        },
        "facts": {"logits": {"sold": False}, "deviation": {"sold": {"auc": 0.1}}},
    }
    write_config(tmp_path, RunConfig.from_json(tables))
    assert read_tables(tmp_path / CONFIG_NAME) == tables
    assert list(read_tables(tmp_path / CONFIG_NAME)) == list(tables)
    assert read_config(tmp_path / CONFIG_NAME) == RunConfig.from_json(tables)
    text = (tmp_path / CONFIG_NAME).read_text()
    assert mentions(text, "penstock --config run.yaml --out OTHER")


def test_words_that_yaml_takes_for_something_else_stay_words(tmp_path):
    words = ["yes", "no", "on", "null", "~", "1e3", "0x1f", "2024-01-01", "é", "a: b", "#", " ", "", "1_000"]
    tables = {"train": {"class_weights": {"sold": dict.fromkeys(words, 1.0)}}, "convert": {"missing": words}}
    config = RunConfig.from_json(tables)
    write_config(tmp_path, config)
    assert read_config(tmp_path / CONFIG_NAME) == config
    assert config.to_json()["convert"] == {"missing": words}


def test_paths_and_labels_become_plain(tmp_path):
    train = TrainOptions(cache=PurePosixPath("a/b"), class_weights={"sold": {0: 1.0, b"no": 2.0}})
    write_config(tmp_path, RunConfig(train=train))
    weights = {"0": 1.0, "b'no'": 2.0}
    assert read_tables(tmp_path / CONFIG_NAME) == {
        "train": {"cache": "a/b", "class_weights": {"sold": weights}}
    }


@pytest.mark.parametrize("text", ["", "# nothing\n", "train:\n", "train: null\nmodel: ~\n"])
def test_file_without_settings_has_none(tmp_path, text):
    path = tmp_path / "my.yaml"
    path.write_text(text)
    assert read_config(path) == RunConfig()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("- a\n", "run object ['a']"),
        ("words\n", "run object 'words'"),
        ("train:\n  epochs: 2\nmodell: {}\n", "3 $.modell unknown 'model'"),
        ("\n\nepochs: 3\n", "3 $.epochs 'source' 'data' 'facts'"),
        ("train:\n  seed: 1\n  epochs: many\n", "3 $.train.epochs 1 'many'"),
        ("5: {}\n", "keys strings 5"),
        ("train:\n- epochs\n", "1 $.train ['epochs']"),
        ("model: {}\ntrain: 3\n", "2 $.train 3"),
        ("data: []\n", "1 $.data []"),
        ("data: [a, 3]\n", "1 $.data[1] 3"),
        ("source: {a: b}\n", "1 $.source 'b'"),
        ("target: 3\n", "1 $.target 3"),
        ("model: mine\n", "1 $.model 'mine'"),
        ("train: {a: 1\n", "2 YAML"),
        ("train: *x\n", "1 '*x'"),
        ("train:\n  seed: 1\n  seed: 2\n", "3 key 'seed'"),
        ("model: !!python/object/apply:os.getcwd []\n", "1"),
        (b"train: \xff\n", "1 UTF-8 0xff 7"),
    ],
)
def test_fault_of_a_file_names_its_line(refuse, text, facts):
    assert mentions(refuse(text), facts)


@pytest.mark.parametrize("table", ["convert", "fields", "groups", "train", "facts"])
def test_word_instead_of_a_table_is_refused(refuse, table):
    assert mentions(refuse(f"data: d\n{table}: fast\n"), f"2 $.{table} 'fast'")


def test_missing_file_or_folder_is_named(tmp_path):
    with raises_with(NoSuchPathError, "my.yaml"):
        read_config(tmp_path / "my.yaml")
    with raises_with(PathError, "(Is a directory)", path=str(tmp_path)):
        read_config(tmp_path)


def test_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with raises_with(WriteError, "run.yaml"):
        write_config(Path(tmp_path / "file"), RunConfig())
