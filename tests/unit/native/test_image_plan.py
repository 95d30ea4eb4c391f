"""Plans of the images of a slice: what they refuse, and that threads do not share anything."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fit_sources import strings
from image_files import jpeg, png, scene, turned_jpeg
from penstock import _native
from raising import raises_with

FILL = np.array([1, 2, 3], np.uint8)
RULES = (3, 0b110, 10**6, True, 8, 9, 0, True, True, FILL)
FILES = strings(
    [jpeg(scene(20, 30)), png(scene(8, 9)), b"", png(scene(40, 50))[:-30], turned_jpeg(scene(9, 8), 6)]
)
SPANS = FILES.spans()
RECORDS = np.arange(5, dtype=np.int64)
CROP = ((7, 0, (3,), RECORDS), (0.1, 1.0, 0.5, 2.0))
PIXELS = np.zeros((8, 9, 3), np.uint8)


def plan(rules=RULES, images=None, encoded=SPANS, present=None, crop=None, is_whole=False):
    return _native.ImagePlan(rules, images, encoded, present, crop, is_whole)


def replaced(values, at, value):
    return (*values[:at], value, *values[at + 1 :])


BAD_PLANS = {
    "few rules": ({"rules": RULES[:-1]}, "rules 10 9"),
    "two channels": ({"rules": replaced(RULES, 0, 2)}, "channels 1 3 4 2"),
    "no height": ({"rules": replaced(RULES, 4, 0)}, "size 1"),
    "a long side": ({"rules": replaced(RULES, 5, 2**20 + 1)}, "size 1048576"),
    "resizing": ({"rules": replaced(RULES, 6, 3)}, "resizing 0 1 2"),
    "a short fill": ({"rules": replaced(RULES, 9, FILL[:1])}, "fill channel"),
    "fewer images": ({"images": [None] * 4}, "starts images"),
    "cached floats": ({"images": [PIXELS.astype("f4")] * 5}, "images uint8 float32"),
    "cached channels": ({"images": [PIXELS[..., :1].copy()] * 5}, "images channels"),
    "cached windows": ({"images": [PIXELS[:, ::2]] * 5}, "images C-contiguous"),
    "no pixels": ({"images": [PIXELS[:0]] * 5}, "images pixel"),
    "nothing": ({"images": [None], "encoded": None}, "images cached encoded"),
    "beyond the arena": ({"encoded": (SPANS[0], SPANS[1], SPANS[2] + 1)}, "stops arena"),
    "before the arena": ({"encoded": (SPANS[0], SPANS[1] - 1, SPANS[2])}, "stops arena"),
    "backwards": ({"encoded": (SPANS[0], SPANS[2], SPANS[1])}, "stops arena"),
    "fewer stops": ({"encoded": (*SPANS[:2], SPANS[2][:4])}, "stops starts"),
    "a short mask": ({"present": np.ones(4, bool)}, "present 5 4"),
    "few records": ({"crop": ((7, 0, (3,), RECORDS[:4]), CROP[1])}, "records 5"),
    "two purposes": ({"crop": ((7, 0, (3, 4), RECORDS), CROP[1])}, "purposes 1 2"),
    "a large purpose": ({"crop": ((7, 0, (65536,), RECORDS), CROP[1])}, "purposes 65535"),
    "a negative epoch": ({"crop": ((7, -1, (3,), RECORDS), CROP[1])}, "epoch"),
    "no area": ({"crop": (CROP[0], (0.0, 1.0, 0.5, 2.0))}, "ranges area"),
    "not a number": ({"crop": (CROP[0], (0.1, 1.0, float("nan"), 2.0))}, "ranges aspect"),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_plan_refuses_arguments_that_do_not_fit(case):
    arguments, text = BAD_PLANS[case]
    with raises_with(ValueError, text):
        plan(**arguments)


def gray(*calls):
    """Return a decoder that makes gray pixels, and notes the buffers that it gets."""

    def decode(data, space, *options):
        fastdct, fastupsample, height, width, _, buffer, strict = options
        assert (space, fastdct, fastupsample, strict) == ("RGB", False, False, True)
        for call in calls:
            call(bytes(data), buffer)
        pixels = np.frombuffer(buffer, np.uint8, height * width * 3).reshape(height, width, 3)
        pixels[:] = 9
        return pixels

    return decode


def refuse(*_):
    raise ValueError("damaged")


def test_plan_names_the_faults_of_headers_and_decodes_the_rest():
    made = plan()
    assert len(made) == 5
    assert made.has_jpegs
    assert made.faults() == [(2, 1)]
    assert made.header(0) == (1, 20, 30, 0, int(SPANS[1][0]), int(SPANS[2][0]))
    assert [made.slot_size(row) for row in range(5)] == [(8, 9), (8, 9), None, (8, 9), (8, 9)]
    out = np.zeros((5, 8, 9, 3), np.uint8)
    files = []
    damaged, refused, others = made.decode(out, gray(lambda data, _: files.append(data)), "RGB")
    assert (refused, others) == ([], [])
    assert files == [FILES[0], FILES[4]]
    ((row, fault),) = damaged
    assert (row, "IDAT" in fault) == (3, True)
    assert np.array_equal(out[1], scene(8, 9))
    assert (out[[0, 4]] == 9).all()
    assert not out[2].any()


def test_jpegs_that_the_decoder_refuses_are_returned():
    made = plan()
    out = np.zeros((5, 8, 9, 3), np.uint8)
    _, refused, _ = made.decode(out, refuse, "RGB")
    starts, stops = (each.tolist() for each in SPANS[1:])
    # As stored: the second one is turned.
    assert refused == [
        (0, starts[0], stops[0], 1, 20, 30, 1, False),
        (4, starts[4], stops[4], 1, 8, 9, 1, False),
    ]
    smaller = gray()
    _, refused, _ = made.decode(out, lambda *rest: smaller(*rest)[:-1], "RGB")
    assert [each[0] for each in refused] == [0, 4]

    def fail(*_):
        raise MemoryError

    with pytest.raises(MemoryError):
        made.decode(out, fail, "RGB")
    with pytest.raises(TypeError):
        made.decode(out, None, "RGB")


def test_jpeg_of_the_size_of_its_slot_is_decoded_there():
    def find(height, width):
        buffers = []
        made = plan(
            rules=(*RULES[:4], height, width, *RULES[6:]),
            encoded=strings([jpeg(scene(height, width))]).spans(),
        )
        out = np.zeros((1, height, width, 3), np.uint8)
        made.decode(out, gray(lambda _, buffer: buffers.append(buffer)), "RGB")
        assert (out == 9).all()
        return [np.shares_memory(buffer, out) for buffer in buffers]

    assert find(8, 9) == [True]
    assert find(8, 32) == [False]  # rows of whole vectors, for which the decoder bypasses the cache


WHOLE = (*RULES[:8], False, FILL)  # decoded at their full size
SIDES = [(375, 500), (90, 31), (375, 500), (375, 500), (8, 9), (700, 1100), (375, 500), (375, 500), (64, 64)]


def numbered(rows, refused=(), smaller=()):
    """Return a decoder that makes other pixels for each row, and the buffers that it gets."""
    buffers = []

    def decode(data, space, *options):
        row = rows[len(buffers)]
        _, _, height, width, _, buffer, _ = options
        buffers.append(buffer)
        if row in refused:
            raise ValueError("damaged")
        pixels = np.frombuffer(buffer, np.uint8, height * width * 3).reshape(height, width, 3)
        pixels[:] = scene(height, width, row)
        return pixels[:-1] if row in smaller else pixels

    return decode, buffers


def test_jpegs_that_are_placed_together_are_those_placed_one_by_one():
    spans = strings([jpeg(scene(*sides)) for sides in SIDES]).spans()
    rows = list(range(len(SIDES)))
    together, apart = (np.zeros((len(rows), 8, 9, 3), np.uint8) for _ in range(2))
    decode, buffers = numbered(rows, refused=[3], smaller=[6])
    _, refused, _ = plan(WHOLE, encoded=spans).decode(together, decode, "RGB")
    assert [each[0] for each in refused] == [3, 6]
    for row in rows:
        one = (spans[0], spans[1][row : row + 1], spans[2][row : row + 1])
        decode, _ = numbered([row], refused=[3], smaller=[6])
        plan(WHOLE, encoded=one).decode(apart[row : row + 1], decode, "RGB")
    assert np.array_equal(together, apart)
    assert [row for row in rows if not together[row].any()] == [3, 6]
    assert np.shares_memory(buffers[4], together)  # has the size of its slot


def test_few_jpegs_wait_to_be_placed():
    def find_room(sides, count):
        spans = strings([jpeg(scene(*sides))] * count).spans()
        decode, buffers = numbered([0] * count)
        plan(WHOLE, encoded=spans).decode(np.zeros((count, 8, 9, 3), np.uint8), decode, "RGB")
        addresses = [np.frombuffer(buffer, np.uint8).ctypes.data for buffer in buffers]
        assert all(address % 32 == 16 for address in addresses)
        return len(set(addresses)), memoryview(buffers[0]).obj.nbytes

    num_places, num_bytes = find_room((375, 500), 9)
    assert 1 < num_places < 9
    assert num_bytes < 2 << 20  # so that they stay in a cache of the processor
    num_places, num_bytes = find_room((700, 1100), 3)
    assert num_places == 1
    assert num_bytes < 700 * 1100 * 3 + 100
    assert find_room((20, 30), 2)[1] < 2 * 20 * 30 * 3 + 200


def test_error_of_the_decoder_comes_through_while_jpegs_wait():
    count = 0

    def fail(*arguments):
        nonlocal count
        count += 1
        if count == 3:
            raise MemoryError
        return gray()(*arguments)

    spans = strings([jpeg(scene(20, 30))] * 4).spans()
    with pytest.raises(MemoryError):
        plan(encoded=spans).decode(np.zeros((4, 8, 9, 3), np.uint8), fail, "RGB")
    assert count == 3


def test_header_of_a_long_file_is_read_like_a_short_file():
    file = jpeg(scene(20, 30))
    spans = strings([file, file + bytes(3 << 20), file]).spans()
    made = plan(encoded=spans)
    assert [made.header(row)[:4] for row in range(3)] == [(1, 20, 30, 0)] * 3
    assert made.faults() == []


def test_plan_places_pixels_of_the_size_in_the_header_alone():
    made = plan()
    out = np.zeros((5, 8, 9, 3), np.uint8)
    pixels = np.full((20, 30, 3), 9, np.uint8)
    for row in (0, 1, 2, 5):
        with raises_with(ValueError, "row"):  # there are no slots yet, or never
            made.place(row, pixels)
    made.decode(out, refuse, "RGB")
    out[:] = 0
    assert not made.place(0, pixels[:19])
    assert not out.any()
    with raises_with(ValueError, "pixels channels"):
        made.place(0, pixels[..., :1].copy())
    with raises_with(ValueError, "pixels C-contiguous"):
        made.place(0, pixels[:, ::-1])
    assert made.place(0, pixels)
    assert (out[0] == 9).all()
    base = np.zeros(5 * 8 * 9 * 3 + 1800, np.uint8)
    made.decode(base[: 5 * 8 * 9 * 3].reshape(5, 8, 9, 3), refuse, "RGB")
    with raises_with(ValueError, "pixels overlap"):
        made.place(0, base[100 : 100 + 1800].reshape(20, 30, 3))


def test_slots_that_cannot_be_written_are_refused():
    frozen = np.zeros((5, 8, 9, 3), np.uint8)
    frozen.flags.writeable = False
    with raises_with(ValueError, "slots"):
        plan().decode(frozen, refuse, "RGB")
    with raises_with(ValueError, "slots 8 9 pixels"):
        plan().decode(np.zeros((5, 9, 8, 3), np.uint8), refuse, "RGB")


def test_row_without_an_image_is_filled():
    present = np.array([True, True, False, False, True])
    made = plan(present=present)
    assert made.faults() == []
    out = np.zeros((5, 8, 9, 3), np.uint8)
    assert made.decode(out, gray(), "RGB") == ([], [], [])
    assert (out[2:4] == FILL).all()


def test_cached_images_are_copied_or_cropped():
    images = [scene(8, 9, seed) for seed in range(5)]
    out = np.zeros((5, 8, 9, 3), np.uint8)
    made = plan(images=images, encoded=None)
    assert not made.has_jpegs
    assert made.decode(out, None, "") == ([], [], [])
    assert np.array_equal(out, np.stack(images))
    whole = (CROP[0], (1.0, 1.0, 9 / 8, 9 / 8))
    out[:] = 0
    made = plan(images=images, encoded=None, crop=whole)
    made.decode(out, None, "")
    assert np.array_equal(out, np.stack(images))


CHANGES = (0.2, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3)
KEYS = (7, 0, (1, 2, 3, 4, 5, 6), RECORDS)
BATCH = np.zeros((5, 4, 6, 3), np.uint8)
BAD_CHANGES = {
    "few changes": ((BATCH, CHANGES[:6], FILL, KEYS), "changes 7 6"),
    "a large change": ((BATCH, replaced(CHANGES, 2, 1.5), FILL, KEYS), "changes 0 1"),
    "not a number": ((BATCH, replaced(CHANGES, 2, float("nan")), FILL, KEYS), "changes 0 1"),
    "a long colour": ((BATCH, CHANGES, np.zeros(4, np.uint8), KEYS), "colour"),
    "few purposes": ((BATCH, CHANGES, FILL, replaced(KEYS, 2, (1, 2))), "purposes 6 2"),
    "few records": ((BATCH, CHANGES, FILL, replaced(KEYS, 3, RECORDS[:4])), "records 5"),
    "one image": ((BATCH[0], CHANGES, FILL, KEYS), "images 4 3"),
    "images apart": ((BATCH[:, ::2], CHANGES, FILL, KEYS), "images C-contiguous"),
}


@pytest.mark.parametrize("case", BAD_CHANGES)
def test_augment_refuses_arguments_that_do_not_fit(case):
    arguments, text = BAD_CHANGES[case]
    with raises_with(ValueError, text):
        _native.augment(*arguments)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_augment_gives_the_same_without_vector_code(channels):
    images = np.random.default_rng(channels).integers(0, 256, (5, 30, 45, channels), np.uint8)
    fill = np.arange(channels, dtype=np.uint8)
    plain = images.copy()
    _native.augment(images, CHANGES, fill, KEYS)
    _native.augment(plain, CHANGES, fill, KEYS, by_scalar=True)
    assert np.array_equal(images, plain)


def test_threads_fill_the_rows_of_one_array():
    files = [png(scene(30 + n, 40, n)) for n in range(24)]
    starts = np.cumsum([0, *[len(file) for file in files]], dtype=np.int64)
    arena = np.frombuffer(b"".join(files), np.uint8)
    records = np.arange(24, dtype=np.int64)

    def fill(out, first, last):
        spans = (arena, starts[first:last], starts[first + 1 : last + 1])
        rows = records[first:last]
        made = plan(encoded=spans, crop=((7, 0, (3,), rows), CROP[1]))
        assert made.decode(out[first:last], None, "") == ([], [], [])
        _native.augment(out[first:last], CHANGES, FILL, (*KEYS[:3], rows))

    whole, parts = (np.zeros((24, 8, 9, 3), np.uint8) for _ in range(2))
    fill(whole, 0, 24)
    with ThreadPoolExecutor(8) as pool:
        for work in [pool.submit(fill, parts, first, first + 2) for first in range(0, 24, 2)]:
            work.result()
    assert np.array_equal(parts, whole)
