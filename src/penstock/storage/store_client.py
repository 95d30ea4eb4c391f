"""The module that sends requests to object stores, loaded when it is needed, because it needs `obstore`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import importing
from penstock.storage.store_path import StorePath

if TYPE_CHECKING:
    from types import ModuleType


def load_store(path: StorePath) -> ModuleType:
    """Return `storage.object_store`."""
    with importing(f"{path.scheme}://", "cloud"):
        from penstock.storage import object_store  # noqa: PLC0415 - obstore, which only stores need

    return object_store
