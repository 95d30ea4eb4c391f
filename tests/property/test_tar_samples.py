"""The law of WebDataset archives: samples that are packed come back, in any format and number of archives."""

import gzip
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source
from tar_files import pack, save_array

_PART = st.text(
    st.characters(codec="utf-8", exclude_characters="/.\0", exclude_categories=["Cc"]),
    min_size=1,
    max_size=90,
)
_KEYS = st.lists(
    st.tuples(_PART.filter(lambda part: not part.startswith("__")), _PART).map("/".join),
    min_size=1,
    max_size=9,
    unique=True,
)
_INT64 = st.integers(-(2**63), 2**63 - 1)
_VALUES = {
    "txt": st.text(max_size=600).map(str.encode),
    "cls": _INT64,
    "bin": st.binary(max_size=1100),
    "left.jpg": st.binary(max_size=20),
    "npy": st.lists(st.integers(-9, 9), max_size=4),
}
_FORMATS = st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])


@st.composite
def sample_lists(draw: Any) -> list[tuple[str, dict[str, Any]]]:
    """Draw samples in which any member but one may be missing."""
    samples = []
    for key in draw(_KEYS):
        names = draw(st.lists(st.sampled_from(sorted(_VALUES)), min_size=1, unique=True))
        samples.append((key, {name: draw(_VALUES[name]) for name in names}))
    return samples


def as_member(name: str, value: Any) -> bytes:
    """Return the content of the file of a value."""
    if name == "npy":
        return save_array(np.array(value, np.int64))
    return str(value).encode() if name == "cls" else value


@settings(max_examples=60)
@given(sample_lists(), _FORMATS, st.booleans(), st.integers(0, 9))
def test_samples_in_archives_are_the_same_rows(samples, form, is_packed, cut):
    parts = [part for part in (samples[:cut], samples[cut:]) if part]
    with tempfile.TemporaryDirectory() as name:
        paths = []
        for number, part in enumerate(parts):
            members = [
                (f"{key}.{each}", as_member(each, value)) for key, row in part for each, value in row.items()
            ]
            paths.append(Path(name) / f"{number}.tar")
            data = pack(members, form)
            paths[-1].write_bytes(gzip.compress(data) if is_packed else data)
        blocks = list(open_source(paths, TextFiles()).blocks())
    found = {
        column: [
            cell
            for block in blocks
            for cell in (
                block.columns[column].tolist()
                if isinstance(block.columns[column], np.ndarray)
                else block.columns[column].to_pylist()
            )
        ]
        for column in blocks[0].columns
    }
    assert found.pop("__key__") == [key for key, _ in samples]
    assert set(found) == {each for _, row in samples for each in row}
    for column, cells in found.items():
        expected = [row.get(column) for _, row in samples]
        assert [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in cells] == expected
