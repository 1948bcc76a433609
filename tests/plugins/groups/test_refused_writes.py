"""What an operation decided whose records were refused was never decided: too few in-sync replicas, or too large."""

from __future__ import annotations

import pytest

from odradek.kernel.api import ErrorCode, KafkaError, ProducerIdentity
from odradek.kernel.wire.messages.consumer_protocol import encode_assignment, new_assignment
from odradek.plugins.groups.classic.states import STABLE

from .consumer.driven_consumers import DrivenConsumers
from .driven import GROUP, DrivenGroups, code_of

REFUSAL = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def joined(driven: DrivenGroups, *names: str) -> None:
    """Have members join a generation."""
    waiters = {name: driven.join(name, version=3) for name in names}
    driven.harness.advance(0)
    for name, waiter in waiters.items():
        driven.learn(name, waiter.response)


def test_an_assignment_that_was_refused_is_given_to_nobody() -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
    joined(driven, "a", "b")
    group = driven.shard.classic.get(GROUP)
    assert group is not None
    generation = group.generation_id
    waits = driven.sync("b", generation)
    driven.harness.refusal = REFUSAL
    refused = driven.sync("a", generation, {"a": b"1", "b": b"2"})

    assert [waits.error_code, refused.error_code] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert group.state.name != STABLE.name

    driven.harness.refusal = None
    again = driven.sync("b", generation)
    assert not again.is_done
    driven.sync("a", generation, {"a": b"2", "b": b"1"})

    assert again.response.assignment == b"1"
    assert group.state is STABLE


def test_after_a_refused_assignment_a_generation_is_not_given_twice() -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
    joined(driven, "a", "b")
    driven.harness.refusal = REFUSAL
    driven.sync("a", 1, {"a": b"1", "b": b"2"})
    driven.harness.refusal = None
    kept = driven.sync("b", 1)
    driven.harness.reload()

    assert kept.error_code is ErrorCode.NOT_COORDINATOR  # it waited, and was given nothing
    assert code_of(driven.sync("b", 1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_dies_after_a_refused_assignment_is_not_waited_for() -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
    joined(driven, "a", "b")
    driven.sync("b", 1)
    driven.harness.refusal = REFUSAL
    driven.sync("a", 1, {"a": b"1", "b": b"2"})
    driven.harness.refusal = None
    waits = driven.sync("b", 1)
    driven.harness.advance(11_000)

    assert code_of(waits) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("producer", [None, ProducerIdentity(7, 0)])
def test_an_offset_that_was_refused_is_not_committed(producer: ProducerIdentity | None) -> None:
    driven = DrivenGroups()
    driven.commit({"t": {0: 1}})
    driven.harness.refusal = REFUSAL
    waiter = driven.commit({"t": {0: 2}}) if producer is None else driven.commit({"t": {0: 2}}, producer=producer)
    driven.harness.refusal = None
    if producer is not None:
        driven.harness.end_transaction(producer, is_commit=True)

    assert waiter.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driven.fetch() == {"t": {0: 1}}
    assert driven.fetch(requires_stable=True) == {"t": {0: 1}}


def test_partitions_that_came_while_writes_were_refused_are_given_later() -> None:
    driven = DrivenConsumers(topics={"t": 2})
    driven.member_ids["a"] = "a"
    epoch = driven.enter("a", "t").response.member_epoch
    driven.create_topic("t", 4)
    driven.harness.refusal = REFUSAL
    assert driven.beat("a", epoch).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driven.harness.refusal = None
    told = driven.beat("a", epoch).response

    assert driven.names(told.assignment.topic_partitions) == {"t": [0, 1, 2, 3]}


def test_a_member_whose_arrival_was_refused_is_no_member() -> None:
    driven = DrivenConsumers(topics={"t": 2})
    driven.member_ids["a"] = "a"
    driven.harness.refusal = REFUSAL
    driven.enter("a", "t")
    driven.harness.refusal = None
    driven.harness.advance(60_000)

    assert driven.beat("a", 1).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert driven.enter("a", "t").error_code is ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 5])
def test_a_group_whose_beginning_was_refused_is_not_there(version: int) -> None:
    driven = DrivenGroups()
    driven.harness.refusal = REFUSAL
    for _ in range(3):
        assert driven.join("a", version=version).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driven.shard.context.groups == {}

    driven.harness.refusal = None
    driven.harness.advance(600_000)  # of whoever was refused nothing comes any more

    assert driven.shard.context.groups == {}
    assert driven.harness.records == []


