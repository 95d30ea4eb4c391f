"""Advice that names arguments of Python becomes advice that names flags."""

import logging

import pytest

from penstock.foundation.wording import argument, declare
from penstock.settings.advice import logging_flags, to_flags

CASES = {
    argument("overwrite", True): "'--overwrite'",
    argument("check", False): "'--no-check'",
    argument("on_error", "skip"): "'--on-error skip'",
    argument("drop", ["my col", "b"]): "\"--drop 'my col',b\"",
    argument("missing", ("", "N/A")): "'--missing N/A'",
    argument("split", {"train": 0.8, "test": 0.2}): "'--split train=0.8,test=0.2'",
    argument("delimiter", "\t"): "\"--delimiter '\\t'\"",
    argument("shard_bytes", 10): "'--shard-size 10'",
    argument("files_from", ["s3://bucket/…"]): "\"--files-from 's3://bucket/…'\"",
    declare("note", "Text()"): "'--text note'",
    declare("mask", "Tensor((64, 64), 'uint8')"): "'--tensor mask:64x64:uint8'",
    declare("a`b", "Text()"): "\"--text 'a`b'\"",
    argument("num_threads", 4): "'--threads 4'",
    argument("max_skipped", 9): "'--max-skipped 9'",
    argument("shuffle", False): "'--no-shuffle'",
    argument("shuffle", True): "'--shuffle'",
    argument("shuffle", "block"): "'--shuffle block'",
    argument("stratify", True): "'--stratify'",
    argument("quiet", True): "'--quiet'",
    argument("data", True): "'--data'",
    argument("data", "a.csv"): "'--data a.csv'",
    "`ModelOptions(text='gru')`": "'--text-encoder gru'",
    "`files_from=[URL]`": "'--files-from URL'",
    "`target=NAME`": "'--target NAME'",
    "`model=build`": "'--model FILE.py:FUNCTION'",
    "`ps.predict(run, data)`": "'penstock predict RUN DATA'",
    "`ps.export_model(run, out, format='onnx')`": "'penstock export RUN OUT --format onnx'",
    "`Pipeline.fit(data, age=None)`": "'--drop age'",
    "`Pipeline.fit(data, pic=Image(formats=('png', 'gif'), orient=False))`": (
        "'--config FILE, with fields: {pic: {kind: image, formats: [png, gif], orient: false}} in the file'"
    ),
    "`Pipeline.fit(data, age=Scale(nan='missing'))`": (
        "'--config FILE, with fields: {age: {kind: scale, nan: missing}} in the file'"
    ),
}


@pytest.mark.parametrize(("code", "flags"), CASES.items())
def test_code_of_options_becomes_flags(code, flags):
    assert to_flags(f"Fix it: {code}.") == f"Fix it: {flags}."


@pytest.mark.parametrize(
    "text",
    [
        "no code",
        "filter='`age` is not None'",
        "`a=(`",
        "`fields={'a': 1}`",
        "`missing=3`",
        "`overwrite=False`",
        "`**{'a': 1}`",
    ],
)
def test_other_text_stays(text):
    assert to_flags(text) == text


def test_log_names_flags_inside_the_context_alone(caplog):
    log = logging.getLogger("penstock")
    with logging_flags():
        log.warning("%s: %s", "here", argument("overwrite", True))
    log.warning("%s", argument("overwrite", True))
    assert [record.getMessage() for record in caplog.records] == ["here: '--overwrite'", "`overwrite=True`"]
