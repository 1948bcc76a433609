"""Shell: what can be asked of cleanup, under the names that Kafka's metrics commonly get in Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.services import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .compactor import Compactor
    from .retention import Retention

_MANAGER = "kafka_log_logcleanermanager_"
_CLEANER = "kafka_log_logcleaner_"


def cleanup_metrics(retention: Retention, compactor: Compactor) -> list[tuple[str, Metric]]:
    """Return the metrics of cleanup, each with the name of who offers it."""
    counted = compactor.statistics
    rows: list[tuple[str, str, str, Callable[[], float]]] = [
        (
            f"{_MANAGER}uncleanable_partitions_count",
            "gauge",
            "Partitions that cannot be compacted, and grow.",
            lambda: len(compactor.uncleanable),
        ),
        (
            f"{_MANAGER}max_dirty_percent",
            "gauge",
            "The dirty part of the log that waits most for compaction.",
            lambda: counted.dirty_percent_max,
        ),
        (
            f"{_MANAGER}time_since_last_run_ms",
            "gauge",
            "Milliseconds since all logs were last looked at for compaction.",
            compactor.silence_ms,
        ),
        (
            f"{_CLEANER}max_clean_time_secs",
            "gauge",
            "The longest compaction since the start, in seconds.",
            lambda: counted.duration_ms_max / 1000,
        ),
        (
            f"{_CLEANER}cleaner_recopy_percent",
            "gauge",
            "What compaction wrote, of what it read.",
            lambda: 100 * counted.bytes_written / max(counted.bytes_read, 1),
        ),
        (
            "odradek_cleaner_worker_deaths_total",
            "counter",
            "Compaction workers that died.",
            lambda: counted.deaths_count,
        ),
        (
            "odradek_cleaner_compactions_total",
            "counter",
            "Compactions that were finished.",
            lambda: counted.compactions_count,
        ),
        (
            "odradek_retention_deleted_segments_total",
            "counter",
            "Segments that were deleted by time or size.",
            lambda: retention.deleted_segments,
        ),
        (
            "odradek_cleanup_topics_without_policy",
            "gauge",
            "Topics that name a cleanup policy which no active plugin offers: what it would remove stays.",
            lambda: retention.topics_without_policy,
        ),
    ]
    return [("cleanup", Metric(name, text, kind, _unlabelled(read))) for name, kind, text, read in rows]


def _unlabelled(read: Callable[[], float]) -> Callable[[], Mapping[tuple[str, ...], float]]:
    return lambda: {(): read()}
