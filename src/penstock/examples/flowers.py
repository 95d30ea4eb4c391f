"""Will a flower set seed? From raw files to a trained and evaluated model: the program of `penstock demo`.

In: an empty working folder, and a function that runs command lines of `penstock`. Out: data sets, runs, a
report, and figures by name. The raw data is a table with an input of every kind and a photo of each flower;
the answer depends on the photo, the note, the hours of insect visits and the numbers together.
"""

from __future__ import annotations

import csv
import json
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import penstock as ps

NUM_MORE: Final = 10
"""Rows of `more.csv`; the photo of one of them is missing."""
NUM_NEW: Final = 20
"""Rows of `new.csv`, which has no column with the answer."""
TARGET: Final = "sets_seed"
ALL: Final = "all together"
PARTS: Final = {
    "photo alone": "image",
    "note alone": "text",
    "visit hours alone": "sequence",
    "table columns alone": "table",
    ALL: "all",
}
DAMAGED_RECORD: Final = 17

_GIVEN: Final = f"--id id --target {TARGET}"
_SETTINGS: Final = (  # half the training time of the default settings, for the same scores on this data
    "--batch-size 64 --learning-rate 0.003 --schedule constant --averaging 0.95 --weight-decay 0.01 --seed 7"
)
_COLUMNS: Final = ("id", "photo", "note", "petal_cm", "soil", "plot", "seen_on", "visit_hours", TARGET)
_MISSING_PHOTO: Final = 7  # among the rows of more.csv
_PIXELS: Final = 16
_RED, _BLUE, _GRASS = (214, 40, 36), (72, 92, 214), (46, 125, 50)
_PLACES: Final = (
    "beside the path",
    "under the old oak",
    "among tall grass",
    "close to the brook",
    "on the slope",
)
_SOILS: Final = ("sand", "clay", "loam")  # from poor to rich
_MORNING, _AFTERNOON = (6, 12), (12, 20)

Shell = Callable[[str], dict[str, Any]]
"""Shows and runs a command line; returns its JSON output, its error, or nothing if it printed text."""


def write_flowers(folder: Path, num_flowers: int) -> dict[str, str]:
    """Write tables and photos, and return the answers for `new.csv` by id.

    The first flowers are the same for any number of flowers.
    """
    flowers = list(_make_flowers(num_flowers + NUM_MORE + NUM_NEW))
    (folder / "photos").mkdir(parents=True)
    for number, (row, photo) in enumerate(flowers):
        if number != num_flowers + _MISSING_PHOTO:
            (folder / row["photo"]).write_bytes(photo)
    rows = [row for row, _ in flowers]
    first_new = num_flowers + NUM_MORE
    _write_csv(folder / "flowers.csv", rows[:num_flowers], _COLUMNS)
    _write_csv(folder / "more.csv", rows[num_flowers:first_new], _COLUMNS)
    _write_csv(folder / "new.csv", rows[first_new:], _COLUMNS[:-1])
    return {row["id"]: row[TARGET] for row in rows[first_new:]}


