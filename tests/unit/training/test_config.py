"""`run.yaml`: tables that go in come out, and every fault of a file names its line."""

from pathlib import Path, PurePosixPath

import pytest

from penstock.errors import NoSuchPathError, PathError, SchemaError, WriteError
from penstock.training.run_files import CONFIG_NAME, TABLES, read_run_config, write_run_config


@pytest.fixture
def refuse(tmp_path):
    """Return the error for a file of some text, without its path."""

    def read(text):
        path = tmp_path / "my.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(SchemaError) as caught:
            read_run_config(path)
        return str(caught.value).removeprefix(f"{path}: ")

    return read


def test_tables_are_read_as_they_were_written(tmp_path):
    tables = {
        "source": ["pets.csv", "more.csv"],
        "data": "data",
        "target": "sold",
        "convert": {"target": ["sold"], "seed": 3},
        "fields": {"note": {"tokenize": {"max_tokens": 8}}},
        "model": "own",
        "train": {
            "epochs": 2,
            "learning_rate": 1e-3,
            "patience": None,
            "class_weights": {"sold": {0: 1.0, "no": 2}},
        },
        "facts": {"logits": {"sold": False}, "deviation": 0.1},
    }
    write_run_config(tmp_path, tables)
    found = read_run_config(tmp_path / CONFIG_NAME)
    assert found == tables
    assert list(found) == list(tables)
    text = (tmp_path / CONFIG_NAME).read_text()
    assert text.startswith("# What this run was made with. `penstock train --config run.yaml --out OTHER`")


def test_words_that_yaml_takes_for_something_else_stay_words(tmp_path):
    words = ["yes", "no", "on", "null", "~", "1e3", "0x1f", "2024-01-01", "é", "a: b", "#", " ", "", "1_000"]
    tables = {"train": {"class_weights": {"sold": dict.fromkeys(words, 1.0)}}, "convert": {"missing": words}}
    write_run_config(tmp_path, tables)
    assert read_run_config(tmp_path / CONFIG_NAME) == tables


def test_tuples_paths_and_other_mappings_become_plain(tmp_path):
    tables = {"convert": {"missing": ("", "-"), "drop": ()}, "train": {"cache": PurePosixPath("a/b")}}
    write_run_config(tmp_path, tables)
    assert read_run_config(tmp_path / CONFIG_NAME) == {
        "convert": {"missing": ["", "-"], "drop": []},
        "train": {"cache": "a/b"},
    }


@pytest.mark.parametrize("text", ["", "# nothing\n", "train:\n", "train: null\nmodel: ~\n"])
def test_file_without_settings_has_none(tmp_path, text):
    path = tmp_path / "my.yaml"
    path.write_text(text)
    assert read_run_config(path) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "settings: expected tables by name, got ['a']."),
        ("words\n", "settings: expected tables by name, got 'words'."),
        (
            "train:\n  epochs: 2\nmodell: {}\n",
            "line 3: table 'modell': expected one of a run, got 'modell'. Did you mean 'model'?",
        ),
        (
            "\n\nepochs: 3\n",
            f"line 3: table 'epochs': expected one of a run, got 'epochs'. There are {', '.join(TABLES)}.",
        ),
        ("5: {}\n", f"line 1: table 5: expected one of a run, got 5. There are {', '.join(TABLES)}."),
        ("train:\n- epochs\n", "line 1: table 'train': expected options by name, got ['epochs']."),
        ("model: {}\ntrain: 3\n", "line 2: table 'train': expected options by name, got 3."),
        ("data: []\n", "line 1: table 'data': expected a word, or several, got []."),
        ("data: [a, 3]\n", "line 1: table 'data': expected a word, or several, got ['a', 3]."),
        ("source: {a: b}\n", "line 1: table 'source': expected a word, or several, got {'a': 'b'}."),
        ("target: 3\n", "line 1: table 'target': expected a word, or several, got 3."),
        ("model: mine\n", "line 1: table 'model': expected options by name, got 'mine'."),
        ("train: {a: 1\n", "line 2: expected YAML, got "),
        ("train: *x\n", "line 1: expected no anchors and aliases, got '*x'."),
        ("train:\n  seed: 1\n  seed: 2\n", "line 3: expected each key once, got 'seed' twice."),
        ("model: !!python/object/apply:os.getcwd []\n", "line 1: expected no tags, got "),
        (b"train: \xff\n", "line 1: expected UTF-8, got the byte 0xff at offset 7."),
    ],
)
def test_fault_of_a_file_names_its_line(refuse, text, message):
    assert refuse(text).startswith(message)


@pytest.mark.parametrize("table", ["convert", "fields", "groups", "train", "facts"])
def test_word_in_the_place_of_a_table_is_refused(refuse, table):
    assert refuse(f"data: d\n{table}: fast\n").startswith(f"line 2: table '{table}': expected ")


def test_file_that_is_not_there_or_a_folder_is_named(tmp_path):
    with pytest.raises(NoSuchPathError, match=r"my\.yaml: no such config file"):
        read_run_config(tmp_path / "my.yaml")
    with pytest.raises(PathError, match="cannot be read"):
        read_run_config(tmp_path)


def test_place_that_cannot_be_written_is_an_error_of_the_path(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WriteError, match=r"run\.yaml: cannot be written"):
        write_run_config(Path(tmp_path / "file"), {})
