"""Images as pixels of one size."""

import io
import json

import numpy as np
import pytest
from PIL import Image as Pillow

from fit_sources import ColumnSource, fit, numbers, run, strings
from image_files import bmp, grey, jpeg, png, saved, scene, turned_jpeg
from penstock.errors import FieldError, OptionError
from penstock.fields import Bytes, Tensor
from penstock.fields import Image as ImageField
from penstock.schema.schema import Schema
from penstock.transform import Draws, Image, Output
from plain_images import draw_boxes
from raising import containing, mentions, raises_with

FIELD = ImageField()
PICTURE = scene(40, 56)
ROOM = 1 << 30
COLUMN = strings([png(scene(40, 56, seed)) for seed in range(6)])
COUNT = len(COLUMN)


def make(field=FIELD, column=COLUMN, **options):
    """Return a fitted transform, for 12 x 10 pixels if nothing else is said."""
    return fit(Image(**{"size": (12, 10), **options}), field, column)


def draws(count=COUNT, seed=3, epoch=0, **options):
    return Draws(seed, epoch, np.arange(count), **options)


def shrunk(picture, size, box=None, filter=Pillow.Resampling.BILINEAR):
    """Return a picture as Pillow resizes it; the box is top, left, height, width."""
    corners = None if box is None else (box[1], box[0], box[1] + box[3], box[0] + box[2])
    image = Pillow.fromarray(picture[..., 0] if picture.shape[2] == 1 else picture)
    found = np.asarray(image.resize(size[::-1], filter, corners))
    return found.reshape(*size, picture.shape[2])


def check_like(found, wanted, most=2, mean=0.5):
    assert found.shape == wanted.shape
    difference = np.abs(found.astype(int) - wanted.astype(int))
    assert difference.max() <= most
    assert difference.mean() <= mean


def test_image_of_the_size_is_given_as_it_is():
    found = run(make(size=(40, 56)), COLUMN)
    assert found.dtype == np.uint8
    for row in range(COUNT):
        assert np.array_equal(found[row], scene(40, 56, row))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_stretch_equals_pillow(channels):
    picture = scene(40, 56, channels=channels)
    column = strings([png(picture, 8, {1: 0, 3: 2, 4: 6}[channels])])
    for size in ((12, 10), (40, 20), (80, 100), (1, 1), (39, 57)):
        found = run(make(size=size, channels=channels, column=column), column)[0]
        # Pillow weighs colours by alpha; here every channel stands for itself.
        wanted = np.concatenate([shrunk(picture[..., i : i + 1], size) for i in range(channels)], axis=2)
        check_like(found, wanted, most=1)


def test_pad_fits_and_fills_two_sides():
    found = run(make(size=(20, 20), resize="pad", fill=(9, 8, 7)), COLUMN)[0]
    assert (found[:3] == [9, 8, 7]).all()
    assert (found[17:] == [9, 8, 7]).all()
    check_like(found[3:17], shrunk(PICTURE, (14, 20)), most=1)
    tall = strings([png(scene(50, 10))])
    found = run(make(size=(20, 20), resize="pad", fill=200), tall)[0]
    assert (found[:, :8] == 200).all()
    assert (found[:, 12:] == 200).all()
    check_like(found[:, 8:12], shrunk(scene(50, 10), (20, 4)), most=1)


def test_crop_covers_from_the_middle():
    found = run(make(size=(20, 20), resize="crop"), COLUMN)[0]
    check_like(found, shrunk(PICTURE, (20, 20), (0, 8, 40, 40)), most=1)
    found = run(make(size=(10, 28), resize="crop"), COLUMN)[0]
    check_like(found, shrunk(PICTURE, (10, 28), (10, 0, 20, 56)), most=1)


def test_random_is_crop_unless_it_augments():
    random, crop = make(resize="random"), make(resize="crop", draft=False)
    wanted = run(crop, COLUMN)
    for given in (None, draws(augments=False)):
        assert np.array_equal(random.apply("x", COLUMN, given)["x"], wanted)
    assert not np.array_equal(random.apply("x", COLUMN, draws())["x"], wanted)


