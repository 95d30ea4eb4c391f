"""The five workflows, as the scripts in `examples/` do them: what each learnt from the data that it makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from example_scripts import run_example


def test_shards_of_others_go_into_fit_by_name(tmp_path, monkeypatch, capsys) -> None:
    found = run_example("shards_into_fit", tmp_path, monkeypatch)
    # Late is what two of three inputs speak for: one alone is right in three of four records.
    assert found["majority"] < 0.6
    assert found["accuracy"] >= 0.9
    printed = capsys.readouterr().out
    assert "photo     input   uint8 (n, 32, 32, 3)" in printed
    assert "measures  input   float32 (n, 5)" in printed
    assert "stations  input   int64 (n, ?)" in printed
    assert not (tmp_path / "parcels" / "penstock.json").exists()


def test_arrays_come_back_with_shape_and_type_and_are_learnt_from(tmp_path, monkeypatch, capsys) -> None:
    found = run_example("arrays", tmp_path, monkeypatch)
    assert len(found["per_epoch"]) == 5
    assert found["per_epoch"][-1] > found["per_epoch"][0]
    assert found["accuracy"] >= 0.9  # of three shapes, equally frequent
    assert "float32 (64, 64)" in capsys.readouterr().out


def test_batches_are_shuffled_over_files_padded_by_length_and_augmented_in_training_alone(
    tmp_path, monkeypatch
) -> None:
    found = run_example("batches", tmp_path, monkeypatch)
    assert found["num_files"] == 4
    assert found["padding"] > 0.5
    assert found["padding_bucketed"] < 0.1
    assert found["is_augmented"]
    assert not found["is_test_augmented"]
    # Green and praised products are recommended: either alone is right in three of four records.
    assert found["accuracy"] >= found["majority"] + 0.15


def test_photo_and_caption_predict_better_together_than_alone(tmp_path, monkeypatch) -> None:
    found = run_example("images_and_text", tmp_path, monkeypatch)
    assert found["both"] >= 0.9
    assert found["both"] > max(found["photo"], found["caption"]) + 0.2


def test_tables_of_three_kinds_are_learnt_from_and_tested_on_rows_kept_back(tmp_path, monkeypatch) -> None:
    found = run_example("one_table", tmp_path, monkeypatch)
    assert found["flats"]["r2"] >= 0.9  # a line over the area, the best single input, explains 0.64
    assert found["tickets"]["accuracy"] >= 0.9  # always no: 0.79; the note alone 0.74, the number 0.76
    assert found["leaves"]["accuracy"] >= 0.9  # the photo alone: 0.78, the length 0.73
    for name, field in {"flats": "area", "tickets": "people", "leaves": "length"}.items():
        check_scale(tmp_path / name, tmp_path / "runs" / name, field)


def check_scale(data: Path, run: Path, field: str) -> None:
    """Look whether a number that went into a model has mean 0 in the train split, and in no other."""
    pipeline = ps.Pipeline.load(run / "pipeline.json")
    means = {}
    for name, split in ((name, ps.open(data)[name]) for name in ("train", "test")):
        values = np.concatenate([inputs[field] for inputs, _ in split.loader(pipeline)])
        means[name] = abs(float(values.mean()))
    assert means["train"] < 1e-5
    assert means["test"] > 1e-3


# The package registers file systems that others have registered, which its own process would not notice.
@pytest.mark.filterwarnings("ignore:A filesystem protocol was already set:UserWarning")
def test_hugging_face_example_keeps_types_and_names_of_classes(tmp_path, monkeypatch):
    first = run_example("hugging_face", tmp_path, monkeypatch)
    found = run_example("hugging_face", tmp_path, monkeypatch)  # again in the same folder
    assert found == first
    assert found["records"] == {"train": 160, "validation": 20, "test": 20}
    assert found["types"] == {"image": "image", "caption": "text", "side": "category"}
    assert found["classes"] == ("left", "right")
    assert (found["image"], found["side"]) == ((32, 16, 16, 3), (32,))
