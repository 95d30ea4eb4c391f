"""Columns into bodies and hashes: what the schema says of them reaches the core."""

import numpy as np
import pytest

from encoded_rows import column_of, encode_frames, strings_of
from penstock import fields as f
from penstock.columns import Bytes, Dense, Ragged
from penstock.encode.records import RecordEncoder
from penstock.encode.strings import fingerprint
from penstock.schema.schema import Schema
from penstock.storage.deferred import Deferred
from raising import raises_with
from wire.example import Feature, read_example


def payloads(fields, columns):
    num_rows = len(next(iter(columns.values())))
    return encode_frames(Schema(fields), columns, num_rows).payloads


def only(payload):
    (feature,) = read_example(payload, strict=True).values()
    return feature


def test_key_of_a_field_equals_the_key_in_the_record():
    (payload,) = payloads({"age": f.Number("int64", key="Alter")}, {"age": Dense(np.array([4]))})
    assert read_example(payload) == {"Alter": Feature("int64", [4])}


def test_columns_are_found_by_name_in_the_order_of_the_schema():
    fields = {"b": f.Number("int64"), "a": f.Text()}
    columns = {"unused": Dense(np.array([9])), "a": strings_of([b"x"]), "b": Dense(np.array([1]))}
    (payload,) = payloads(fields, columns)
    assert list(read_example(payload).items()) == [
        ("b", Feature("int64", [1])),
        ("a", Feature("bytes", [b"x"])),
    ]


@pytest.mark.parametrize("dtype", [">f8", "<f8", "f4", "i2"])
def test_float64_is_stored_as_eight_little_endian_bytes_whatever_the_column_is(dtype):
    values = np.array([1, -2], dtype)
    found = payloads({"x": f.Number("float64")}, {"x": Dense(values)})
    assert [only(each).values for each in found] == [[np.array([v], "<f8").tobytes()] for v in (1, -2)]


@pytest.mark.parametrize("dtype", [">i4", "<i4", "i8", "f8"])
def test_raw_tensor_is_stored_in_the_type_of_its_field(dtype):
    values = np.array([[1, 2], [3, 4]], dtype)
    found = payloads({"x": f.Tensor((2,), "int32", "raw")}, {"x": Dense(values)})
    assert [only(each).values for each in found] == [[np.array(v, "<i4").tobytes()] for v in ([1, 2], [3, 4])]


