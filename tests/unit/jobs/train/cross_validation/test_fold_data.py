"""The data of a cross-validation: strata, splits that are not used, rare classes, links."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import OptionError, TrainingDataError
from penstock.jobs.train.cross_validation.fold_data import FoldRequest, check_classes, link_fold


def write(folder, labels, **options):
    rows = len(labels)
    table = {"a": np.arange(rows, dtype=np.float32), "y": labels, **options.pop("more", {})}
    return ps.convert(table, folder, target="y", **options)


def divide(data, tmp_path, number=5, seed=0, validation=0.1, splits=("train", "validation")):
    request = FoldRequest(data, splits, number, seed, validation)
    request.check()
    request.divide(tmp_path / f"folds-{seed}")
    return request, ps.open(tmp_path / f"folds-{seed}")


def test_folds_have_equal_parts_of_each_class(tmp_path):
    data = write(tmp_path / "data", ["no"] * 160 + ["yes"] * 40)
    request, folds = divide(data, tmp_path)
    assert request.rule.stratify == "y"
    counts = [[sample["y"] for sample in folds[name]].count("yes") for name in folds.splits]
    pairs = [sum(counts[at : at + 2]) for at in range(0, 10, 2)]
    assert max(pairs) - min(pairs) <= 2
    assert sum(pairs) == sum(sample["y"] == "yes" for part in request.splits for sample in data[part])
    values = [sample["a"] for name in folds.splits for sample in folds[name]]
    assert sorted(values) == sorted(sample["a"] for part in request.splits for sample in data[part])


def test_folds_depend_on_the_seed_alone(tmp_path):
    data = write(tmp_path / "data", ["no", "yes"] * 50)
    first = divide(data, tmp_path)[1]
    second = divide(data, tmp_path, seed=1)[1]
    (tmp_path / "again").mkdir()
    again = divide(data, tmp_path / "again")[1]
    values = [[sample["a"] for sample in each["fold_1"]] for each in (first, second, again)]
    assert values[0] == values[2] != values[1]


def test_identical_records_stay_in_one_fold(tmp_path):
    data = write(tmp_path / "data", ["no", "yes"] * 60, more={"a": np.repeat(np.arange(60.0), 2)})
    copies = write(
        tmp_path / "copies", (["no", "yes"] * 60) * 2, more={"a": np.tile(np.repeat(np.arange(60.0), 2), 2)}
    )
    assert data.splits == copies.splits
    folds = divide(copies, tmp_path)[1]
    seen: dict[tuple, str] = {}
    for name in folds.splits:
        for sample in folds[name]:
            assert seen.setdefault((sample["a"], sample["y"]), name) == name


def test_notes_name_unused_splits_rare_classes_and_time(tmp_path):
    labels = ["no"] * 60 + ["yes"] * 37 + ["rare"] * 3
    data = write(tmp_path / "data", labels, split="train=1")
    (note,) = FoldRequest(data, ["train"], 5, 0).list_notes()
    assert "'rare' (3)" in note
    timed = write(tmp_path / "timed", ["no", "yes"] * 50, time="a")
    unused, time = FoldRequest(timed, ["train", "validation"], 5, 0).list_notes()
    assert "'test'" in unused
    assert "time" in time


def test_too_few_records_single_classes_and_lost_groups_are_errors(tmp_path):
    data = write(tmp_path / "data", ["no", "yes"] * 50, split="train=1")
    with pytest.raises(OptionError) as caught:
        FoldRequest(data, ["train"], 60, 0, 0.1).check()
    assert caught.value.got == 60
    assert caught.value.expected.startswith("at most 50")
    FoldRequest(data, ["train"], 60, 0).check()
    single = write(tmp_path / "single", [*["no", "yes"] * 50, "once"], split="train=1")
    with pytest.raises(TrainingDataError) as caught:
        FoldRequest(single, ["train"], 2, 0).check()
    assert caught.value.field == "y"
    more = {"owner": [f"o{row % 20}" for row in range(100)]}
    lost = write(tmp_path / "lost", ["no", "yes"] * 50, more=more, group="owner", drop="owner")
    with pytest.raises(OptionError) as caught:
        FoldRequest(lost, ["train"], 2, 0).check()
    assert "owner" in caught.value.expected


def test_class_of_one_group_is_an_error(tmp_path):
    more = {"owner": [f"o{row // 10}" for row in range(100)]}
    labels = [*["no", "yes"] * 45, *["mine"] * 10]
    data = write(tmp_path / "data", labels, more=more, group="owner", split="train=1")
    folds = divide(data, tmp_path, 2, validation=0.0, splits=["train"])[1]
    with pytest.raises(TrainingDataError) as caught:
        check_classes(folds, 2)
    assert "mine" in caught.value.got


def test_links_share_the_bytes_of_the_folds_and_can_be_made_again(tmp_path, monkeypatch):
    data = write(tmp_path / "data", ["no", "yes"] * 50)
    _, folds = divide(data, tmp_path, 3)
    source = tmp_path / "folds-0"
    link_fold(source, 1, 3, tmp_path / "one" / "data", data.manifest.plan)
    first = ps.open(tmp_path / "one" / "data")
    fitted = ps.Pipeline.fit(first).fingerprint()
    assert all(path.samefile(source / path.name) for path in first.paths)
    assert first.splits == ("train", "validation", "test")
    assert len(first["test"]) == len(folds["fold_1"]) + len(folds["fold_1_validation"])
    first.paths[0].unlink()

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    link_fold(source, 1, 3, tmp_path / "one" / "data", data.manifest.plan)
    again = ps.open(tmp_path / "one" / "data")
    assert again.paths[0].read_bytes() == (source / again.paths[0].name).read_bytes()
    assert again.manifest.plan == data.manifest.plan
    assert ps.Pipeline.fit(again).fingerprint() == fitted
