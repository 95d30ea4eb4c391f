"""What the tests of sources share."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.settings.groups import TextFiles
from penstock.source.opening import open_source


def values(column) -> list:
    return column.to_pylist() if isinstance(column, pa.Array) else list(column)


@pytest.fixture
def read():
    """Open something and return its rows by column, after checks that hold for every source."""

    def read(given, **options):
        source = open_source(given, TextFiles(**options))
        blocks = list(source.blocks())
        row = 0
        for block in blocks:
            assert block.first_row == row
            assert block.num_rows > 0
            assert list(block.columns) == list(blocks[0].columns)
            for column in block.columns.values():
                assert isinstance(column, (pa.Array, np.ndarray))
                assert len(column) == block.num_rows
            row += block.num_rows
        assert source.num_rows in (None, row)
        if source.num_bytes is not None:
            # An Arrow stream ends with a mark of 8 bytes that no batch is read with.
            assert 0 <= source.num_bytes - sum(block.num_bytes for block in blocks) <= 8
        if source.is_repeatable:
            assert [block.num_rows for block in source.blocks()] == [block.num_rows for block in blocks]
        assert sum(entry["rows"] for entry in source.provenance()) == row
        return {
            name: [value for block in blocks for value in values(block.columns[name])]
            for name in blocks[0].columns
        }

    return read
