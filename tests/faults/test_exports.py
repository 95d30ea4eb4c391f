"""Y5, Y15: exports give the pixels of the run for every JPEG and PNG, and hold what was exported alone."""

import struct

import numpy as np
import pytest

import penstock as ps
import png_files
from fit_sources import strings
from graph_images import open_images
from image_files import exif, insert_after_start, jpeg, png, saved, scene, segment, turned_jpeg
from penstock.errors import ExportError, SchemaError
from penstock.export.manifest import read_export_json, read_manifest, write_manifest
from penstock.jobs.export.image_files import make_jpegs, make_pngs
from penstock.transform.pipeline import without_targets
from raising import containing, raises_with

HEIGHT, WIDTH = 14, 22
PICTURE = scene(HEIGHT, WIDTH)
LARGE = scene(90, 130)
JPEG, CMYK = jpeg(PICTURE), jpeg(PICTURE, "CMYK")
CAMERA = segment(0xE1, b"Exif\0\0" + exif(6))


def orient_png(orientation: int, order: str, *, place: str = "before", prefix: bytes = b"") -> bytes:
    note = png_files.chunk(b"eXIf", prefix + exif(orientation, order))
    drawing = png_files.draw(png_files.RGB, 8, HEIGHT, WIDTH, seed=orientation)
    return png_files.encode(drawing, **{place: note})


def of_colours(with_hidden: bool, interlaced: bool) -> dict[str, bytes]:
    found = {}
    for colour, depth in png_files.FORMS:
        drawing = png_files.draw(colour, depth, HEIGHT, WIDTH, seed=depth, with_hidden=with_hidden)
        found[f"colour type {colour}, {depth} bits, {with_hidden=}, {interlaced=}"] = png_files.encode(
            drawing, interlaced=interlaced
        )
    return found


def entry(kind: int, count: int, value: int, order: str = "<") -> bytes:
    """Return EXIF data whose entry of the orientation has another type or count."""
    mark = b"II" if order == "<" else b"MM"
    text = struct.pack(f"{order}HHII", 0x010F, 2, 4, 0)
    return (
        mark
        + struct.pack(f"{order}HIH", 42, 8, 2)
        + text
        + struct.pack(f"{order}HHII", 0x0112, kind, count, value)
    )


def replace_adobe(data: bytes, transform: int | None) -> bytes:
    """Return a CMYK JPEG with another transform in its segment of Adobe, or without the segment."""
    start = data.index(b"\xff\xee")
    stop = start + 2 + struct.unpack_from(">H", data, start + 2)[0]
    kept = b"" if transform is None else data[start : stop - 1] + bytes([transform])
    return data[:start] + kept + data[stop:]