def test_random_takes_the_parts_that_are_drawn():
    options = {"area": (0.2, 0.6), "aspect": (0.5, 2.0)}
    found = make(resize="random", augment=options).apply("x", COLUMN, draws())["x"]
    sizes = np.tile([[40, 56]], (COUNT, 1))
    boxes = draw_boxes(draws().within("x"), "box", sizes, (0.2, 0.6), (0.5, 2.0))
    for row, box in enumerate(boxes.tolist()):
        check_like(found[row], shrunk(scene(40, 56, row), (12, 10), box), most=1)
    assert len({tuple(box) for box in boxes.tolist()}) == COUNT


def test_without_antialias_pixels_are_skipped():
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    column = strings([png(stripes)])
    smooth = run(make(size=(16, 16), column=column), column)
    sharp = run(make(size=(16, 16), column=column, antialias=False), column)
    assert np.abs(smooth[0, :, 2:-2].astype(int) - 127).max() < 35
    # Four columns become one: those at 1.5, 5.5, … count, halves of a black and a white one; or next to them.
    assert np.abs(sharp.astype(int) - 127.5).max() <= 1
    grown = run(make(size=(80, 112)), COLUMN)
    assert np.abs(grown.astype(int) - run(make(size=(80, 112), antialias=False), COLUMN)).max() <= 1


def test_draft_is_hardly_another_picture():
    picture = scene(400, 560)
    column = strings([jpeg(picture), turned_jpeg(picture, 6)])
    for resize in ("stretch", "pad", "crop"):
        whole = run(make(column=column, draft=False, resize=resize), column)
        draft = run(make(column=column, resize=resize), column)
        assert not np.array_equal(whole, draft)  # it was decoded at an eighth
        check_like(draft, whole, most=14, mean=1.5)
    small = strings([jpeg(scene(17, 14))])  # not half as large again as its half
    assert np.array_equal(run(make(draft=False), small), run(make(), small))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("sides", [(97, 99), (110, 131), (385, 393)])
def test_draft_of_any_size_and_orientation_is_hardly_another_picture(sides, orientation):
    # The last of the blocks of a draft lies partly beyond the picture, or the first where that is mirrored.
    column = strings([turned_jpeg(scene(*sides), orientation, quality=95)])
    for resize in ("stretch", "crop"):
        whole = run(make(column=column, size=16, draft=False, resize=resize), column)
        draft = run(make(column=column, size=16, resize=resize), column)
        check_like(draft, whole, most=16, mean=1.2)


@pytest.mark.parametrize("sides", [(1, 1), (1, 3000), (3000, 1), (3, 1000)])
def test_extreme_images_have_their_size(sides):
    column = strings([png(scene(*sides))])
    for size in ((8, 8), (1, 5), (60, 7)):
        check_like(run(make(column=column, size=size), column)[0], shrunk(scene(*sides), size), most=1)
        for resize in ("pad", "crop", "random"):
            transform = make(column=column, size=size, resize=resize)
            assert transform.apply("x", column, draws(1))["x"].shape == (1, *size, 3)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_are_as_asked(channels):
    column = strings([png(PICTURE), png(grey(PICTURE), 8, 0), png(scene(40, 56, channels=4), 8, 6)])
    found = run(make(size=(40, 56), channels=channels, column=column), column)
    assert found.shape == (3, 40, 56, channels)
    if channels == 1:
        assert np.array_equal(found[0], grey(PICTURE))
        assert np.array_equal(found[1], grey(PICTURE))
    else:
        assert np.array_equal(found[0, ..., :3], PICTURE)
        assert np.array_equal(found[1, ..., :3], grey(PICTURE).repeat(3, axis=2))
    if channels == 4:
        assert (found[:2, ..., 3] == 255).all()
        assert np.array_equal(found[2], scene(40, 56, channels=4))


def test_floats_are_scaled_then_standardised():
    size = (40, 56)
    whole = run(make(size=size), COLUMN)
    plain = run(make(size=size, dtype="float32"), COLUMN)
    assert plain.dtype == np.float32
    assert np.array_equal(plain, whole.astype(np.float32))
    unit = run(make(size=size, dtype="float32", scale=1 / 255), COLUMN)
    assert np.allclose(unit, whole / 255, rtol=0, atol=1e-6)
    means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    found = run(make(size=size, dtype="float32", scale=1 / 255, mean=means, deviation=deviations), COLUMN)
    assert np.allclose(found, (whole / 255 - means) / deviations, rtol=0, atol=1e-5)
    found = run(make(size=size, dtype="float32", mean=127.5, deviation=127.5), COLUMN)
    assert np.allclose(found, whole / 127.5 - 1, rtol=0, atol=1e-5)