def views(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return the same array in forms that the core itself would not take."""
    packed = np.zeros(len(values), np.dtype([("pad", "u1"), ("x", values.dtype, values.shape[1:])]))
    packed["x"] = values
    backwards = np.ascontiguousarray(values[::-1])[::-1]
    shifted = np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(values.dtype).reshape(values.shape)
    assert not shifted.flags.aligned
    locked = values.copy()
    locked.flags.writeable = False
    return {
        "in a packed struct": packed["x"],
        "backwards": backwards,
        "not aligned": shifted,
        "in Fortran's order": np.asfortranarray(values),
        "in the other byte order": values.astype(values.dtype.newbyteorder(">")),
        "read-only": locked,
    }


@pytest.mark.parametrize("form", views(np.zeros((1, 1))))
@pytest.mark.parametrize(
    ("field", "dtype"),
    [
        (f.Tensor((3,), "int64", "list"), "int64"),
        (f.Tensor((3,), "float32", "list"), "float32"),
        (f.Tensor((3,), "float64", "raw"), "float64"),
        (f.Tensor((3,), "int16", "raw"), "int16"),
    ],
)
def test_arrays_are_stored_however_they_lie_in_memory(form, field, dtype):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    plain = Dense(values)
    odd = Dense(views(values)[form])
    schema = Schema({"x": field})
    assert encode_frames(schema, {"x": odd}, 4).data == encode_frames(schema, {"x": plain}, 4).data
    encoder = RecordEncoder(schema)
    hashes = [encoder.prepare({"x": column}, 4).hash_rows(["x"]).tolist() for column in (odd, plain)]
    assert hashes[0] == hashes[1]


def test_numbers_offsets_and_masks_with_gaps_are_stored():
    present = np.array([True, False, False, True])[::3]
    fields = {"n": f.Number("float64", optional=True), "s": f.Sequence("int64"), "t": f.Text()}
    arena = np.frombuffer(b"abcd", np.uint8)
    columns = {
        "n": Dense(np.arange(4.0)[::2], present),
        "s": Ragged(np.arange(20)[::2], np.array([0, 9, 1, 9, 3])[::2]),
        "t": Bytes(arena, np.array([0, 9, 1])[::2], np.array([1, 9, 4])[::2]),
    }
    found = [read_example(each) for each in payloads(fields, columns)]
    assert [each["s"].values for each in found] == [[0], [2, 4]]
    assert [each["t"].values for each in found] == [[b"a"], [b"bcd"]]
    assert [each["n"].values for each in found] == [[np.float64(v).tobytes()] for v in (0, 2)]


def test_deferred_columns_are_left_out_but_count_in_the_hash():
    schema = Schema({"photo": f.Image(), "n": f.Number("int64")})
    encoder = RecordEncoder(schema)
    numbers = Dense(np.array([1, 1]))
    hashes = np.array([5, 6], np.uint64)
    digests = np.zeros((2, 2), np.uint64)
    columns = {"photo": Deferred(np.array([10, 10]), hashes, digests, paths=["a", "b"]), "n": numbers}
    arena, offsets = encoder.encode(columns, 2)
    alone, _ = RecordEncoder(Schema({"n": f.Number("int64")})).encode({"n": numbers}, 2)
    assert arena.tobytes() == alone.tobytes()
    assert offsets.tolist() == [0, len(alone) // 2, len(alone)]
    first, second = encoder.prepare(columns, 2).hash_rows(["photo", "n"])
    assert first != second


def test_a_value_has_the_same_hash_deferred_or_not():
    data = [b"x" * 5000, b"y" * 5000]
    schema = Schema({"photo": f.Bytes(optional=True)})
    column = column_of(schema["photo"], [*data, None])
    late = Deferred(
        np.array([5000, 5000, 0]), *fingerprint([*data, b""]), values=[*data, b""], present=column.present
    )
    encoder = RecordEncoder(schema)
    hashes = [encoder.prepare({"photo": each}, 3).hash_rows(["photo"]).tolist() for each in (column, late)]
    assert hashes[0] == hashes[1]
    assert hashes[0][2] == 0


def test_records_with_a_feature_list_are_sequence_examples():
    assert RecordEncoder(Schema({"s": f.Sequence("int64", None, "feature_list")})).is_sequence
    assert not RecordEncoder(Schema({"s": f.Sequence("int64")})).is_sequence
    assert not RecordEncoder(Schema({})).is_sequence


def test_sequence_examples_take_no_deferred_column():
    schema = Schema({"s": f.Sequence("int64", (), "feature_list"), "photo": f.Image()})
    columns = {
        "s": Ragged(np.array([1]), np.array([0, 1])),
        "photo": Deferred(np.array([1]), *fingerprint([b"x"])),
    }
    with raises_with(ValueError, "SequenceExample"):
        RecordEncoder(schema).encode(columns, 1)


def test_columns_of_another_form_than_the_field_are_refused():
    lists = Ragged(np.array([1]), np.array([0, 1]))
    with raises_with(TypeError, "column lists"):
        RecordEncoder(Schema({"n": f.Number("int64")})).encode({"n": lists}, 1)
    deeper = Ragged(Ragged(lists, np.array([0, 1])), np.array([0, 1]))
    schema = Schema({"s": f.Sequence("int64", None, "feature_list")})
    with raises_with(TypeError, "two levels"):
        RecordEncoder(schema).encode({"s": deeper}, 1)


def test_unknown_names_and_missing_columns_are_refused():
    encoder = RecordEncoder(Schema({"n": f.Number("int64")}))
    with pytest.raises(KeyError, match="n"):
        encoder.encode({}, 1)
    with pytest.raises(ValueError, match="other"):
        encoder.prepare({"n": Dense(np.array([1]))}, 1).hash_rows(["other"])