TURNED = {
    f"{name} {turn}{order}": made
    for turn in range(1, 9)
    for order in "<>"
    for name, made in (
        ("JPEG", turned_jpeg(PICTURE, turn, order)),
        ("PNG", orient_png(turn, order)),
        ("PNG, after the pixels", orient_png(turn, order, place="after")),
        ("PNG with prefix", orient_png(turn, order, prefix=b"Exif\0\0")),
        ("JPEG decoded at a reduced size", turned_jpeg(LARGE, turn, order)),
        ("large PNG", png(LARGE, before=png_files.chunk(b"eXIf", exif(turn, order)))),
    )
}
ODD_EXIF = {
    name: make(data)
    for name, data in {
        "long": entry(4, 1, 6),
        "big endian long": entry(4, 1, 6, ">"),
        "count 2": entry(3, 2, 6),
        "another type": entry(7, 1, 6),
        "9": exif(9),
        "cut short": exif(6)[:-9],
        "no TIFF": exif(6).replace(b"II*", b"II+"),
        "directory elsewhere": exif(6)[:4] + b"\xff\0\0\0",
    }.items()
    for name, make in (
        (f"JPEG, {name}", lambda data: insert_after_start(JPEG, segment(0xE1, b"Exif\0\0" + data))),
        (f"PNG, {name}", lambda data: png(PICTURE, before=png_files.chunk(b"eXIf", data))),
    )
}
PLACES = {
    "a text that mentions EXIF": segment(0xFE, b"\xff\xe1\0\x20Exif\0\0" + exif(6)),
    "EXIF after such a text": segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0 Exif\0\0") + CAMERA,
    "two": segment(0xE1, b"Exif\0\0" + exif(3)) + CAMERA,
    "the first without an orientation": segment(0xE1, b"Exif\0\0" + exif(9)) + CAMERA,
    "EXIF after 260 KB": segment(0xE2, bytes(65_000)) * 4 + CAMERA,
    "fill bytes": b"\xff\xff" + CAMERA,
    "EXIF that ends before its directory": segment(0xE1, b"Exif\0\0II*\0\x14\0\0\0")
    + segment(0xFE, exif(6) * 4),
}
JPEGS = {
    **{f"JPEG, {name}": insert_after_start(JPEG, more) for name, more in PLACES.items()},
    "JPEG, EXIF after the end": JPEG + CAMERA,
    "grey": jpeg(PICTURE, "L"),
    "progressive": jpeg(PICTURE, progressive=True),
    "4:2:0": jpeg(PICTURE, subsampling="4:2:0"),
    "RGB": jpeg(PICTURE, keep_rgb=True),
    "CMYK": CMYK,
    "CMYK without a mark": replace_adobe(CMYK, None),
    "YCCK": replace_adobe(CMYK, 2),
    "CMYK without a mark, turned": insert_after_start(replace_adobe(CMYK, None), CAMERA),
}
PNGS = {
    "PNG, two": png(PICTURE, before=b"".join(png_files.chunk(b"eXIf", exif(turn)) for turn in (3, 6))),
    "PNG, EXIF in a text": png(
        PICTURE, before=png_files.chunk(b"tEXt", b"a\0" + png_files.chunk(b"eXIf", exif(6)))
    ),
    "PNG, EXIF after the end": png(PICTURE) + png_files.chunk(b"eXIf", exif(6)),
    "PNG, gamma": png(PICTURE, before=png_files.chunk(b"gAMA", struct.pack(">I", 22222))),
}
for hides, weaves in ((False, False), (True, True)):
    PNGS |= of_colours(hides, weaves)


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> ps.Dataset:
    return open_images(tmp_path_factory.mktemp("photos") / "train.tfrecord", [JPEG, png(PICTURE)])


