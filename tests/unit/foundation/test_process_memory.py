"""How much memory there is, on the machine and in a container."""

import os

from penstock.foundation import process
from penstock.foundation.process import usable_memory

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_memory_is_the_limit_of_the_container_where_there_is_one(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(process, "_LIMITS", (str(tmp_path / "none"), str(limit)))
    assert usable_memory() == MACHINE
    for text, expected in (("max\n", MACHINE), ("1048576\n", 1 << 20), (f"{MACHINE * 2}", MACHINE)):
        limit.write_text(text)
        assert usable_memory() == expected