def test_upright_unless_told():
    column = strings([turned_jpeg(PICTURE, 8, quality=100)])
    upright = run(make(size=(40, 56), column=column), column)
    check_like(upright[0], PICTURE, most=255, mean=4)
    stored = run(make(size=(56, 40), orient=False, column=column), column)
    assert np.array_equal(stored[0], upright[0].swapaxes(0, 1)[:, ::-1])


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([(40, 56)] * 3, (40, 56)),
        ([(160, 7)], (160, 7)),
        ([(1, 1)] * 2, (1, 1)),
        ([(161, 100)] * 3, (160, 96)),
        ([(40, 56), (40, 57)], (32, 32)),
        ([(64, 95), (63, 96), (70, 97)], (64, 96)),
        ([(10, 200), (9, 400), (300, 300)], (32, 160)),
        ([(1, 1), (1, 2)], (32, 32)),
    ],
)
def test_size_if_not_given_is_the_size_of_all_images_or_the_median(sizes, wanted):
    column = strings([jpeg(scene(*size)) for size in sizes])
    assert make(column=column, size=None).fitted.size == wanted
    source = KnownFormats(Schema({"x": FIELD}), {"x": column})
    assert Image().fit("x", FIELD, source).fitted.size == wanted  # by statistics
    assert make(column=column, size=None).size is None
    assert make(column=column, size=None).outputs("x") == (Output("x", "uint8", (*wanted, 3)),)
    assert not Image().is_measured(FIELD)
    assert Image().is_measured(ImageField(optional=True))


def test_size_of_no_image_is_32():
    transform = make(ImageField(optional=True), strings([None]), size=None, missing="fill")
    assert transform.fitted.size == (32, 32)


def test_images_without_a_valid_header_do_not_count_for_the_size():
    column = strings([b"no image", None, jpeg(scene(100, 70))[:3], png(scene(40, 50)), b""])
    transform = make(ImageField(optional=True), column, size=None, missing="fill")
    assert transform.fitted.size == (40, 50)


def test_size_is_one_number_or_two():
    assert make(size=9).outputs("x") == (Output("x", "uint8", (9, 9, 3)),)
    assert make(size=[9, 7], channels=1).outputs("x") == (Output("x", "uint8", (9, 7, 1)),)
    assert make(size=(np.int64(9), 7), dtype="float32").outputs("x") == (Output("x", "float32", (9, 7, 3)),)


@pytest.mark.parametrize(
    ("field", "given", "wanted"),
    [
        (ImageField(), None, ("jpeg", "png")),
        (ImageField("png"), None, ("jpeg", "png")),
        (ImageField("webp"), None, ("jpeg", "png", "webp")),
        (ImageField("webp"), ("gif",), ("gif",)),
        (ImageField(), "bmp", ("bmp",)),
        (ImageField(), ["bmp", "jpeg", "bmp"], ("jpeg", "bmp")),
    ],
)
def test_formats_are_the_safe_ones_and_the_format_of_the_field(field, given, wanted):
    assert make(field, strings([]), formats=given).fitted.formats == wanted


def test_format_that_is_not_decoded_is_an_error_that_says_how():
    transform = make()
    with raises_with(FieldError, "'x' 1 jpeg png bmp Image(formats=('jpeg' 'png' 'bmp'"):
        run(transform, strings([png(PICTURE), bmp(PICTURE)]))
    taken = make(size=(40, 56), formats=("png", "bmp"))
    assert np.array_equal(run(taken, strings([bmp(PICTURE)]))[0], PICTURE)


def test_image_beyond_max_pixels_is_an_error():
    with raises_with(FieldError, "'x' 0 2239 png 56 40 Image(max_pixels=…)"):
        run(make(max_pixels=2239), COLUMN)
    run(make(max_pixels=2240), COLUMN)


