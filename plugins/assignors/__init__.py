"""Kafka's assignors: who of a group reads which partitions. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import Assignor


@hookimpl
def odradek_assignors() -> Mapping[str, Assignor]:
    """Offer them under Kafka's names."""
    from .cooperative import CooperativeStickyAssignor
    from .range_assignor import RangeAssignor
    from .roundrobin import RoundRobinAssignor
    from .sticky import StickyAssignor
    from .uniform import UniformAssignor

    return {
        "range": RangeAssignor(),
        "roundrobin": RoundRobinAssignor(),
        "sticky": StickyAssignor(),
        "cooperative-sticky": CooperativeStickyAssignor(),
        "uniform": UniformAssignor(),
    }
