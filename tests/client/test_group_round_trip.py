"""Consumers in groups, of both protocols, against a broker over TCP."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
import trio

from odradek.client import (
    Admin,
    BrokerError,
    ClientUsageError,
    CommitFailedError,
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    RebalanceListener,
    TopicPartition,
)
from odradek.kernel.errors import ErrorCode

from .group_cluster import FAST, PROTOCOLS, cluster, fill, make_topic, name, run

EVERY_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with cluster() as found:
        yield found


def member(bootstrap: str, group: str, protocol: str, **more: object) -> Consumer:
    named = {key.replace("_", "."): value for key, value in more.items()}
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, **FAST, **PROTOCOLS[protocol], **named})


class Recorder(RebalanceListener):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, frozenset[int]]] = []

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.heard.append(("revoked", frozenset(each.partition for each in partitions)))

    async def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.heard.append(("assigned", frozenset(each.partition for each in partitions)))

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.heard.append(("lost", frozenset(each.partition for each in partitions)))


async def poll_values(consumer: Consumer, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += [int(record.value) for record in await consumer.poll(timeout_ms=100)]
    return found


async def poll_until_owned(consumers: list[Consumer], counts: list[int]) -> None:
    """Poll in turn until each member owns so many partitions."""
    while sorted(len(each.assignment) for each in consumers) != sorted(counts):
        for each in consumers:
            await each.poll(timeout_ms=20)


@EVERY_PROTOCOL
def test_members_share_a_topic_and_take_over_from_one_that_leaves(bootstrap: str, protocol: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 4), name("g")
        heard = [Recorder(), Recorder()]
        seen: Counter[int] = Counter()
        await fill(bootstrap, topic, 40, 4)
        async with member(bootstrap, group, protocol) as stays:
            async with member(bootstrap, group, protocol) as leaves:
                stays.subscribe([topic], listener=heard[0])
                seen.update(await poll_values(stays, 40))
                leaves.subscribe([topic], listener=heard[1])
                await poll_until_owned([stays, leaves], [2, 2])
                assert not stays.assignment & leaves.assignment
                await fill(bootstrap, topic, 40, 4, first=40)
                seen.update(await poll_values(stays, 20))
                seen.update(await poll_values(leaves, 20))
            await fill(bootstrap, topic, 40, 4, first=80)
            seen.update(await poll_values(stays, 40))
            assert len(stays.assignment) == 4
        async with member(bootstrap, group, protocol) as later:
            committed = await later.committed([(topic, number) for number in range(4)])

        assert dict.fromkeys(range(120), 1) == seen
        assert {30} == {offset.offset for offset in committed.values() if offset is not None}
        first, second = heard[0].heard, heard[1].heard
        assert first[0] == ("assigned", frozenset(range(4)))
        assert ("revoked", frozenset(range(4)) if protocol == "range" else first[1][1]) == first[1]
        assert second[-1][0] == "revoked"
        assert "lost" not in {what for what, _ in first + second}

    run(test)


@EVERY_PROTOCOL
def test_offsets_are_committed_for_the_group_and_no_other(bootstrap: str, protocol: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        where = TopicPartition(topic, 0)
        told: list[object] = []
        await fill(bootstrap, topic, 10, 1)
        async with member(bootstrap, group, protocol, enable_auto_commit=False, max_poll_records=4) as consumer:
            consumer.subscribe([topic])
            await poll_values(consumer, 4)
            assert await consumer.committed([where]) == {where: None}
            await consumer.commit()
            assert (await consumer.committed([where]))[where].offset == 4  # type: ignore[union-attr]
            consumer.commit_nowait({where: OffsetAndMetadata(7, "note")}, on_commit=lambda *what: told.append(what))
            await consumer.commit({where: 8})
            consumer.commit_nowait({where: OffsetAndMetadata(9, "note", 0)}, on_commit=lambda *what: told.append(what))
            await consumer.poll(timeout_ms=50)
        async with member(bootstrap, group, protocol) as again:
            found = await again.committed([where])
            again.assign([where])
            assert await again.position(where) == 9
        async with member(bootstrap, name("g"), protocol) as other:
            nothing = await other.committed([where])

        assert {where: OffsetAndMetadata(9, "note", 0)} == found
        assert nothing == {where: None}
        assert [({where: OffsetAndMetadata(7, "note")}, None), ({where: OffsetAndMetadata(9, "note", 0)}, None)] == told

    run(test)


@EVERY_PROTOCOL
def test_a_member_that_is_not_polled_leaves_by_itself_and_its_late_commit_is_refused(
    bootstrap: str, protocol: str
) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 2), name("g")
        recorder = Recorder()
        await fill(bootstrap, topic, 4, 2)
        async with (
            member(bootstrap, group, protocol, max_poll_interval_ms=400, enable_auto_commit=False) as stuck,
            member(bootstrap, group, protocol, enable_auto_commit=False) as lively,
        ):
            stuck.subscribe([topic], listener=recorder)
            await poll_values(stuck, 4)
            lively.subscribe([topic])
            assert Counter(await poll_values(lively, 4)) == Counter(range(4))
            with pytest.raises(CommitFailedError):
                await stuck.commit()
            assert await stuck.poll(timeout_ms=0) == []
            assert [("assigned", frozenset({0, 1})), ("lost", frozenset({0, 1}))] == recorder.heard[:2]
            await poll_until_owned([stuck, lively], [1, 1])

    run(test)


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(bootstrap: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 4), name("g")
        recorder = Recorder()
        async with member(bootstrap, group, "range", group_instance_id="one") as stays:
            stays.subscribe([topic], listener=recorder)
            async with member(bootstrap, group, "range", group_instance_id="two") as restarted:
                restarted.subscribe([topic])
                await poll_until_owned([stays, restarted], [2, 2])
                before, generation = restarted.assignment, restarted.group_metadata.generation_id
            async with member(bootstrap, group, "range", group_instance_id="two") as restarted:
                restarted.subscribe([topic])
                await poll_until_owned([stays, restarted], [2, 2])

                assert before == restarted.assignment
                assert generation == restarted.group_metadata.generation_id
            told = len(recorder.heard)
            await stays.poll(timeout_ms=250)
            assert told == len(recorder.heard)

    run(test)


def test_a_second_static_member_of_the_same_name_fences_the_first(bootstrap: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        async with (
            member(bootstrap, group, "range", group_instance_id="same") as first,
            member(bootstrap, group, "range", group_instance_id="same") as second,
        ):
            first.subscribe([topic])
            await poll_until_owned([first], [1])
            second.subscribe([topic])
            await poll_until_owned([second], [1])
            with pytest.raises(BrokerError) as caught:
                await poll_values(first, 1)

            assert caught.value.code is ErrorCode.FENCED_INSTANCE_ID

    run(test)


@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_a_pattern_that_the_client_matches_brings_topics_that_come_later(bootstrap: str, protocol: str) -> None:
    async def test() -> None:
        prefix = name("p")
        text = f"{prefix}-[ab]"
        async with (
            Admin({"bootstrap.servers": bootstrap}) as admin,
            member(bootstrap, name("g"), protocol, metadata_max_age_ms=100) as consumer,
        ):
            for topic in (f"{prefix}-a", f"{prefix}-a-not"):
                await admin.create_topic(NewTopic(topic, partitions_count=1))
            consumer.subscribe(pattern=re.compile(text) if protocol == "consumer" else text)
            while consumer.assignment != {(f"{prefix}-a", 0)}:
                await consumer.poll(timeout_ms=50)
            await admin.create_topic(NewTopic(f"{prefix}-b", partitions_count=1))
            while consumer.assignment != {(f"{prefix}-a", 0), (f"{prefix}-b", 0)}:
                await consumer.poll(timeout_ms=50)

    run(test)


def test_a_pattern_that_brokers_match_brings_the_topics_there_are(bootstrap: str) -> None:
    """For those that come later see `test_rebalance_triggers.py`: brokers look anew every ten seconds."""

    async def test() -> None:
        prefix = name("p")
        async with (
            Admin({"bootstrap.servers": bootstrap}) as admin,
            member(bootstrap, name("g"), "consumer") as consumer,
        ):
            for topic in (f"{prefix}-a", f"{prefix}-a-not"):
                await admin.create_topic(NewTopic(topic, partitions_count=1))
            consumer.subscribe(pattern=f"{prefix}-[ab]")
            while consumer.assignment != {(f"{prefix}-a", 0)}:
                await consumer.poll(timeout_ms=50)

    run(test)


@EVERY_PROTOCOL
def test_a_change_of_subscription_and_new_partitions_rebalance(bootstrap: str, protocol: str) -> None:
    async def test() -> None:
        first, second = await make_topic(bootstrap, 1), await make_topic(bootstrap, 1)
        async with (
            Admin({"bootstrap.servers": bootstrap}) as admin,
            member(bootstrap, name("g"), protocol, metadata_max_age_ms=100) as consumer,
        ):
            consumer.subscribe([first])
            await poll_until_owned([consumer], [1])
            consumer.subscribe([second])
            while consumer.assignment != {(second, 0)}:
                await consumer.poll(timeout_ms=50)
            await admin.create_partitions(second, 3)
            await poll_until_owned([consumer], [3])
            await consumer.unsubscribe()
            assert consumer.assignment == frozenset()
            assert consumer.subscription is None
            consumer.assign([(first, 0)])

    run(test)


def test_positions_are_committed_at_the_end_but_not_by_an_exception(bootstrap: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        await fill(bootstrap, topic, 10, 1)

        async def fail() -> None:
            async with member(bootstrap, group, "range") as consumer:
                consumer.subscribe([topic])
                await poll_values(consumer, 10)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with member(bootstrap, group, "range") as consumer:
            consumer.subscribe([topic])
            iterated = [int((await anext(consumer)).value) for _ in range(3)]
        async with member(bootstrap, group, "range") as consumer:
            committed = await consumer.committed([(topic, 0)])

        assert iterated == [0, 1, 2]
        assert {(topic, 0): 3} == {where: offset.offset for where, offset in committed.items() if offset}

    run(test)


@EVERY_PROTOCOL
@pytest.mark.parametrize("unsubscribes", [False, True])
def test_a_consumer_whose_farewell_is_cancelled_leaves_its_group_all_the_same(
    bootstrap: str, protocol: str, unsubscribes: bool
) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        recorder = Recorder()
        await fill(bootstrap, topic, 3, 1)
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            with trio.CancelScope() as end:
                async with member(bootstrap, group, protocol) as consumer:
                    consumer.subscribe([topic], listener=recorder)
                    await poll_values(consumer, 3)
                    assert len((await admin.describe_group(group)).members) == 1
                    if unsubscribes:
                        with trio.CancelScope() as farewell:
                            farewell.cancel()
                            await consumer.unsubscribe()
                        assert farewell.cancelled_caught
                        assert not (await admin.describe_group(group)).members
                        assert (consumer.subscription, consumer.assignment) == (None, frozenset())
                    end.cancel()
            after = await admin.describe_group(group)

        assert not after.members
        assert recorder.heard == [("assigned", frozenset({0}))]

    run(test)


def test_polls_commit_by_the_clock(bootstrap: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        await fill(bootstrap, topic, 5, 1)
        async with (
            member(bootstrap, group, "consumer", auto_commit_interval_ms=50) as consumer,
            member(bootstrap, group, "consumer") as observer,
        ):
            consumer.subscribe([topic])
            await poll_values(consumer, 5)
            while (await observer.committed([(topic, 0)]))[TopicPartition(topic, 0)] is None:
                await consumer.poll(timeout_ms=20)

    run(test)


def test_a_listener_may_commit_and_seek_and_its_errors_reach_the_poll(bootstrap: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        await fill(bootstrap, topic, 10, 1)

        class Seeker(RebalanceListener):
            async def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
                for each in partitions:
                    consumer.seek(each, 6)
                await consumer.commit()

            def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
                raise ZeroDivisionError

        async with member(bootstrap, group, "range", enable_auto_commit=False) as consumer:
            consumer.subscribe([topic], listener=Seeker())
            assert await poll_values(consumer, 4) == [6, 7, 8, 9]
            assert (await consumer.committed([(topic, 0)]))[TopicPartition(topic, 0)] == OffsetAndMetadata(6)
            consumer.enforce_rebalance()
            with pytest.raises(ZeroDivisionError):
                await poll_values(consumer, 1)
            await consumer.poll(timeout_ms=50)
            consumer.subscribe([topic])

    run(test)


@EVERY_PROTOCOL
def test_a_poll_cancelled_while_the_group_is_joined_leaves_the_consumer_usable(bootstrap: str, protocol: str) -> None:
    async def test() -> None:
        topic = await make_topic(bootstrap, 1)
        await fill(bootstrap, topic, 3, 1)
        async with member(bootstrap, name("g"), protocol) as consumer:
            consumer.subscribe([topic])
            for delay_s in (0.0, 0.001, 0.01):
                with trio.move_on_after(delay_s):
                    await consumer.poll()
                    break
            else:
                assert await poll_values(consumer, 3) == [0, 1, 2]

    run(test)


def test_what_makes_no_sense_is_refused(bootstrap: str) -> None:
    async def test() -> None:
        async with Consumer({"bootstrap.servers": bootstrap}) as alone:
            for call in (lambda: alone.subscribe(["t"]), lambda: alone.group_metadata, alone.enforce_rebalance):
                with pytest.raises(ClientUsageError, match=r"group\.id"):
                    call()
        async with member(bootstrap, name("g"), "range") as consumer:
            with pytest.raises(ClientUsageError, match="topics, or to a pattern"):
                consumer.subscribe()
            with pytest.raises(ClientUsageError, match="is no pattern"):
                consumer.subscribe(pattern="(")
            with pytest.raises(ClientUsageError, match="nothing is subscribed to"):
                consumer.enforce_rebalance()
            consumer.subscribe(["t"])
            with pytest.raises(ClientUsageError, match=r"unsubscribe\(\) first"):
                consumer.assign([("t", 0)])

    run(test)


def test_a_cancelled_program_may_still_commit_at_its_end(bootstrap: str) -> None:
    async def test() -> None:
        topic, group = await make_topic(bootstrap, 1), name("g")
        await fill(bootstrap, topic, 3, 1)
        with trio.move_on_after(2) as scope:
            async with member(bootstrap, group, "consumer", enable_auto_commit=False) as consumer:
                consumer.subscribe([topic])
                try:
                    await poll_values(consumer, 3)
                    scope.cancel()
                    await trio.sleep_forever()
                finally:
                    with trio.move_on_after(5, shield=True):
                        await consumer.commit()
        async with member(bootstrap, group, "consumer") as again:
            committed = await again.committed([(topic, 0)])

        assert [offset.offset for offset in committed.values() if offset is not None] == [3]

    run(test)