def test_all_bad_rows_are_named_at_once_and_the_others_are_sound():
    column = strings([COLUMN[0], b"", COLUMN[2], COLUMN[3][:200], b"text"])
    for resize in ("stretch", "pad", "crop", "random"):
        transform = make(resize=resize)
        for prepared in (
            transform.prepare("x", column, draws(5)),
            transform.prepare_to_keep("x", column, augments=True, room_bytes=ROOM),
        ):
            assert sorted(prepared.faults) == [1, 3, 4]
            assert [prepared.faults[row].record for row in (1, 3, 4)] == [1, 3, 4]
            assert {error.field for error in prepared.faults.values()} == {"x"}
            assert len(prepared.column) == 5
        assert np.array_equal(
            transform.prepare("x", column, None).column.values[[0, 2]],
            transform.prepare("x", COLUMN, None).column.values[[0, 2]],
        )
        with raises_with(FieldError, field="x", record=1):
            transform.apply("x", column, None)


OPTIONAL = ImageField(optional=True)
GAPS = strings([png(PICTURE), None, png(scene(40, 56, 2))])


def test_missing_image_is_refused_when_fitted():
    with raises_with(OptionError, "'x' 1 3 Image(missing='fill')"):
        make(OPTIONAL, GAPS)


def test_missing_image_is_an_error_when_applied():
    transform = make(OPTIONAL, COLUMN)
    with raises_with(FieldError, "image 'x' 1 Image(missing='fill')"):
        run(transform, GAPS)
    assert not transform.takes_missing


@pytest.mark.parametrize("resize", ["stretch", "pad", "crop", "random"])
def test_missing_image_is_filled_if_asked_for(resize):
    transform = make(OPTIONAL, GAPS, missing="fill", fill=(1, 2, 3), resize=resize)
    assert transform.takes_missing
    for given in (None, draws(3)):
        found = transform.apply("x", GAPS, given)["x"]
        assert (found[1] == [1, 2, 3]).all()
        assert not (found[0] == [1, 2, 3]).all()
    held = transform.prepare_to_keep("x", GAPS, augments=True, room_bytes=ROOM)
    assert not held.faults
    assert np.array_equal(
        transform.apply("x", held.column, draws(3))["x"], transform.apply("x", GAPS, draws(3))["x"]
    )


def test_default_of_a_field_is_an_image_like_others():
    field = ImageField(optional=True, default=png(PICTURE))
    transform = make(field, COLUMN, size=(40, 56))
    column = strings([png(scene(40, 56, 1)), png(PICTURE)])
    column.present = np.array([True, False])  # as the decoder has it: the default stands in its place
    assert np.array_equal(run(transform, column)[1], PICTURE)


def test_other_fields_have_no_images():
    with raises_with(OptionError, "'x' images tensor") as caught:
        make(Tensor((2, 2), "uint8"), numbers([[[1, 2], [3, 4]]], "uint8", (2, 2)))
    assert mentions(caught.value, "pixels Keep()")
    with raises_with(OptionError, field="x", advice=containing("pixels", "Keep()")):
        make(Bytes(), COLUMN)


def test_augments_with_draws_alone():
    transform = make(augment={"flip": 1.0})
    plain = run(transform, COLUMN)
    assert np.array_equal(transform.apply("x", COLUMN, draws(augments=False))["x"], plain)
    assert np.array_equal(transform.apply("x", COLUMN, draws())["x"], plain[:, :, ::-1])
    assert transform.augments
    assert make(resize="random").augments
    assert not make().augments


EVERYTHING = {"flip": 0.5, "crop": 0.2, "brightness": 0.3, "contrast": 0.3, "saturation": 0.3, "cutout": 0.3}


@pytest.mark.parametrize("resize", ["stretch", "random"])
def test_random_changes_depend_on_seed_epoch_and_record_alone(resize):
    transform = make(resize=resize, augment=EVERYTHING)
    together = transform.apply("x", COLUMN, draws())["x"]
    for row in reversed(range(COUNT)):
        alone = transform.apply("x", strings([COLUMN[row]]), Draws(3, 0, np.array([row])))["x"]
        assert np.array_equal(alone[0], together[row])
    for other in (draws(seed=4), draws(epoch=1)):
        assert not np.array_equal(transform.apply("x", COLUMN, other)["x"], together)
    # Two fields of one record are changed apart.
    assert not np.array_equal(transform.apply("y", COLUMN, draws())["y"], together)