@pytest.mark.parametrize("version", [3, 5])
def test_who_comes_after_a_refused_member_is_alone_and_leads(version: int) -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 3_000})
    driven.harness.refusal = REFUSAL
    driven.join("a", version=version)
    driven.harness.refusal = None
    waits = driven.join("b", version=version)
    if waits.is_done:  # MEMBER_ID_REQUIRED: it comes back with its id
        driven.learn("b", waits.response)
        waits = driven.join("b", version=version)
    driven.harness.advance(3_000)
    driven.learn("b", waits.response)
    told = waits.response

    assert (told.generation_id, told.leader, len(told.members)) == (1, driven.member_ids["b"], 1)
    assert driven.sync("b", 1, {"b": b"all"}).response.assignment == b"all"
    for _ in range(100):  # longer than a new member may be silent
        driven.harness.advance(5_000)
        assert driven.heartbeat("b", 1) is ErrorCode.NONE
    driven.harness.reload()


# ------------------------------------------------------------------------------- a group that changes its protocol


def emptied(**settings: int) -> DrivenConsumers:
    """A consumer group that has offsets and no members."""
    driven = DrivenConsumers(settings, topics={"t": 2})
    driven.member_ids["old"] = "old"
    epoch = driven.enter("old", "t").response.member_epoch
    driven.commit({"t": {0: 7}}, name="old", generation=epoch, version=9)
    driven.beat("old", -1)
    return driven


@pytest.mark.parametrize("version", [3, 5])
def test_a_consumer_group_whose_end_was_refused_is_still_there(version: int) -> None:
    driven = emptied()
    driven.harness.refusal = REFUSAL
    refused = driven.join("a", version=version)

    assert refused.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driven.harness.refusal = None
    assert driven.describe().group_state == "Empty"
    driven.harness.advance(600_000)  # of whoever was refused nothing comes any more
    assert driven.describe().group_state == "Empty"
    assert driven.fetch() == {"t": {0: 7}}
    driven.harness.reload()


def test_the_group_that_was_refused_does_not_come_with_a_later_tombstone() -> None:
    driven = emptied()
    driven.harness.refusal = REFUSAL
    driven.join("a", version=3)
    driven.harness.refusal = None
    driven.harness.run(lambda shard, _now_ms: shard.delete_groups([GROUP]))

    assert driven.shard.context.groups == {}


def test_a_classic_group_takes_the_place_of_an_empty_consumer_group() -> None:
    driven = emptied()
    driven.harness.refusal = REFUSAL
    driven.join("a", version=3)
    driven.harness.refusal = None
    joined(driven, "b")
    group = driven.shard.classic.get(GROUP)

    assert group is not None
    assert list(group.members) == [driven.member_ids["b"]]
    assert driven.fetch() == {"t": {0: 7}}


def test_a_downgrade_that_was_refused_leaves_a_consumer_group() -> None:
    driven = DrivenConsumers(topics={"t": 2})
    driven.member_ids["new"] = "new"
    epoch = driven.enter("new", "t").response.member_epoch
    driven.join_classic("a", ["t"])
    driven.join_classic("a", ["t"])
    driven.harness.refusal = REFUSAL
    driven.beat("new", -1)
    driven.harness.refusal = None

    assert set(driven.group.members) == {"new", driven.member_ids["a"]}
    assert driven.beat("new", epoch).error_code is not ErrorCode.UNKNOWN_SERVER_ERROR
    driven.beat("new", -1)
    assert driven.shard.classic.get(GROUP) is not None


def test_an_upgrade_that_was_refused_leaves_a_classic_group() -> None:
    driven = DrivenConsumers(topics={"t": 2})
    driven.join_classic("a", ["t"])
    waits = driven.join_classic("a", ["t"])
    driven.harness.advance(0)
    driven.learn("a", waits.response)
    driven.sync("a", waits.response.generation_id, {"a": encode_assignment(new_assignment({"t": [0, 1]}), 3)})
    driven.member_ids["new"] = "new"
    driven.harness.refusal = REFUSAL
    assert driven.enter("new", "t").error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driven.harness.refusal = None

    assert driven.heartbeat("a", waits.response.generation_id) is ErrorCode.NONE
    driven.harness.advance(20_000)
    group = driven.shard.classic.get(GROUP)
    assert group is not None
    assert not group.members  # its sessions still end


def test_an_epoch_that_is_decided_again_because_it_was_refused_is_counted_once() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.enter("b", "t")
    counters = driven.shard.context.counters
    before = counters.consumer_rebalances
    driven.harness.refusal = REFUSAL
    for _ in range(3):
        assert driven.beat("b", -1).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driven.harness.refusal = None
    driven.beat("b", -1)

    assert counters.consumer_rebalances == before + 1
