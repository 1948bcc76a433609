"""Storage without a disk, for tests and as the smallest example. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .engine import MemoryEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import StorageFactory


@hookimpl
def odradek_storages() -> Mapping[str, StorageFactory]:
    """Offer `odradek.storage=memory`."""
    return {"memory": MemoryEngine}
