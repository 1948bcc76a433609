"""Pure core: makes a waiting index for a partition, or gives back one that was kept.

The index is imported when one is made: most brokers have no delayed records.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .waiting_index import WaitingIndex


class WheelFactory:
    """A `DelayQueueFactory`."""

    def new(self) -> WaitingIndex:
        """See `DelayQueueFactory.new`."""
        from .waiting_index import WaitingIndex

        return WaitingIndex()

    def rounding(self, settings: Mapping[str, object]) -> None:
        """Round nothing: what is due is due to the millisecond."""

    def restore(self, data: bytes) -> WaitingIndex:
        """See `DelayQueueFactory.restore`.

        Raises:
            ValueError: It is damaged, or of another version.
        """
        from .waiting_index import WaitingIndex

        try:
            return WaitingIndex.decode(data)
        except struct.error as error:
            raise ValueError(f"the checkpoint of a waiting index breaks off: {error}") from error
