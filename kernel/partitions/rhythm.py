"""Pure core: when that is done which a quiet broker does now and then: all of it together.

That a process wakes up costs more than most of what it does then. So what may be done a little earlier has the same
beat as everything of its period, here and in the other brokers of the machine: followers' fetches that found nothing
are answered together, and meet the elections' ticks and the regular upkeep.

.. versionadded:: 0.1
"""

from __future__ import annotations


def next_beat_ms(now_ms: int, period_ms: int) -> int:
    """Return the first time after now that is a multiple of the period: at most one period from now."""
    return (now_ms // period_ms + 1) * period_ms
