"""Hashes and encoded bytes as they are, for ever: splits and orders of data sets are made from them.

A number here that has to change means that rows of every data set change their split. Do not change one.
"""

import numpy as np
import pytest

import core_reference as plain
from encoded_rows import column_of, encode_frames, strings_of
from penstock import _native
from penstock import fields as f
from penstock.columns import Dense, Ragged
from penstock.encode.records import RecordEncoder
from penstock.schema.schema import Schema

BYTES = {
    b"": 0x5D5C1569F6C27129,
    b"a": 0x1D84C208FB1EBADE,
    b"abc": 0x99AA9FFBC07C8A84,
    b"abcd": 0xF517FBB7BDAFC68A,
    b"penstock": 0x0EDBB3541E9EFAD8,
    b"123456789": 0x6CCD720B25CE866F,
    b"0123456789abcdef": 0xA247E15CBE70E045,
    b"0123456789abcdefg": 0x08A80F699AF79367,
    bytes(range(64)): 0x132A100F034D7A91,
    bytes(1000): 0xC3E63ADEB6F3B0C1,
}
ROWS = {
    (0, 0): 0x31042CC5515AF7EE,
    (0, 1): 0x3FBBA26D636449E0,
    (1, 0): 0xE0D89FA2C0F89645,
    (42, 10**12): 0xE5A47530FAE9C778,
    (2**64 - 1, 2**64 - 1): 0x7951D0E087666FEE,
}
# Of a field "age" with this value alone.
NUMBERS = {
    0: 0x6F7367DDC46CA085,
    1: 0xE258813AE1FB03DE,
    -1: 0x5E61D7312E51B90B,
    2**53 + 1: 0xACBFFC95427547A8,
    2**63 - 1: 0x6B8EB55091E4B27E,
    0.5: 0x3F5463A15B9917F8,
    float("nan"): 0xABD4EE64947D1F55,
}
WORD_AND_LIST = 0x51DE3D93134A4FE6, 0xBED16097E9C7EAFB


@pytest.mark.parametrize("data", BYTES)
def test_golden_hash_of_bytes_equals_the_core_and_the_plain_form(data):
    assert _native.hash_bytes(data) == plain.hash_bytes(data) == BYTES[data]


@pytest.mark.parametrize(("seed", "row"), ROWS)
def test_golden_position_of_a_row_equals_the_core_and_the_reference(seed, row):
    assert int(_native.mix_rows(seed, row, 1)[0]) == plain.mix_row(seed, row) == ROWS[seed, row]


@pytest.mark.parametrize("value", NUMBERS)
def test_golden_hash_of_a_number_equals_the_core_and_the_plain_form(value):
    dtype = "int64" if isinstance(value, int) else "float64"
    encoder = RecordEncoder(Schema({"age": f.Number(dtype)}))
    hashes = encoder.prepare({"age": Dense(np.array([value], dtype))}, 1).hash_rows(["age"])
    assert int(hashes[0]) == plain.hash_field("age", plain.word_of(value)) == NUMBERS[value]


def test_golden_hash_of_a_row_is_the_sum_of_the_hashes_of_its_fields():
    schema = Schema({"name": f.Text(), "clicks": f.Sequence("string")})
    columns = {
        "name": strings_of([b"rex"]),
        "clicks": Ragged(strings_of([b"a", b"b"]), np.array([0, 2])),
    }
    encoder = RecordEncoder(schema)
    each = tuple(int(encoder.prepare(columns, 1).hash_rows([name])[0]) for name in schema)
    assert each == WORD_AND_LIST
    assert int(encoder.prepare(columns, 1).hash_rows(list(schema))[0]) == sum(WORD_AND_LIST) % 2**64


# tf.io.TFRecordWriter: {"id": int64 [1, -1], "name": bytes ["rex", ""], "x": float [1.5, -0.0]}
EXAMPLE = bytes.fromhex(
    "3f00000000000000" "51657661"
    "0a3d"
    "0a15" "0a026964" "120f" "1a0d0a0b01ffffffffffffffffff01"
    "0a11" "0a046e616d65" "1209" "0a070a037265780a00"
    "0a11" "0a0178" "120c" "120a0a080000c03f00000080"
    "aff463d7"
)  # fmt: skip
# context {"user": 300}, lists {"clicks": [[1, 2], []], "words": [["hi"]]}
SEQUENCE_EXAMPLE = bytes.fromhex(
    "3f00000000000000516576610a100a0e0a047573657212061a040a02ac02122b0a160a06636c69636b73120c0a061a04"
    "0a0201020a021a000a110a05776f72647312080a060a040a026869a1a51a16"
)


def test_golden_example_equals_the_core():
    fields = {"id": f.Sequence("int64"), "name": f.Sequence("bytes"), "x": f.Sequence("float32")}
    cells = {"id": np.array([1, -1]), "name": [b"rex", b""], "x": np.array([1.5, -0.0], np.float32)}
    columns = {name: column_of(field, [cells[name]]) for name, field in fields.items()}
    assert encode_frames(Schema(fields), columns, 1).data == EXAMPLE


def test_golden_sequence_example_equals_the_core():
    fields = {
        "user": f.Number("int64"),
        "clicks": f.Sequence("int64", None, "feature_list"),
        "words": f.Sequence("string", (), "feature_list"),
    }
    cells = {
        "user": np.int64(300),
        "clicks": [np.array([1, 2]), np.empty(0, np.int64)],
        "words": [[b"hi"]],
    }
    columns = {name: column_of(field, [cells[name]]) for name, field in fields.items()}
    assert encode_frames(Schema(fields), columns, 1).data == SEQUENCE_EXAMPLE
