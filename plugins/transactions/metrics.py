"""Shell: what transactions look like from outside: states, ends, markers that wait.

*Source:* Kafka's names where it has one: `TransactionMarkerChannelManager` counts what waits for a leader.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.kernel.api import Metric

from .states import PREVIOUS_STATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import CoordinatorRuntime

    from .requests import TransactionCounters
    from .shard import TransactionShard

_MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"


def transaction_metrics(
    runtime: CoordinatorRuntime[TransactionShard], counters: TransactionCounters
) -> Sequence[Metric]:
    """Return the metrics of the transaction coordinator."""

    def states() -> Mapping[tuple[str, ...], float]:
        found = Counter(metadata.state for _, shard in runtime.shards() for metadata in shard.ids.values())
        return {(state.text,): found[state] for state in PREVIOUS_STATES}

    def ends() -> Mapping[tuple[str, ...], float]:
        return {
            ("commit",): counters.commits_count,
            ("abort",): counters.aborts_count,
            ("timeout",): counters.timeouts_count,
            ("fenced",): counters.fences_count,
        }

    return (
        Metric("odradek_transactional_ids", "Transactional ids by state.", "gauge", states, ("state",)),
        Metric("odradek_transaction_ends_total", "Transactions that ended, by how.", "counter", ends, ("how",)),
        Metric(
            "odradek_transaction_markers_missing",
            "Markers of prepared ends that are not known to be written.",
            "gauge",
            lambda: {(): sum(shard.missing_markers_count for _, shard in runtime.shards())},
        ),
        Metric(
            f"{_MARKERS}unknowndestinationqueuesize",
            "Markers that a partition could not take, and that wait for another try.",
            "gauge",
            lambda: {(): sum(shard.waiting_markers_count for _, shard in runtime.shards())},
        ),
        Metric(
            "odradek_transaction_marker_resends_total",
            "Sendings of markers beyond the first of each transaction.",
            "counter",
            lambda: {(): counters.resends_count},
        ),
        Metric(
            "odradek_transactional_ids_expired_total",
            "Transactional ids that were forgotten because nobody used them.",
            "counter",
            lambda: {(): counters.expired_count},
        ),
    )
