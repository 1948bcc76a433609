"""Shell: what is measured of every coordinator alike."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ..contracts.services import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .hosted_shard import HostedShard
    from .runtime import Runtime

BEANS: Final = {0: "group", 1: "transaction", 2: "share"}
"""By key type, how Kafka's `...-coordinator-metrics` begin."""


def runtime_metrics(runtime: Runtime) -> Iterator[Metric]:
    """Yield a coordinator's metrics that Kafka has too, under Kafka's names."""
    coordinator, counters = runtime.coordinator, runtime.counters
    prefix = f"kafka_server_{BEANS.get(coordinator.key_type, coordinator.name)}_coordinator_metrics"

    def partitions() -> Mapping[tuple[str, ...], float]:
        return {(state,): count for state, count in runtime.states().items()}

    yield Metric(
        f"{prefix}_num_partitions",
        f"Partitions of {coordinator.topic} that this broker leads, by the state of their coordinator.",
        "gauge",
        partitions,
        ("state",),
    )
    yield Metric(
        f"{prefix}_partition_load_time_max",
        "The longest that loading a partition took since the start, in milliseconds.",
        "gauge",
        lambda: {(): counters.load_time_ms_max},
    )
    yield Metric(
        f"{prefix}_partition_load_time_avg",
        "How long loading a partition took on average since the start, in milliseconds.",
        "gauge",
        lambda: {(): counters.load_time_ms_sum / max(counters.loaded_count, 1)},
    )


def joint_metrics(runtimes: Iterable[Runtime]) -> Iterator[Metric]:
    """Yield what is ours, with the coordinator's name as label."""
    by_name = {runtime.coordinator.name: runtime for runtime in runtimes}

    def read(value: Callable[[Runtime], float]) -> Mapping[tuple[str, ...], float]:
        return {(name,): value(runtime) for name, runtime in by_name.items()}

    for name, help_text, kind, value in _JOINT:
        yield Metric(name, help_text, kind, partial(read, value), ("coordinator",))


def _sum(count: Callable[[HostedShard], int], runtime: Runtime) -> int:
    return sum(count(place.hosted) for place in runtime.places.values() if place.hosted is not None)


_JOINT: Final[tuple[tuple[str, str, str, Callable[[Runtime], float]], ...]] = (
    (
        "odradek_coordinator_skipped_records_total",
        "Records and batches of a coordinator's topic that could not be understood when it was loaded.",
        "counter",
        lambda runtime: runtime.counters.skipped_records,
    ),
    (
        "odradek_coordinator_failures_total",
        "How often a partition's coordinator could not be loaded, or stopped because a write failed.",
        "counter",
        lambda runtime: runtime.counters.failed_count,
    ),
    (
        "odradek_coordinator_waiting_requests",
        "Requests whose answers wait for records to be committed.",
        "gauge",
        partial(_sum, lambda hosted: hosted.waiting_count),
    ),
    (
        "odradek_coordinator_parked_requests",
        "Requests that wait for a later one, such as members that join a group.",
        "gauge",
        partial(_sum, lambda hosted: hosted.parked_count),
    ),
)
