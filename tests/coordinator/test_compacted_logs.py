"""A compacted log of a coordinator loads to what the whole log does: by our cleaner and our loader, from files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.kernel.api import NO_PRODUCER, ProducerIdentity, TopicPartition
from odradek.kernel.coordinator.hosted_shard import HostedShard
from odradek.kernel.coordinator.loader import Load, LoadCounters, Loader
from odradek.kernel.coordinator.shard_host import ShardState
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.plugins.groups.classic.group import ClassicGroup
from odradek.plugins.groups.consumer.group import ConsumerGroup
from odradek.plugins.groups.shard import GroupShard
from odradek.testing.shard_harness import LoggedMarker, ShardHarness
from tests.cleanup.compacted import CompactedTopic
from tests.plugins.groups.consumer.driven_consumers import DrivenConsumers, consumer_state
from tests.plugins.groups.driven import GROUP
from tests.plugins.transactions.driven import DrivenShard

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
BATCH_MAX = 3
SEGMENT_BYTES = 1_500


@contextmanager
def topic_of(harness: ShardHarness[Any, Any], compact_at: Callable[[int], bool]) -> Iterator[CompactedTopic]:
    """Give the harness's log as a partition on disk, compacted wherever the test wants."""
    with tempfile.TemporaryDirectory() as directory:
        topic = CompactedTopic(Path(directory), segment_bytes=SEGMENT_BYTES)
        batch: list[tuple[bytes, bytes | None]] = []
        producer = NO_PRODUCER

        def write() -> None:
            if batch:
                is_transactional = producer != NO_PRODUCER
                topic.put(batch, producer_id=producer.producer_id, is_transactional=is_transactional)
                batch.clear()

        for number, entry in enumerate(harness.log):
            if batch and (isinstance(entry, LoggedMarker) or entry.producer != producer or len(batch) == BATCH_MAX):
                write()
            if isinstance(entry, LoggedMarker):
                topic.end(entry.producer.producer_id, is_commit=entry.is_commit)
            else:
                producer = entry.producer
                batch.append((entry.key, entry.value))
            if compact_at(number):
                write()
                topic.roll()
                topic.compact()
        write()
        try:
            yield topic
        finally:
            topic.hosted.lifecycle.close()


def compact_all(topic: CompactedTopic) -> None:
    """Compact until tombstones and markers whose time has come are gone, too."""
    topic.roll()
    for _ in range(3):
        topic.hosted.clock.advance(2 * DAY_MS)
        topic.replica.log.note_clean_end(0)
        topic.compact()


def load(topic: CompactedTopic, shard: Any, decode: Callable[..., Any]) -> Any:
    """Load a shard by the coordinators' loader, and return it."""
    hosted = SimpleNamespace(state=ShardState.LOADING, replica=topic.replica, shard=shard)
    counters, done = LoadCounters(), trio.Event()
    loader = Loader(write_now=lambda replicas: None, fail=lambda replica, error: None, threads=SystemThreads())
    coordinator: Any = SimpleNamespace(decode=decode)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(loader.run)
            loader.load_soon(
                Load(
                    cast("HostedShard", hosted),
                    coordinator,
                    counters,
                    lambda: 300,
                    done=lambda _: done.set(),
                    failed=lambda _: nursery.cancel_scope.cancel(),
                )
            )
            await done.wait()
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert done.is_set()
    assert counters.skipped_records == 0
    return shard


def group_state(shard: GroupShard) -> object:
    """Return everything that a shard of groups has loaded.

    But for groups that are nothing but offsets and have none: an offset makes such a group when it is read, as in
    Kafka, and compaction drops the offset with its tombstone. The next expiry deletes them.
    """
    offsets = shard.offsets
    groups: dict[str, object] = {}
    for group_id, group in shard.context.groups.items():
        if isinstance(group, ClassicGroup):
            if not group.is_simple or group_id in offsets._committed or group_id in offsets._producers:
                groups[group_id] = group.record(), group.state, group.is_simple
        else:
            assert isinstance(group, ConsumerGroup)
            groups[group_id] = consumer_state(group)
    return groups, offsets._committed, offsets._pending, offsets._producers