def make_serving(photos: ps.Dataset, **options):
    """Return a transform, and the preprocessing of a SavedModel for it."""
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("keras")
    from penstock.export.saved_model import make_preprocessing  # noqa: PLC0415 - imports TensorFlow

    pipeline = ps.Pipeline.fit(photos, photo=ps.transform.Image(**options), row={"kind": "keep"})
    tensors, prepare, scope = make_preprocessing(without_targets(pipeline))

    def serve(photo):
        return prepare({"photo": photo, "row": tf.zeros(tf.shape(photo), tensors["row"].dtype)})["photo"]

    function = tf.function(
        tf.autograph.experimental.do_not_convert(serve), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    function.tables = scope  # lookup tables live as long as the function
    return pipeline.transforms["photo"], lambda images: function(tf.constant(images)).numpy()


KINDS = {"orientations": TURNED, "odd EXIF": ODD_EXIF, "JPEG": JPEGS, "PNG": PNGS}


@pytest.mark.parametrize("options", [{}, {"channels": 1, "resize": "crop"}, {"channels": 4}], ids=str)
def test_y05_every_jpeg_and_png_has_the_pixels_of_predict_in_a_saved_model(photos, options):
    transform, serve = make_serving(photos, size=(HEIGHT, WIDTH), **options)
    files = {f"{group}: {name}": data for group, all_ in KINDS.items() for name, data in all_.items()}
    expected = transform.apply("photo", strings(list(files.values())), None)["photo"]
    gaps = np.abs(serve(list(files.values())).astype(int) - expected).max(axis=(1, 2, 3))
    assert {name: gap for name, gap in zip(files, gaps.tolist(), strict=True) if gap > 2} == {}


def test_y05_files_of_the_check_are_within_its_limit_where_they_are_resized(photos):
    pytest.importorskip("keras")
    from penstock.jobs.export.check import PIXEL_GAP  # noqa: PLC0415 - imports Keras

    size = (32, 40)
    transform, serve = make_serving(photos, size=size)
    kinds, files = zip(*make_pngs(), *make_jpegs((101, 125)), strict=True)
    expected = transform.apply("photo", strings(files), None)["photo"]
    gaps = np.abs(serve(files).astype(int) - expected).max(axis=(1, 2, 3)).tolist()
    assert max(gaps) <= PIXEL_GAP
    assert (
        max(gap for kind, gap in zip(kinds, gaps, strict=True) if "CMYK" not in kind and "YCCK" not in kind)
        <= 1
    )


@pytest.mark.parametrize("format", ["GIF", "BMP", "WEBP"])
def test_y05_other_format_is_refused_with_the_name_of_the_input(photos, format):
    tf = pytest.importorskip("tensorflow")
    _, serve = make_serving(photos, size=(8, 8))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        serve([JPEG, saved(PICTURE, format)])
    assert str(caught.value) == containing("input photo: expected images in JPEG or PNG")


@pytest.fixture
def export(tmp_path):
    """A folder with the files and digests of a bundle; no test opens its model."""
    folder = tmp_path / "export"
    (folder / "more").mkdir(parents=True)
    for name in ("architecture.json", "model.json", "pipeline.json", "schema.json", "more/data.json"):
        (folder / name).write_text("{}")
    write_manifest(folder, "bundle", {})
    return folder


@pytest.mark.parametrize("name", ["model.json", "more/data.json", "more", "export.json"])
def test_y15_link_in_an_export_is_refused_by_its_path(export, tmp_path, name):
    """Also a link to an equal file: that file can change, or be read by a user who gets the export."""
    moved = tmp_path / "elsewhere"
    read_manifest(export)
    (export / name).rename(moved)
    (export / name).symlink_to(moved)
    with raises_with(ExportError, path=str(export / name), got=containing("a link", str(moved))):
        read_manifest(export)


def test_y15_link_that_is_not_listed_is_refused_though_it_leads_to_a_folder_or_nowhere(export, tmp_path):
    for target in (tmp_path, export / "nothing"):
        (export / "extra").symlink_to(target)
        with raises_with(ExportError, path=str(export / "extra"), got=containing("a link")):
            read_manifest(export)
        (export / "extra").unlink()
    folder = tmp_path / "current"
    folder.symlink_to(export)  # the name of the whole export may be a link, as for versions
    assert read_manifest(folder).format == "bundle"


def test_y15_key_twice_in_a_file_of_an_export_is_refused(export):
    listed = (export / "export.json").read_text()
    first = listed.index('"model.json"')
    another = '"format": "onnx", "format":'
    doubled = (listed.replace('"format":', another), f'{listed[:first]}"model.json": {{}}, {listed[first:]}')
    for text in doubled:
        (export / "export.json").write_text(text)
        with raises_with(ExportError, path=str(export / "export.json"), got=containing("twice")):
            read_manifest(export)
    path = export / "pipeline.json"
    path.write_text('{"version": 1, "version": 2}')
    with raises_with(SchemaError, path=str(path), got=containing("'version' twice")):
        ps.Pipeline.load(path)
    path = export / "model.json"
    path.write_text('{"outputs": {"logits": {"a": false, "\\u0061": true}}}')
    with raises_with(ExportError, path=str(path), got=containing("'a' twice")):
        read_export_json(path)
