"""Storage in Kafka's segment files: the default. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .engine import SegmentEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import StorageFactory


@hookimpl
def odradek_storages() -> Mapping[str, StorageFactory]:
    """Offer `odradek.storage=segment`."""
    return {"segment": SegmentEngine}
