"""Rows that a worker rejects because it does not see a file; no cluster is started."""

import socket
from types import SimpleNamespace

import pytest

from penstock.distributed.ray_engine import RayEngine
from penstock.encode.plain import CellFault
from penstock.encode.raw_rows import RawPlan, RawRows
from penstock.errors import PathError
from penstock.fields import Image, Number
from penstock.plan.plan import ColumnPlan
from penstock.settings.groups import StoredImages, TextFiles
from penstock.source.block import Block

COLUMNS = (ColumnPlan("photo", "photo", Image(), "path"), ColumnPlan("age", "age", Number("int64")))
PLAN = RawPlan(COLUMNS, (), None, StoredImages(), TextFiles())
ROWS = RawRows(Block(0, 3, {}, path="pets.csv"), PLAN)


def check(faults, faults_here, host="worker-7"):
    engine = object.__new__(RayEngine)
    engine._work = lambda block: SimpleNamespace(faults=faults_here)
    engine._check_paths(worked := SimpleNamespace(block=ROWS, faults=faults), host)
    return worked


MISSING = CellFault(1, "photo", "an image file", "no such file")


def test_file_that_only_the_worker_does_not_see_is_an_error_of_the_cluster():
    with pytest.raises(PathError) as caught:
        check([MISSING], [])
    assert (caught.value.field, caught.value.got) == ("photo", "no such file")
    assert "worker-7" in caught.value.what


@pytest.mark.parametrize(
    ("faults", "faults_here", "host"),
    [
        ([MISSING], [MISSING], "worker-7"),  # the file is missing everywhere
        ([MISSING], [], socket.gethostname()),
        ([CellFault(1, "age", "a number", "'x'")], [], "worker-7"),
        ([], [], "worker-7"),
    ],
)
def test_other_rejected_rows_are_left_to_on_error(faults, faults_here, host):
    assert check(faults, faults_here, host).faults == faults
