"""What of a log may go, as in Kafka: by age, by size, by key. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .compact import CompactPolicy
from .delete import DeletePolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import CleanupPolicy


@hookimpl
def odradek_cleanup_policies() -> Mapping[str, CleanupPolicy]:
    """Offer them under Kafka's names."""
    return {"delete": DeletePolicy(), "compact": CompactPolicy()}
