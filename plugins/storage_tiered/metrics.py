"""Shell: what tiering looks like from outside; read when somebody asks for the metrics.

*Source:* Kafka's names for tiered storage (KIP-405, KIP-963) wherever it has one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .log import TieredPartitionLog
    from .tier import TieredStorage

_TOPICS: Final = "kafka_server_brokertopicmetrics_"
_LABELS: Final = ("topic",)


def tier_metrics(tier: TieredStorage) -> Sequence[Metric]:
    """Return the metrics of a tier."""

    def by_topic(value: Callable[[TieredPartitionLog], int]) -> Callable[[], Mapping[tuple[str, ...], float]]:
        def read() -> Mapping[tuple[str, ...], float]:
            sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
            for tiered in tier.logs:
                sums[(tiered.partition.topic,)] += value(tiered)
            return sums

        return read

    sent, got = tier.passes.counters, tier.cold_reads.counters
    counters: Mapping[str, tuple[str, Callable[[], int]]] = {
        f"{_TOPICS}remotecopybytes_total": ("Bytes of segments sent to the store.", lambda: sent.bytes_sent),
        f"{_TOPICS}remotecopyrequests_total": ("Segments sent to the store.", lambda: sent.segments_sent),
        f"{_TOPICS}remotecopyerrors_total": ("Visits to logs that failed.", lambda: sent.failures),
        f"{_TOPICS}remotefetchbytes_total": ("Bytes of records got from the store.", lambda: got.bytes_got),
        f"{_TOPICS}remotefetchrequests_total": ("Reads from the store.", lambda: got.requests),
        f"{_TOPICS}remotefetcherrors_total": ("Reads from the store that failed.", lambda: got.failures),
        f"{_TOPICS}remotedeleterequests_total": ("Segments that expired in the store.", lambda: sent.segments_expired),
        "odradek_tiered_cache_hits_total": ("Cold reads that found their records at hand.", lambda: got.hits),
        "odradek_tiered_local_segments_removed_total": (
            "Segments that left the local disk for the store.",
            lambda: sent.segments_removed_locally,
        ),
        "odradek_tiered_garbage_objects_total": ("Objects that nobody named, removed.", lambda: tier.garbage_objects),
    }
    gauges: Mapping[str, tuple[str, Callable[[TieredPartitionLog], int]]] = {
        f"{_TOPICS}remotecopylagbytes": ("Bytes of closed segments not in the store yet.", lambda log: log.lag_bytes),
        f"{_TOPICS}remotecopylagsegments": ("Closed segments not in the store yet.", lambda log: log.lag_segments),
        f"{_TOPICS}remotelogsizebytes": (
            "Bytes of records in the store.",
            lambda log: log.manifest.size_bytes if log.manifest is not None else 0,
        ),
    }
    return (
        *(Metric(name, text, "counter", _alone(value)) for name, (text, value) in counters.items()),
        *(Metric(name, text, "gauge", by_topic(value), _LABELS) for name, (text, value) in gauges.items()),
        Metric(
            "odradek_tiered_store_away",
            "1 while the store fails, so that segments stay on the local disk.",
            "gauge",
            _alone(lambda: int(tier.is_away)),
        ),
        Metric(
            "odradek_tiered_cache_bytes",
            "Bytes of records from the store that are at hand.",
            "gauge",
            _alone(lambda: tier.cold_reads.cached_bytes),
        ),
    )


def _alone(value: Callable[[], int]) -> Callable[[], Mapping[tuple[str, ...], float]]:
    return lambda: {(): value()}
