"""The metrics of groups say what a shard holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from odradek.kernel.api import CoordinatorRuntime, ErrorCode, LogOffsets
from odradek.plugins.groups.shard import GroupShard

from .consumer.driven_consumers import DrivenConsumers
from .driven import DrivenGroups

PREFIX = "kafka_server_group_coordinator_metrics_"
MANAGER = "kafka_coordinator_group_groupmetadatamanager_"


class OneShard:
    """A runtime with one shard, as far as metrics ask."""

    def __init__(self, driven: DrivenGroups) -> None:
        self._driven = driven

    def shards(self) -> Iterator[tuple[int, GroupShard]]:
        yield 0, self._driven.shard


def metrics_of(driven: DrivenGroups) -> dict[str, dict[tuple[str, ...], float]]:
    runtime = cast("CoordinatorRuntime[GroupShard]", OneShard(driven))
    return {metric.name: dict(metric.read()) for metric in driven.coordinator.metrics(runtime)}


def stable_group(driven: DrivenGroups, name: str, **more: Any) -> None:
    joined = driven.join(name, version=3, **more)
    driven.harness.advance(0)
    driven.learn(name, joined.response)

    assert driven.sync(name, 1, {name: b"all"}, **{key: more[key] for key in more if key == "group"}).is_done


def test_groups_are_counted_by_state() -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
    before = metrics_of(driven)
    stable_group(driven, "a")
    driven.join("b", version=3, group="other")
    driven.commit({"t": {0: 1}}, group="alone")
    after = metrics_of(driven)

    assert before[MANAGER + "numgroups"] == {(): 0}
    assert after[MANAGER + "numgroups"] == {(): 3}
    assert after[PREFIX + "group_count"] == {("classic",): 3}
    assert [{(): count} for count in (1, 1, 0, 1, 0)] == [
        after[MANAGER + f"numgroups{state}"]
        for state in ("empty", "preparingrebalance", "completingrebalance", "stable", "dead")
    ]
    assert after[PREFIX + "group_completed_rebalance_count"] == {(): 1}


def test_offsets_are_counted_as_they_come_and_go() -> None:
    driven = DrivenGroups({"offsets.retention.minutes": 60})
    driven.commit({"t": {0: 1, 1: 1}, "u": {0: 1}})
    driven.commit({"t": {0: 2}})
    driven.harness.run(lambda shard, _: shard.offsets.delete("g", [("u", [0])]))
    counted = metrics_of(driven)

    assert counted[PREFIX + "offset_commit_count"] == {(): 4}
    assert counted[PREFIX + "offset_deletion_count"] == {(): 1}
    assert counted[MANAGER + "numoffsets"] == {(): 2}

    driven.harness.advance(3_600_000)
    counted = metrics_of(driven)

    assert counted[PREFIX + "offset_expiration_count"] == {(): 2}
    assert counted[MANAGER + "numoffsets"] == {(): 0}


def test_groups_of_the_consumer_protocol_are_counted_by_state_with_their_rebalances() -> None:
    driven = DrivenConsumers(topics={"t": 2})
    before = metrics_of(driven)
    driven.member_ids |= {"a": "a", "b": "b"}
    epoch = driven.enter("a", "t").response.member_epoch
    stable = metrics_of(driven)
    driven.enter("b", "t")
    rebalancing = metrics_of(driven)
    driven.beat("a", epoch)
    driven.beat("a", -1)
    driven.beat("b", -1)
    empty = metrics_of(driven)

    states = [each[PREFIX + "consumer_group_count"] for each in (before, stable, rebalancing, empty)]
    assert states == [{}, {("stable",): 1}, {("reconciling",): 1}, {("empty",): 1}]
    rebalances = [each[PREFIX + "consumer_group_rebalance_count"][()] for each in (before, stable, rebalancing, empty)]
    assert rebalances == [0, 1, 2, 4]
    assert stable[PREFIX + "group_count"] == {("consumer",): 1}


def test_every_metric_of_groups_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text()
    # A name that begins like the one before stands there by its end.
    names = {name: "_" + name.removeprefix(PREFIX).removeprefix(MANAGER) for name in metrics_of(DrivenGroups())}

    assert [name for name, end in names.items() if f"`{name}`" not in page and f"`{end}`" not in page] == []


def test_lag_is_what_lies_between_the_commit_and_the_high_watermark() -> None:
    driven = DrivenGroups()
    driven.broker.ends = {("t", 0): LogOffsets(0, 90, 100, 110), ("t", 1): LogOffsets(0, 5, 5, 5)}
    driven.commit({"t": {0: 30, 1: 7, 2: 1}, "u": {0: 3}})
    driven.commit({"t": {0: -1}}, group="unset")

    assert metrics_of(driven)["odradek_group_lag"] == {("g", "t", "0"): 70, ("g", "t", "1"): 0}


def test_no_offset_is_committed_when_the_metadata_is_too_long() -> None:
    driven = DrivenGroups()
    waiter = driven.commit({"t": {0: 1}}, metadata="x" * 4097)

    assert waiter.response == [[ErrorCode.OFFSET_METADATA_TOO_LARGE]]
    assert metrics_of(driven)[PREFIX + "offset_commit_count"] == {(): 0}


def test_lags_are_reckoned_one_by_one_while_groups_come_and_go() -> None:
    driven = DrivenGroups()
    for number in range(10):
        driven.commit({"t": {0: number}}, group=f"g{number}")
    runtime = cast("CoordinatorRuntime[GroupShard]", OneShard(driven))
    (lag,) = (one for one in driven.coordinator.metrics(runtime) if one.name == "odradek_group_lag")
    values = lag.read()
    asked: list[str] = []

    def ask(topic: str, partition: int) -> LogOffsets:
        asked.append(topic)
        return LogOffsets(0, 9, 9, 9)

    driven.broker.offsets = ask  # type: ignore[method-assign] # a test's own
    items = iter(values.items())
    first = next(items)
    driven.harness.run(lambda shard, _now_ms: shard.delete_groups(["g1", "g2"]))
    driven.commit({"t": {0: 5}}, group="late")

    assert (*first[0], first[1]) == ("g0", "t", "0", 9)
    assert len(asked) == 1
    assert [labels[0] for labels, _lag in items] == [f"g{number}" for number in range(3, 10)]
    assert values["late", "t", "0"] == 4
    assert len(values) == len(list(values)) == 9
