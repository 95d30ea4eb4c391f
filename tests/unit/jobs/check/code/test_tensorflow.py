"""The code for TensorFlow as text; that TensorFlow runs it is an integration test."""

import penstock as ps
from penstock.errors import PayloadError
from penstock.fields import Number, Sequence, Tensor, Text
from penstock.jobs.check.code.tensorflow import write_parser
from raising import raises_with


def test_code_of_examples_describes_each_field_by_its_key():
    schema = ps.Schema(
        {
            "age": Number("int64", key="a"),
            "name": Text(default='"x"'),
            "tags": Sequence("string"),
            "mask": Tensor((2, 3), "uint8", "raw"),
        }
    )
    assert (
        write_parser(schema, "example")
        == """\
import tensorflow as tf

feature_description = {
    "a": tf.io.FixedLenFeature([], tf.int64),
    "name": tf.io.FixedLenFeature([], tf.string, default_value='"x"'),
    "tags": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    "mask": tf.io.FixedLenFeature([], tf.string),
}


def parse(serialized):
    values = tf.io.parse_single_example(serialized, feature_description)
    return {
        "age": values["a"],
        "name": values["name"],
        "tags": values["tags"],
        "mask": tf.reshape(tf.io.decode_raw(values["mask"], tf.uint8), [2, 3]),
    }
"""
    )


def test_code_of_sequence_examples_has_both_descriptions():
    schema = ps.Schema({"user": Number(), "clicks": Sequence("int64", None, "feature_list")})
    code = write_parser(schema, "sequence_example")
    assert 'context_features = {\n    "user": tf.io.FixedLenFeature([], tf.float32),\n}' in code
    assert 'sequence_features = {\n    "clicks": tf.io.RaggedFeature(tf.int64),\n}' in code
    assert '"clicks": steps["clicks"],' in code


def test_names_and_defaults_cannot_break_out_of_the_code():
    name = '"] + exit() + ["\n\\'
    code = write_parser(ps.Schema({name: Text(default=name), "f": Number(default=float("-inf"))}), "example")
    compile(code, "printed", "exec")
    assert repr(name) in code
    assert 'default_value=float("-inf")' in code


def test_records_that_are_no_examples_have_no_code():
    with raises_with(PayloadError, expected="Examples"):
        write_parser(ps.Schema({}), "other")
