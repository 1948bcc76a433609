"""Pure core: the metrics of groups, under Kafka's names where Kafka has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Mapping
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import Metric

from .classic.states import ClassicState
from .group_type import GroupType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.kernel.api import BrokerHandle, CoordinatorRuntime

    from .counters import GroupCounters
    from .group import Group
    from .shard import GroupShard

    Values = Mapping[tuple[str, ...], float]

_COUNTERS: Final = (
    ("offset_commit_count", "offset_commits", "Offsets that were committed."),
    ("offset_expiration_count", "offset_expirations", "Offsets that were removed because they were old."),
    ("offset_deletion_count", "offset_deletions", "Offsets that were removed because somebody asked for it."),
    ("group_completed_rebalance_count", "classic_rebalances", "Generations of classic groups that were assigned."),
    ("consumer_group_rebalance_count", "consumer_rebalances", "Epochs of groups of the consumer protocol."),
)
"""(Kafka's name within `group-coordinator-metrics`, attribute of the counters, help)."""

_PREFIX: Final = "kafka_server_group_coordinator_metrics_"
_MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager_"


def group_metrics(
    counters: GroupCounters, runtime: CoordinatorRuntime[GroupShard], broker: BrokerHandle
) -> list[Metric]:
    """Return the metrics of a broker's groups."""

    def groups() -> Iterator[Group]:
        for _, shard in runtime.shards():
            yield from shard.context.groups.values()

    def counter(attribute: str) -> Callable[[], Values]:
        return lambda: {(): getattr(counters, attribute)}

    metrics = [Metric(_PREFIX + name, text, "counter", counter(attribute)) for name, attribute, text in _COUNTERS]
    metrics += (
        Metric(
            _PREFIX + "group_count",
            "Groups by protocol.",
            "gauge",
            lambda: _count((group.type.value,) for group in groups()),
            ("protocol",),
        ),
        Metric(
            _PREFIX + "consumer_group_count",
            "Groups of the consumer protocol by state.",
            "gauge",
            lambda: _count((group.state_name.lower(),) for group in groups() if group.type is GroupType.CONSUMER),
            ("state",),
        ),
        Metric(
            _MANAGER + "numoffsets",
            "Offsets that are committed.",
            "gauge",
            lambda: {(): sum(shard.offsets.count for _, shard in runtime.shards())},
        ),
        Metric(
            "odradek_group_lag",
            "Records of a partition that a group has not committed yet, up to the high watermark.",
            "gauge",
            lambda: Lags(runtime, broker),
            ("group", "topic", "partition"),
        ),
        Metric(_MANAGER + "numgroups", "Classic groups.", "gauge", lambda: {(): _classic_count(groups())}),
    )
    metrics += (_state_metric(state, groups) for state in ClassicState)
    return metrics


def _state_metric(state: ClassicState, groups: Callable[[], Iterator[Group]]) -> Metric:
    return Metric(
        f"{_MANAGER}numgroups{state.value.lower()}",
        f"Classic groups that are {state.value}.",
        "gauge",
        lambda: {(): sum(group.state_name == state.value for group in groups() if group.type is GroupType.CLASSIC)},
    )


class Lags(Mapping[tuple[str, ...], float]):
    """The lag of every committed offset whose partition is on this broker, by group, topic and partition.

    There may be a million: each is reckoned when `items` comes to it, so that whoever goes through them may let others
    have their turns in between. Groups that come or go meanwhile are seen or not.
    """

    def __init__(self, runtime: CoordinatorRuntime[GroupShard], broker: BrokerHandle) -> None:
        """Reckon nothing yet."""
        self._runtime = runtime
        self._broker = broker

    def items(self) -> ItemsView[tuple[str, ...], float]:
        """Return labels and lags, to be gone through once."""
        return _LagItems(self)

    def each(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Iterate over labels and lags."""
        for _, shard in tuple(self._runtime.shards()):
            for group_id, topic, partition, value in shard.offsets.committed():
                offsets = self._broker.offsets(topic, partition)
                if offsets is not None and value.offset >= 0:
                    yield (group_id, topic, str(partition)), max(0, offsets.high_watermark - value.offset)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (labels for labels, _lag in self.each())

    def __getitem__(self, labels: tuple[str, ...]) -> float:
        return dict(self.each())[labels]

    def __len__(self) -> int:
        return sum(1 for _ in self.each())


class _LagItems(ItemsView[tuple[str, ...], float]):
    _mapping: Lags

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], float]]:
        return self._mapping.each()


def _classic_count(groups: Iterator[Group]) -> int:
    return sum(group.type is GroupType.CLASSIC for group in groups)


def _count(labels: Iterator[tuple[str, ...]]) -> Values:
    return dict(Counter(labels))