class Life:
    """Groups of both protocols, offsets, transactions; each step by the number that hypothesis draws."""

    def __init__(self) -> None:
        self.driven = DrivenConsumers(topics={"t": 2, "u": 2})
        self.open: set[int] = set()
        self.number = 0

    def step(self, what: int, which: int) -> None:
        self.number += 1
        steps = (self.commit, self.commit_in_transaction, self.end, self.delete, self.join, self.leave, self.expire)
        steps[what](which)

    def commit(self, which: int) -> None:
        self.driven.commit({"tu"[which % 2]: {which // 2 % 2: self.number}}, group=self.group(which))

    def commit_in_transaction(self, which: int) -> None:
        producer = ProducerIdentity(7 + which % 2, 0)
        waiter = self.driven.commit({"tu"[which % 2]: {0: self.number}}, group=self.group(which), producer=producer)
        if waiter.error is None:
            self.open.add(producer.producer_id)

    def end(self, which: int) -> None:
        producer_id = 7 + which % 2
        if producer_id in self.open:
            self.open.remove(producer_id)
            self.driven.harness.end_transaction(ProducerIdentity(producer_id, 0), is_commit=which % 3 > 0)

    def delete(self, which: int) -> None:
        topics = [("t", (0, 1))]
        group = self.group(which)
        if which % 2:
            self.driven.harness.run(lambda shard, _now_ms: shard.delete_groups([group]))
        else:
            self.driven.harness.run(lambda shard, _now_ms: shard.offsets.delete(group, topics))

    def join(self, which: int) -> None:
        name = f"m{which % 3}"
        if which % 2:
            self.driven.member_ids.setdefault(name, name)
            self.driven.enter(name, "t", "u")
        else:
            waits = self.driven.join_classic(name, ["t"], version=3)
            self.driven.harness.advance(0)
            if waits.is_done and waits.error is None and not waits.response.error_code:
                self.driven.learn(name, waits.response)
                self.driven.sync(name, waits.response.generation_id, {name: b""})

    def leave(self, which: int) -> None:
        name = f"m{which % 3}"
        if which % 2:
            self.driven.beat(name, -1)
        else:
            self.driven.leave((name, None))

    def expire(self, which: int) -> None:
        self.driven.harness.advance((60_000, WEEK_MS + 700_000)[which % 2])

    @staticmethod
    def group(which: int) -> str:
        return (GROUP, "other")[which // 4 % 2]


STEPS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 11)), min_size=5, max_size=40)
PLACES = st.sets(st.integers(0, 100), max_size=3)


@settings(max_examples=12)
@given(STEPS, PLACES, st.booleans())
@example([(0, 0)] * 4 + [(3, 0)], set(), True)  # its only offset is deleted
def test_compacted_offsets_load_to_the_same_groups(
    steps: list[tuple[int, int]], places: set[int], is_last: bool
) -> None:
    life = Life()
    for what, which in steps:
        life.step(what, which)
    driven = life.driven
    harness = driven.harness

    def loaded(topic: CompactedTopic) -> object:
        return group_state(load(topic, driven.coordinator.new_shard(0, harness), driven.coordinator.decode))

    with topic_of(harness, lambda _number: False) as whole:
        expected = loaded(whole)
    with topic_of(harness, places.__contains__) as compacted:
        if is_last:
            compact_all(compacted)

        assert expected == loaded(compacted)


def test_a_compacted_log_of_groups_is_smaller_and_says_the_same() -> None:
    """All that has to be in a log once: live and ended transactions, tombstones, groups that are gone."""
    life = Life()
    for _ in range(20):
        for what, which in ((0, 0), (0, 4), (1, 0), (2, 0), (1, 1), (2, 1), (4, 1), (5, 1), (3, 7), (4, 0), (5, 0)):
            life.step(what, which)
    life.step(1, 1)  # stays open
    driven, harness = life.driven, life.driven.harness
    with topic_of(harness, lambda _number: False) as topic:
        before = group_state(load(topic, driven.coordinator.new_shard(0, harness), driven.coordinator.decode))
        size_bytes = topic.replica.log.size_bytes
        compact_all(topic)
        after = group_state(load(topic, driven.coordinator.new_shard(0, harness), driven.coordinator.decode))

        assert before == after
        assert topic.replica.log.size_bytes < size_bytes / 4


# ------------------------------------------------------------------------------------------------------ transactions


def live_transactions(driven: DrivenShard, steps: list[tuple[int, int]]) -> None:
    """Live through transactions of a few ids."""
    for what, which in steps:
        name = f"id-{which % 3}"
        known = driven.harness.shard.ids.get(name)
        producer = None if known is None else ProducerIdentity(known.producer_id, known.producer_epoch)
        if what == 0:
            driven.init(name)
        elif what == 1 and producer is not None:
            driven.add(name, producer, TopicPartition("t", which), TopicPartition("u", 0))
        elif what == 2 and producer is not None:
            driven.end(name, producer, is_commit=which % 2 > 0)
        elif what == 3:
            driven.write_all()
        elif what == 4:
            driven.harness.advance((61_000, WEEK_MS + 3_600_000)[which % 2])


@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=5, max_size=40), PLACES, st.booleans())
def test_compacted_transactions_load_to_the_same_ids(
    steps: list[tuple[int, int]], places: set[int], is_last: bool
) -> None:
    driven = DrivenShard()
    live_transactions(driven, steps)
    harness = driven.harness

    def loaded(topic: CompactedTopic) -> object:
        return dict(load(topic, harness._new_shard(harness), harness._decode).ids)

    with topic_of(harness, lambda _number: False) as whole:
        expected = loaded(whole)
    with topic_of(harness, places.__contains__) as compacted:
        if is_last:
            compact_all(compacted)

        assert expected == loaded(compacted)


def test_of_ids_that_are_gone_nothing_is_left() -> None:
    driven = DrivenShard()
    steps = [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 0)] * 10
    live_transactions(driven, [*steps, (4, 1), (0, 2)])
    harness = driven.harness
    with topic_of(harness, lambda _number: False) as topic:
        compact_all(topic)

        assert set(load(topic, harness._new_shard(harness), harness._decode).ids) == {"id-2"}
        assert {seen.key for seen in topic.uncommitted()} < {entry.key for entry in harness.log}  # type: ignore[union-attr] # no markers
