"""Many rows at once: every layout is right in every row, whatever its neighbours, its file, its threads."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import penstock as ps
from core_reading import segment_of
from layout_rows import SCHEMA, damage_row, make_row, plain_rows, plain_sample
from penstock.decode.plan import DecodePlan
from penstock.schema.schema import Schema
from record_files import flip, open_split, write_plain
from wire.example import Feature, write_example, write_feature
from wire.fields import write_delimited as delimited

CHUNK_BYTES = 256 << 10  # what the core reads at once
FRAME_BYTES = 16


# Columns are filled in blocks of 64 rows.
@pytest.mark.parametrize("num_rows", [0, 1, 63, 64, 65, 127, 128, 129, 500])
def test_every_layout_is_read_in_blocks_of_any_length(tmp_path, num_rows):
    rng = random.Random(num_rows)  # noqa: S311
    rows = [make_row(rng) for _ in range(num_rows)]
    path = write_plain(tmp_path / "rows.tfrecord", [row.payload(rng) for row in rows])
    split = open_split(path, schema=SCHEMA)
    expected = [row.sample for row in rows]
    assert [plain_sample(sample) for sample in split] == expected
    assert [plain_sample(sample) for sample in split[:]] == expected
    for row in rng.sample(range(num_rows), min(num_rows, 20)):
        assert plain_sample(split[row]) == expected[row]


def test_any_choice_of_fields_gives_the_same_columns(tmp_path):
    rng = random.Random(5)  # noqa: S311
    rows = [make_row(rng) for _ in range(200)]
    split = open_split(
        write_plain(tmp_path / "rows.tfrecord", [row.payload(rng) for row in rows]), schema=SCHEMA
    )
    for _ in range(30):
        names = rng.sample(sorted(SCHEMA), rng.randint(1, len(SCHEMA)))
        start = rng.randrange(200)
        columns = split.columns(start, start + 70, fields=names)
        assert list(columns) == names
        chosen = rows[start : start + 70]
        assert plain_rows(columns, len(chosen)) == [
            {name: row.sample[name] for name in names if name in row.sample} for row in chosen
        ]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_bad_rows_of_every_layout_leave_the_others_right(tmp_path, share):
    rng = random.Random(f"{share}")  # noqa: S311
    rows, bad = [], {}
    for number in range(400):
        row = make_row(rng)
        if rng.random() < share:
            row, bad[number] = damage_row(rng, row)
        rows.append(row)
    path = write_plain(tmp_path / "rows.tfrecord", [row.payload(rng) for row in rows])
    split = open_split(path, schema=SCHEMA, on_error="collect")
    sound = [row.sample for number, row in enumerate(rows) if number not in bad]
    assert [plain_sample(sample) for sample in split] == sound
    assert {error.record: error.field for error in split.rejected} == bad
    assert {error.path for error in split.rejected} == {str(path)}
    assert plain_rows(split.columns(), len(sound)) == sound


def test_damaged_payloads_among_bad_and_sound_rows_lose_themselves_alone(tmp_path):
    rng = random.Random(9)  # noqa: S311
    frames, expected, lost = [], [], []
    for number in range(300):
        row = make_row(rng)
        chance = rng.random()
        if chance < 0.1:
            row, _ = damage_row(rng, row)
        frame = segment_of([row.payload(rng)])[1]
        if 0.1 < chance < 0.2:
            frame = flip(frame, rng.randrange(12, len(frame)), rng.randrange(8))
        frames.append(frame)
        if chance < 0.2:
            lost.append(number)
        else:
            expected.append(row.sample)
    path = tmp_path / "rows.tfrecord"
    path.write_bytes(b"".join(frames))
    split = open_split(path, schema=SCHEMA, on_error="collect")
    assert [plain_sample(sample) for sample in split] == expected
    assert [error.record for error in split.rejected] == lost


def blob_sizes(rng: random.Random) -> dict[str, list[int]]:
    overhead = (
        len(write_example({"n": Feature("int64", [100]), "blob": Feature("bytes", [bytes(300)])})) - 300
    )
    small = 500
    frame = small + overhead + FRAME_BYTES
    rest = CHUNK_BYTES % frame
    filled = [small] * (CHUNK_BYTES // frame)
    return {
        "small": [rng.randrange(200, 400) for _ in range(2000)],
        "around the size of a chunk": [CHUNK_BYTES + n - overhead - FRAME_BYTES for n in range(-3, 4)],
        "chunks filled to the byte": [*filled[:-1], small + rest, *filled[:-1], small + rest, 300],
        "chunks filled but for a byte": [*filled[:-1], small + rest - 1, *filled, 300],
        "chunks overfull by a byte": [*filled[:-1], small + rest + 1, *filled, 300],
        "large between small": [300, 3 * CHUNK_BYTES, 300, 0, CHUNK_BYTES, 5, 2 * CHUNK_BYTES + 1] * 2,
        "large enough to be shown in place": [rng.choice((0, 900, 4096, 30_000)) for _ in range(200)],
    }


@pytest.mark.parametrize("name", blob_sizes(random.Random(0)))  # noqa: S311
def test_records_at_the_bounds_of_a_read_keep_their_bytes(tmp_path, name):
    rng = random.Random(name)  # noqa: S311
    blobs = [rng.randbytes(size) for size in blob_sizes(rng)[name]]
    payloads = [
        write_example({"n": Feature("int64", [n % 100]), "blob": Feature("bytes", [blob])})
        for n, blob in enumerate(blobs)
    ]
    path = tmp_path / "blobs.tfrecord"
    path.write_bytes(segment_of(payloads)[1])
    split = open_split(path, fields={"blob": ps.fields.Bytes()})
    columns = split.columns()
    assert columns["n"].values.tolist() == [n % 100 for n in range(len(blobs))]
    assert columns["blob"].tolist() == blobs
    assert columns["blob"].pack().arena[: sum(map(len, blobs))].tobytes() == b"".join(blobs)
    assert list(split.records()) == payloads
    half = len(blobs) // 2
    assert split.columns(half)["blob"].tolist() == blobs[half:]
    assert [sample["blob"] for sample in split] == blobs


def blob_message(rng: random.Random, blob: bytes, form: str) -> bytes:
    """Return a record with a blob that is there in some spelling, is missing, or is bad."""
    plain = write_feature(Feature("bytes", [blob]))
    value = {
        "plain": plain,
        "odd": write_feature(Feature("bytes", [])) + plain,
        "unset": b"",
        "missing": b"",
        "wrong kind": write_feature(Feature("int64", [1])),
        "wrong count": write_feature(Feature("bytes", [blob, blob])),
        "malformed": plain[:1] + b"\x7f" + plain[1:],
        "damaged": plain,
    }[form]
    entries = [delimited(1, b"n") + delimited(2, write_feature(Feature("int64", [len(blob)])))]
    if form != "missing":
        entries.insert(rng.randrange(2), delimited(1, b"blob") + delimited(2, value))
    payload = delimited(1, b"".join(delimited(1, entry) for entry in entries))
    frame = segment_of([payload])[1]
    return flip(frame, rng.randrange(12, len(frame))) if form == "damaged" else frame


@pytest.mark.parametrize("sizes", [(5000, 9000), (0, 20_000), (100_000, 300_000), (0, 50)])
def test_blobs_beside_missing_and_bad_ones_are_right_whether_copied_or_shown_in_place(tmp_path, sizes):
    rng = random.Random(f"{sizes}")  # noqa: S311
    bad = ("wrong kind", "wrong count", "malformed", "damaged")
    forms = [rng.choice(("plain", "plain", "plain", "odd", "unset", "missing", *bad)) for _ in range(150)]
    blobs = [rng.randbytes(rng.randint(*sizes)) for _ in forms]
    path = tmp_path / "blobs.tfrecord"
    path.write_bytes(b"".join(blob_message(rng, *each) for each in zip(blobs, forms, strict=True)))
    schema = Schema({"blob": ps.fields.Bytes(optional=True), "n": ps.fields.Number("int64")})
    split = open_split(path, schema=schema, on_error="collect")
    kept = [(blob, form) for blob, form in zip(blobs, forms, strict=True) if form not in bad]
    columns = split.columns()
    assert columns["n"].values.tolist() == [len(blob) for blob, _ in kept]
    there = [form not in ("unset", "missing") for _, form in kept]
    assert columns["blob"].present.tolist() == there
    expected = [blob if has else b"" for (blob, _), has in zip(kept, there, strict=True)]
    assert columns["blob"].tolist() == columns["blob"].pack().tolist() == expected
    assert [error.record for error in split.rejected] == [
        row for row, form in enumerate(forms) if form in bad
    ]


def test_threads_that_share_a_plan_find_the_same_as_one():
    rng = random.Random(11)  # noqa: S311
    rows = [make_row(rng) for _ in range(600)]
    _, data, _, begins, sizes, _ = segment_of([row.payload(rng) for row in rows])
    plan = DecodePlan(SCHEMA)

    def decode(start: int) -> list[dict[str, object]]:
        chosen = slice(start, start + 150)
        segment = (
            -1,
            data,
            0,
            np.ascontiguousarray(begins[chosen]),
            np.ascontiguousarray(sizes[chosen]),
            None,
        )
        columns, faults = plan.decode([segment])
        assert faults == []
        return plain_rows(columns, len(begins[chosen]))

    starts = [rng.randrange(500) for _ in range(60)]
    with ThreadPoolExecutor(8) as pool:
        for start, samples in zip(starts, pool.map(decode, starts), strict=True):
            assert samples == [row.sample for row in rows[start : start + 150]]