def _make_flowers(count: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the cells and the photo of each flower."""
    random = np.random.default_rng(7)
    for number in range(count):
        is_red, is_shaded, is_early = (bool(random.integers(2)) for _ in range(3))
        petal_cm = float(random.normal(2.4, 0.5))
        is_usual = random.random(random.integers(9)) < 0.85  # most visits come in one half of the day
        ranges = (_MORNING if usual == is_early else _AFTERNOON for usual in is_usual)
        hours = sorted(int(random.integers(*each)) for each in ranges)
        place = _PLACES[random.integers(len(_PLACES))]
        soil = int(random.integers(len(_SOILS)))
        # Red flowers are open before noon and blue ones after it; other visits have no effect. So neither the
        # colour nor the hours say much alone.
        fit = 2 * np.mean([(hour < 12) == is_red for hour in hours]) - 1 if hours else -1.0
        score = 1.2 * fit + 0.5 * (1 if is_red else -1) + 0.8 * (-1 if is_shaded else 1)
        score += 0.6 * (len(hours) - 4) / 2.6 + 0.6 * (petal_cm - 2.4) / 0.5 + 0.5 * (soil - 1)
        score += 0.3 * float(random.normal())
        light = "shade" if is_shaded else "sun"
        row = {
            "id": f"flower-{number:03}",
            "photo": f"photos/flower-{number:03}.png",
            "note": f"{random.integers(5, 200)} steps from the gate, {place}, in the {light}.",
            "petal_cm": "" if random.random() < 0.1 else f"{petal_cm:.2f}",  # some were not measured
            "soil": _SOILS[soil],
            "plot": f"{random.integers(1, 13):03}",
            "seen_on": (date(2024, 5, 1) + timedelta(days=int(random.integers(90)))).isoformat(),
            "visit_hours": json.dumps(hours),
            TARGET: "yes" if score > 0 else "no",
        }
        yield row, _draw_photo(_RED if is_red else _BLUE, 1.5 + petal_cm, random)


def _write_csv(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _draw_photo(colour: tuple[int, int, int], radius: float, random: np.random.Generator) -> bytes:
    """Return a PNG of a flower: a disc near the middle of the grass, in random light."""
    row, column = (_PIXELS - 1) / 2 + random.uniform(-2, 2, size=2)
    light = random.uniform(0.6, 1.0)
    rows, columns = np.ogrid[:_PIXELS, :_PIXELS]
    is_petal = (rows - row) ** 2 + (columns - column) ** 2 <= radius**2
    pixels = np.where(is_petal[..., None], np.array(colour), np.array(_GRASS)) * light
    return _encode_png(pixels.astype(np.uint8))


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode pixels with the standard library alone, so that the example needs no image package."""
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits per channel, RGB
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # each line starts with its filter: none
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def convert_flowers(run: Shell, num_flowers: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Write raw data, convert and inspect it; return figures, and the answers for new rows."""
    answers = write_flowers(Path(), num_flowers)
    run(f"convert flowers.csv flowers {_GIVEN}")
    run("inspect flowers")
    flowers = ps.open("flowers")
    splits = {name: len(flowers[name]) for name in flowers.splits}
    fields = {name: field.type_name for name, field in flowers.schema.items()}
    folder = str(Path("flowers").absolute())
    return {"rows": num_flowers, "folder": folder, "splits": splits, "fields": fields}, answers


def explore_data(run: Shell) -> dict[str, Any]:
    """Load batches, resume, measure speed, skip a bad row, damage a record and repair; needs no framework."""
    train = ps.open("flowers")["train"]
    pipeline = ps.Pipeline.fit(ps.open("flowers"))
    loader, fresh = (train.loader(pipeline, batch_size=64, shuffle=True, seed=7) for _ in range(2))
    shapes = [{name: array.shape for name, array in (batch[0] | batch[1]).items()} for batch in loader]
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    fresh.load_state_dict(state)  # stop anywhere, and resume there
    expected, rest = (
        [[array.tobytes() for part in batch for array in part.values()] for batch in each]
        for each in (batches, fresh)
    )
    print(f"A batch: {shapes[0]}\nThe rest of an epoch, resumed in another loader: {len(rest)} batches")
    bench = run("bench flowers --batch-size 64 --seconds 1")
    failed = run(f"convert flowers.csv more.csv more_flowers {_GIVEN}")  # the photo of one row is missing
    run(f"convert flowers.csv more.csv more_flowers {_GIVEN} --on-error collect")
    damaged_byte = damage_record(Path("more_flowers"), Path("damaged"))
    verified = run("verify damaged")
    repaired = run("repair damaged repaired")
    ids = [{sample["id"] for sample in ps.open(name)["train"]} for name in ("more_flowers", "repaired")]
    return {
        "outputs": {name: each.describe() for name, each in (pipeline.inputs | pipeline.targets).items()},
        "shapes": shapes,
        "state": state,
        "is_same_rest": rest == expected,
        "records_per_second": bench.get("later_epochs", {}).get("records_per_second"),
        "bottleneck": bench.get("bottleneck"),
        "error": failed.get("error"),
        "rejected": len(Path("more_flowers/rejects.jsonl").read_text().splitlines()),
        "damaged_byte": damaged_byte,
        "faults": verified.get("faults"),
        "kept": repaired.get("kept"),
        "gone": sorted(map(str, ids[0] - ids[1])),
    }


def damage_record(folder: Path, copy: Path) -> int:
    """Copy a data set, flip one bit of a record in the copy, and return the position of its byte."""
    shutil.copytree(folder, copy)
    shard = copy / "train-00000-of-00001.tfrecord"
    offset, num_bytes = map(
        int, shard.with_suffix(".tfindex").read_text().splitlines()[DAMAGED_RECORD].split()
    )
    data = bytearray(shard.read_bytes())
    position = offset + 4 + num_bytes // 2
    data[position] ^= 1
    shard.write_bytes(data)
    return position


def train_models(run: Shell, answers: dict[str, str], epochs: int) -> dict[str, Any]:
    """Train on all inputs, evaluate, predict, compare with one kind of input each, export and report."""
    flowers, folder = ps.open("flowers"), "runs/all-together"
    figures = {ALL: _train_model(run, flowers, ALL, epochs)}
    evaluation = run(f"evaluate {folder}")
    run(f"predict {folder} new.csv --out predicted.csv")
    with Path("predicted.csv").open(newline="") as file:
        num_right = sum(row[TARGET] == answers[row["id"]] for row in csv.DictReader(file))
    figures = {**{name: _train_model(run, flowers, name, epochs) for name in PARTS if name != ALL}, **figures}
    targets = {name: [sample[TARGET] for sample in flowers[name]] for name in ("train", "test")}
    guess = max(sorted(set(targets["train"])), key=targets["train"].count)
    share = targets["test"].count(guess) / len(targets["test"])
    lines = [
        "| What the model sees  | Accuracy |  AUC | Training |",
        "| -------------------- | -------: | ---: | -------: |",
        f"| {f'nothing: always {guess!r}':20} | {share:8.2f} | 0.50 |          |",
        *(
            f"| {name:20} | {each['accuracy']:8.2f} | {each['auc']:4.2f} | {each['seconds']:6.1f} s |"
            for name, each in figures.items()
        ),
        "",
        f"Accuracy: share of the {len(flowers['test'])} unseen test flowers predicted correctly.",
        "AUC: how often a flower that sets seed is ranked above one that does not; 0.50 is chance.",
        f"{num_right} of the {len(answers)} new flowers are predicted correctly.",
    ]
    print(*lines, "", sep="\n")
    exported = run(f"export {folder} exported")
    answered = ps.Predictor("exported").predict("new.csv")
    run(f"report {folder} --out report.html")
    return {
        "run": str(Path(folder).absolute()),
        "evaluation": evaluation,
        "predicted": len(answers),
        "right": num_right,
        "guess": round(share, 4),
        "together": figures.pop(ALL),
        "alone": figures,
        "export": exported,
        "answered_by_export": len(answered.to_pylist()),
        "report": str(Path("report.html").absolute()),
    }


def _train_model(run: Shell, flowers: ps.Dataset, name: str, epochs: int) -> dict[str, float]:
    """Train on some kinds of inputs, and return scores on the test split."""
    folder = f"runs/{name.replace(' ', '-')}"
    run(f"train flowers --out {folder} --parts {PARTS[name]} --epochs {epochs} {_SETTINGS}")
    trained = ps.open_run(folder)
    scores = ps.evaluate(trained, flowers["test"], bootstrap=0, importance=False, mistakes=0).targets[TARGET]
    found = {metric: round(scores[metric] or 0.0, 4) for metric in ("accuracy", "auc")}
    return {**found, "seconds": round(trained.history[-1]["seconds"], 2), "epochs": len(trained.history)}