@pytest.mark.parametrize("resize", ["stretch", "pad", "crop", "random"])
@pytest.mark.parametrize("augments", [False, True])
def test_prepared_columns_give_the_same_arrays(resize, augments):
    column = strings([jpeg(scene(40 + 7 * i, 90 - 9 * i, i)) for i in range(COUNT)])
    transform = make(resize=resize, augment=EVERYTHING, fill=5)
    given = draws(augments=augments)
    wanted = transform.apply("x", column, given)["x"]
    held = transform.prepare_to_keep("x", column, augments=augments, room_bytes=ROOM).column
    prepared = transform.prepare("x", held, given).column
    assert np.array_equal(transform.apply("x", prepared, given)["x"], wanted)
    prepared = transform.prepare("x", column, given).column
    assert np.array_equal(transform.apply("x", prepared, given)["x"], wanted)


def test_part_of_the_very_size_is_the_same_from_a_whole_picture():
    column = strings([png(scene(12, 12, seed)) for seed in range(4)])
    transform = make(size=12, resize="random", augment={"area": (1, 1), "aspect": (1, 1)}, column=column)
    held = transform.prepare_to_keep("x", column, augments=True, room_bytes=ROOM).column
    for images in (column, held):
        found = transform.apply("x", images, draws(4))["x"]
        assert np.array_equal(found, np.stack([scene(12, 12, seed) for seed in range(4)]))


@pytest.mark.parametrize("resize", ["stretch", "pad", "crop", "random"])
def test_empty_batch_has_no_rows(resize):
    transform = make(resize=resize, augment=EVERYTHING)
    for given in (None, draws(0)):
        assert transform.apply("x", strings([]), given)["x"].shape == (0, 12, 10, 3)
    held = transform.prepare_to_keep("x", strings([]), augments=True, room_bytes=ROOM).column
    assert transform.apply("x", held, draws(0))["x"].shape == (0, 12, 10, 3)


def test_webp_and_gif_are_decoded_where_the_field_says_so():
    for format, options in (("webp", {"lossless": True}), ("gif", {})):
        data = saved(PICTURE, format.upper(), **options)
        transform = make(ImageField(format), strings([data]), size=(40, 56))
        with Pillow.open(io.BytesIO(data)) as image:
            assert np.array_equal(run(transform, strings([data]))[0], np.asarray(image.convert("RGB")))


def test_without_antialiasing_no_draft_is_taken():
    column = strings([jpeg(scene(400, 560))])
    whole = run(make(column=column, draft=False, antialias=False), column)
    assert np.array_equal(run(make(column=column, antialias=False), column), whole)


class KnownFormats(ColumnSource):
    """A source whose statistics are at hand."""

    def knows(self, name):
        return True


def test_formats_that_are_known_not_to_be_taken_are_refused_when_fitted():
    column = strings([png(PICTURE), saved(PICTURE, "WEBP"), saved(PICTURE, "GIF"), saved(PICTURE, "WEBP")])
    source = KnownFormats(Schema({"x": FIELD}), {"x": column})
    with raises_with(OptionError, "'x' jpeg png 2 webp 1 gif Image(formats=('jpeg' 'png'"):
        Image(size=8).fit("x", FIELD, source)
    assert Image(size=8, formats=("png", "webp", "gif")).fit("x", FIELD, source).is_fitted


def test_portrait_photos_have_no_size_in_common_with_how_they_are_stored():
    lying, turned = jpeg(scene(30, 40)), turned_jpeg(scene(40, 30), 6)
    assert make(column=strings([lying, lying]), size=None).fitted.size == (30, 40)
    assert make(column=strings([lying, turned]), size=None).fitted.size == (32, 32)
    assert make(column=strings([turned, turned]), size=None).fitted.size == (40, 30)
    large = [turned_jpeg(scene(100, 70), 6)] * 2
    assert make(column=strings(large), size=None).fitted.size == (100, 70)
    assert make(column=strings([*large, turned_jpeg(scene(101, 72), 6)]), size=None).fitted.size == (96, 64)
    source = KnownFormats(Schema({"x": FIELD}), {"x": strings(large)})
    assert Image().fit("x", FIELD, source).fitted.size == (100, 70)
    assert make(column=strings([turned, turned]), size=None, orient=False).fitted.size == (30, 40)


def test_numbers_of_numpy_are_kept_as_json_has_them():
    given = Image(8, dtype="float32", scale=np.float32(0.5), mean=(np.float32(0.25),) * 3, fill=np.uint8(7))
    same = Image(8, dtype="float32", scale=0.5, mean=(0.25,) * 3, fill=7)
    assert json.dumps(given.to_json()) == json.dumps(same.to_json())
