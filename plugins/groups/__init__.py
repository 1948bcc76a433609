"""Consumer groups: who reads what, and how far they got. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from odradek.kernel.api import BrokerHandle, Coordinator


@hookimpl
def odradek_coordinators(broker: BrokerHandle) -> Sequence[Coordinator[Any, Any]]:
    """Offer the group coordinator."""
    from .coordinator import GroupCoordinator

    return (GroupCoordinator(broker),)
