"""Batches without a pipeline."""

import numpy as np

import penstock as ps


def test_fields_without_a_use_are_left_out(tmp_path):
    schema = ps.Schema(
        {
            "key": ps.fields.Text(role="id"),
            "code": ps.fields.Number("int64", role="unused"),
            "size": ps.fields.Number(),
            "share": ps.fields.Number(role="weight"),
            "sold": ps.fields.Number("int64", role="target"),
        }
    )
    with ps.Writer(tmp_path / "set", schema, split={"train": 1.0}) as writer:
        for number in range(6):
            writer.write({"key": str(number), "code": number, "size": number / 2, "share": 1.0, "sold": 1})
    inputs, targets, weights = next(iter(writer.dataset["train"].loader(batch_size=6)))
    assert (list(inputs), list(targets), list(weights)) == (
        ["size"],
        ["sold"],
        ["sold"],
    )  # weights are by target
    np.testing.assert_array_equal(np.sort(inputs["size"]), np.arange(6) / 2)
