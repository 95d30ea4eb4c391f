"""The process of one contestant of `quality.py`: trains on one data set with one seed, and prints its scores.

In: contestant, data set, seed and options as JSON on the command line. Out: one line of JSON with the scores
of the validation and of the test split. All contestants train on the same rows of the same split, and are
scored by the same functions.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import quality_data
from quality_data import QualitySet

SPLITS = ("train", "validation", "test")
SHARES = (0.8, 0.1)
QUICK_ROWS = 240
NUM_BINS = 15  # of probabilities, for the calibration error
NUM_DRAWS = 50
NUM_PARTS = 48  # of texts or pixels, for gradient boosting
MOST_CATEGORIES = 254  # that gradient boosting of scikit-learn takes


def draw_split(num_rows: int, seed: int) -> Any:
    """Return the number of the split of each row: about 80, 10 and 10 percent."""
    draws = np.random.default_rng([seed, num_rows]).permutation(num_rows) / num_rows
    return np.searchsorted(np.cumsum(SHARES), draws, side="right")


def score(task: str, truth: Any, predicted: Any) -> dict[str, float]:
    """Return the scores of predictions; truth is codes of classes, or numbers."""
    from penstock.score.metrics import auc  # noqa: PLC0415 - not for --help

    if task == "regression":
        return {"rmse": float(np.sqrt(np.mean((predicted - truth) ** 2)))}
    each = np.stack([1 - predicted, predicted], axis=1) if task == "binary" else predicted
    chosen, sure = each.argmax(axis=1), each.max(axis=1)
    mine = np.clip(each[np.arange(len(truth)), truth], 1e-7, 1)
    found = {"accuracy": float(np.mean(chosen == truth)), "log_loss": float(-np.mean(np.log(mine)))}
    is_right = chosen == truth
    shown, happened = (predicted, truth == 1) if task == "binary" else (sure, is_right)
    found |= {"ece": measure_calibration(shown, happened), "least_ece": draw_calibration(shown)}
    if task == "binary":
        found["auc"] = auc(truth == 1, predicted)
    return found


def measure_calibration(shown: Any, happened: Any) -> float:
    """Return the expected calibration error."""
    numbers = np.minimum((shown * NUM_BINS).astype(int), NUM_BINS - 1)
    return float(np.abs(np.bincount(numbers, happened - shown)).sum() / len(shown))


def draw_calibration(shown: Any) -> float:
    """Return the calibration error that these probabilities have on average if all of them are right."""
    rng = np.random.default_rng(0)
    draws = [rng.random(len(shown)) < shown for _ in range(NUM_DRAWS)]
    return float(np.mean([measure_calibration(shown, each) for each in draws]))


def encode_target(data: QualitySet) -> Any:
    values = np.asarray(data.columns[data.target])
    return values.astype(float) if data.task == "regression" else np.unique(values, return_inverse=True)[1]


# Penstock: the default command, on a CSV file with a column for the split.


def write_table(data: QualitySet, split: Any, folder: Path) -> Path:
    """Write a data set as a CSV file, with images in separate files."""
    columns = dict(data.columns)
    for name in data.images:
        from PIL import Image  # noqa: PLC0415 - only image data needs it

        (folder / name).mkdir()
        paths = [f"{name}/{row:05}.png" for row in range(data.num_rows)]
        for path, pixels in zip(paths, columns[name], strict=True):
            Image.fromarray(pixels).save(folder / path)
        columns[name] = paths
    columns["split"] = [SPLITS[number] for number in split]
    path = folder / f"{data.name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def run_penstock(data: QualitySet, seed: int, options: list[str]) -> dict[str, Any]:
    """Train with the command line, and score the run on both splits."""
    from penstock.cli.main import main  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_table(data, draw_split(data.num_rows, seed), folder)
        given = ["--target", data.target, "--split-by", "split", "--seed", str(seed)]
        with (folder / "log").open("w+") as log:
            printed, sys.stdout = sys.stdout, log
            start = time.perf_counter()
            status = main(["train", str(path), *given, *options, "--out", str(folder / "run")])
            seconds = time.perf_counter() - start
            sys.stdout = printed
            if status:
                log.seek(0)
                sys.exit(f"penstock train: status {status}\n{log.read()[-2000:]}")
        return {**score_run(folder / "run", data), "seconds": seconds}


def score_run(folder: Path, data: QualitySet) -> dict[str, Any]:
    import penstock as ps  # noqa: PLC0415 - starts TensorFlow

    run = ps.open_run(folder)
    predictor, stored = run.predictor(), ps.open(run.data)
    found: dict[str, Any] = {"epochs": len(run.history)}
    task = run.tasks[data.target]
    if task.kind != data.task:
        sys.exit(f"{data.name}: expected the task {data.task}, got {task.kind}")
    for split in SPLITS[1:]:
        truth, predicted = [], []
        for inputs, targets in stored[split].loader(run.pipeline, batch_size=1024):
            truth.append(np.asarray(task.undo(targets[data.target])))
            predicted.append(predictor(inputs)[data.target])
        found[split] = score(data.task, np.concatenate(truth), np.concatenate(predicted))
    return found


# Scikit-learn.


def find_table(data: QualitySet, is_train: Any) -> tuple[Any, list[bool]]:
    """Return numbers and codes of categories as one array, and which columns are codes."""
    columns, is_code = [], []
    for name in data.inputs:
        if name in (*data.texts, *data.images):
            continue
        values = [np.nan if each is None else each for each in data.columns[name]]
        array = np.array(values)
        is_code.append(array.dtype.kind not in "fiub")
        if is_code[-1]:
            distinct, counts = np.unique(array[is_train], return_counts=True)
            kept = distinct[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]]
            codes = {each: code for code, each in enumerate(kept)}
            array = np.array([codes.get(each, np.nan) for each in array])
        columns.append(array.astype(float))
    return (np.stack(columns, axis=1) if columns else np.empty((data.num_rows, 0))), is_code


def find_parts(data: QualitySet, is_train: Any) -> Any:
    """Return the features of texts, as tf-idf of words and pairs of words, and of images: pixels."""
    from scipy.sparse import csr_matrix, hstack  # noqa: PLC0415

    found = [
        csr_matrix(np.stack([np.asarray(each, float).reshape(-1) for each in data.columns[name]]) / 255 - 0.5)
        for name in data.images
    ]
    if data.texts:
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

        columns = [data.columns[name] for name in data.texts]
        texts = [" ".join(str(each or "") for each in row) for row in zip(*columns, strict=True)]
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
        words.fit([text for text, chosen in zip(texts, is_train, strict=True) if chosen])
        found.append(words.transform(texts))
    return hstack(found).tocsr()


def run_sklearn(name: str, data: QualitySet, seed: int) -> dict[str, Any]:
    """Train a contestant of scikit-learn, and score it on both splits."""
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression, Ridge  # noqa: PLC0415

    split, truth = draw_split(data.num_rows, seed), encode_target(data)
    is_train = split == 0
    start = time.perf_counter()
    model: Any
    if name == "linear":
        features = find_parts(data, is_train)
        is_number = data.task == "regression"
        model = Ridge(solver="lsqr") if is_number else LogisticRegression(C=1.0, max_iter=2000)
    else:
        features, is_code = find_table(data, is_train)
        if name == "both":
            parts = find_parts(data, is_train)
            size = min(NUM_PARTS, parts.shape[1] - 1, int(is_train.sum()) - 1)
            shrunk = TruncatedSVD(size, random_state=seed).fit(parts[is_train])
            features = np.concatenate([features, shrunk.transform(parts)], axis=1)
            is_code = [*is_code, *[False] * size]
        kind = HistGradientBoostingRegressor if data.task == "regression" else HistGradientBoostingClassifier
        model = kind(categorical_features=is_code, random_state=seed)
    model.fit(features[is_train], truth[is_train])
    found: dict[str, Any] = {"seconds": time.perf_counter() - start}
    for number, part in enumerate(SPLITS[1:], start=1):
        rows = split == number
        if data.task == "regression":
            predicted = model.predict(features[rows])
        else:
            predicted = model.predict_proba(features[rows])
            predicted = predicted[:, 1] if data.task == "binary" else predicted
        found[part] = score(data.task, truth[rows], predicted)
    return found


def main() -> int:
    """Run one contestant, and print its scores."""
    job = json.loads(sys.argv[1])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    quality_data.PRACTICE = Path(job["practice"])
    data = quality_data.SETS[job["set"]]()
    if job["is_quick"]:
        data = data.head(QUICK_ROWS)
    if job["contestant"] == "penstock":
        found = run_penstock(data, job["seed"], job["options"])
    elif job["contestant"] in data.parts:  # Penstock with the inputs of one kind
        others = [name for part, names in data.parts.items() if part != job["contestant"] for name in names]
        found = run_penstock(data, job["seed"], [*job["options"], "--drop", ",".join(others)])
    else:
        found = run_sklearn(job["contestant"], data, job["seed"])
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
