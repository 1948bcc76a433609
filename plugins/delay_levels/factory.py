"""Pure core: makes the levels of a partition, or gives back those that were kept.

They are imported when some are made: most brokers have no delayed records, and most of these the wheel.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .level_queue import LevelQueue
    from .rounding import Rounding


class LevelsFactory:
    """A `DelayQueueFactory`."""

    def new(self) -> LevelQueue:
        """See `DelayQueueFactory.new`."""
        from .level_queue import LevelQueue

        return LevelQueue()

    def rounding(self, settings: Mapping[str, object]) -> Rounding:
        """See `DelayQueueFactory.rounding`: a delay is rounded up to its level."""
        from .rounding import Rounding

        return Rounding.of(settings)

    def restore(self, data: bytes) -> LevelQueue:
        """See `DelayQueueFactory.restore`.

        Raises:
            ValueError: It is damaged, or of another version.
        """
        from .level_queue import LevelQueue

        try:
            return LevelQueue.decode(data)
        except (struct.error, zlib.error) as error:
            raise ValueError(f"the checkpoint of a queue of levels breaks off: {error}") from error
