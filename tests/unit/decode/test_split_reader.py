"""What a split shows of its records: a grid in a notebook, a table in a terminal, a DataFrame."""

import numpy as np
import pytest

import penstock as ps
from penstock.decode import sample_view, split_reader
from penstock.errors import OptionError
from png_files import RGB, draw, encode
from record_files import example, write_gzip, write_plain

HOSTILE = "<script>alert('x')</script>\x1b[31m\u202e"


def make_png(side=16, seed=0):
    return encode(draw(RGB, 8, side, side, seed=seed))


@pytest.fixture
def photos(tmp_path):
    rows = [example(name=f"{HOSTILE}{n}", photo=make_png(seed=n), size=n, label=n % 2) for n in range(20)]
    fields = {"name": ps.fields.Text()}
    return ps.open(write_plain(tmp_path / "a.tfrecord", rows), fields=fields, target="label")["all"]


def test_grid_has_a_thumbnail_of_each_of_the_first_records(photos):
    page = photos._repr_html_()
    assert page.count("data:image/png;base64,") == sample_view.MAX_SHOWN
    assert "20 records" in page
    assert "12 more" in page


def test_grid_escapes_values_of_records(photos):
    page = photos._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_grid_reads_no_more_records_than_it_shows(photos, monkeypatch):
    read = []
    real = split_reader.read_columns
    monkeypatch.setattr(
        split_reader, "read_columns", lambda *given: (read.append(given[-2:]), real(*given))[1]
    )
    photos._repr_html_()
    assert read == [(n, n + 1) for n in range(sample_view.MAX_SHOWN)]


def test_grid_reads_few_fields_of_a_wide_record(tmp_path, monkeypatch):
    path = write_plain(tmp_path / "a.tfrecord", [example(**{f"f{n:04}": n for n in range(500)})])
    split = ps.open(path)["all"]
    plans = []
    real = split._plan
    monkeypatch.setattr(split, "_plan", lambda fields: (plans.append(fields), real(fields))[1])
    page = split._repr_html_()
    assert [len(names) for names in plans] == [sample_view.MAX_FIELDS]
    assert "488 more fields" in page


def test_thumbnails_are_limited_in_number_and_size(photos, monkeypatch):
    monkeypatch.setattr(sample_view, "_MAX_PICTURES", 3)
    assert photos._repr_html_().count("data:image") == 3
    monkeypatch.setattr(sample_view, "_MAX_PICTURES", 30)
    monkeypatch.setattr(sample_view, "_MAX_PICTURE_CHARS", 3_000)
    assert 0 < photos._repr_html_().count("data:image") < sample_view.MAX_SHOWN
    monkeypatch.setattr(sample_view, "_MAX_IMAGE_PIXELS", 16 * 16 - 1)
    assert "data:image" not in photos._repr_html_()
    assert "png 16 × 16" in photos._repr_html_()


def test_damaged_record_is_shown_as_its_error_and_not_counted(tmp_path):
    rows = [example(a=n, photo=make_png()) for n in range(4)]
    path = write_plain(tmp_path / "a.tfrecord", rows)
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    split = ps.open(path, schema=ps.Schema({"a": ps.fields.Number("int64"), "photo": ps.fields.Image()}))[
        "all"
    ]
    page = split._repr_html_()
    assert "CorruptRecordError" in page
    assert page.count("data:image") == 3
    assert split.num_skipped == 0


def test_file_that_was_cut_is_shown_as_an_error(photos):
    photos.paths[0].write_bytes(b"")
    page = photos._repr_html_()
    assert "Error" in page
    assert "data:image" not in page


def test_damaged_image_is_shown_as_text(tmp_path):
    rows = [example(photo=make_png()[:-40]), example(photo=b"\x89PNG\r\n\x1a\nnothing")]
    page = ps.open(write_plain(tmp_path / "a.tfrecord", rows), fields={"photo": ps.fields.Image()})["all"]
    assert "data:image" not in page._repr_html_()
    assert page._repr_html_().count("png") == 2


def test_large_record_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(split_reader, "_SHOWN_BYTES", 1_000)
    rows = [example(text="x" * 2_000), example(text="small")]
    page = ps.open(write_plain(tmp_path / "a.tfrecord", rows))["all"]._repr_html_()
    assert "too many to show" in page
    assert "small" in page


def test_records_that_are_not_examples_are_an_error_in_place(tmp_path):
    page = ps.open(write_plain(tmp_path / "a.tfrecord", [b"\xff\xff", b"\xfe"]))["all"]._repr_html_()
    assert "PayloadError" in page


def test_empty_split_and_compressed_files_are_shown(tmp_path):
    schema = ps.Schema({"a": ps.fields.Number("int64")})
    assert (
        "no records" in ps.open(write_plain(tmp_path / "a.tfrecord", []), schema=schema)["all"]._repr_html_()
    )
    path = write_gzip(tmp_path / "b.tfrecord.gz", [example(a=n) for n in range(30)])
    assert "record 7" in ps.open(path)["all"]._repr_html_()


def test_head_is_a_list_with_a_short_table(photos):
    first = photos.head(3)
    assert list(first) == photos[:3]
    assert "\x1b" not in repr(first)
    assert [line.split()[:2] for line in repr(first).splitlines()[2:]] == [["0", "0"], ["1", "1"], ["2", "0"]]
    assert first._repr_html_().count("data:image") == 3
    assert len(photos.head(0)) == 0
    assert len(photos.head(100)) == 20
    for wrong in (-1, 1.5, "two"):
        with pytest.raises(OptionError) as caught:
            photos.head(wrong)
        assert caught.value.got == repr(wrong)


def test_frame_keeps_integers_with_missing_values_exact(tmp_path):
    pd = pytest.importorskip("pandas")
    large = 2**62 + 1
    tensors = [np.full((2, 3), n, np.float32) for n in range(3)]
    columns = {"a": [large, None, 3], "t": tensors, "w": ["x", "y", None], "i": [1, 2, 3]}
    fields = {
        "a": ps.fields.Number("int64", optional=True),
        "t": ps.fields.Tensor((2, 3), "float32"),
        "w": ps.fields.Text(optional=True),
    }
    made = ps.convert(columns, tmp_path / "d", fields=fields, split="train=1.0", shuffle=False)["train"]
    frame = made.to_pandas()
    assert frame["a"].tolist()[0] == large
    assert frame["a"].isna().tolist() == [False, True, False]
    assert str(frame["a"].dtype) == "Int64"
    assert str(frame["i"].dtype) == "int64"
    assert np.array_equal(frame["t"][2], tensors[2])
    assert frame["w"].isna().tolist() == [False, False, True]
    assert list(made.to_pandas(["i"])) == ["i"]
    assert isinstance(frame.index, pd.RangeIndex)
