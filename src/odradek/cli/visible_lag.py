"""Shell: how many records a group will be shown of a topic whose records may wait, or died: its lag counts more.

The log itself is read for that, from what is committed to its end: which offsets are hidden is known nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.client.admin_values import ConfigSource, ResourceType
from odradek.client.errors import BrokerError
from odradek.kernel.config.delay_checks import KEPT_KEYS

from .log_reads import read_log
from .visible_records import VisibleRecords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.types import IsolationLevel

    from .cluster_calls import ClusterCalls
    from .group_offsets import PartitionProgress

VISIBLE_BYTES_MAX: Final = 64 << 20
"""So much of a partition is read; of a group that is further behind only the lag is told."""


async def with_visible_lag(
    calls: ClusterCalls, rows: Sequence[PartitionProgress], isolation: IsolationLevel
) -> list[PartitionProgress]:
    """Count what consumers will be shown, of topics some of whose offsets are hidden."""
    hiding = {topic for topic in {row.partition.topic for row in rows if row.lag} if await _hides(calls, topic)}
    return [await _counted(calls, row, isolation) if row.lag and row.partition.topic in hiding else row for row in rows]


async def _hides(calls: ClusterCalls, topic: str) -> bool:
    """Return whether a topic has offsets that no consumer is shown; not where the user may not ask."""
    try:
        configs = await calls.admin.describe_configs(ResourceType.TOPIC, topic, keys=KEPT_KEYS)
    except BrokerError:
        return False
    # A topic for which one was set has hidden offsets, also where it is false by now. Kafka knows none of them.
    return any(found.value == "true" or found.source is ConfigSource.TOPIC for found in configs.values())


async def _counted(calls: ClusterCalls, row: PartitionProgress, isolation: IsolationLevel) -> PartitionProgress:
    assert row.committed is not None
    assert row.end is not None
    visible = VisibleRecords(row.committed, row.end)
    try:
        is_all = await read_log(
            calls, row.partition, visible, row.end, isolation=isolation, bytes_max=VISIBLE_BYTES_MAX
        )
    except BrokerError:  # of whoever may see groups, and not their topics' records
        return row
    return attrs.evolve(row, visible_lag=visible.count) if is_all else row
