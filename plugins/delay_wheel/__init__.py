"""Delayed records: due to the millisecond, any horizon, twenty bytes each. Hook implementations only; `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .factory import WheelFactory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import DelayQueueFactory


@hookimpl
def odradek_delay_queues() -> Mapping[str, DelayQueueFactory]:
    """Offer `odradek.delay.queue=wheel`."""
    return {"wheel": WheelFactory()}
