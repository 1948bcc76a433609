"""What is repeated, what is lost and what is neither, by when offsets are committed: hazards that every team meets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.client import Consumer, RebalanceListener, TopicPartition

from .group_cluster import FAST, PROTOCOLS, cluster, fill, make_topic, name, run

RECORDS_COUNT = 30


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with cluster() as found:
        yield found


def member(bootstrap: str, group: str, **more: object) -> Consumer:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "max.poll.records": 10, **FAST, **PROTOCOLS["range"]}
    return Consumer({**settings, **{key.replace("_", "."): value for key, value in more.items()}})


class CrashError(Exception):
    """The process died."""


async def process(consumer: Consumer, topic: str, count: int, done: list[int], *, commits_before: bool = False) -> None:
    """Process so many records, and die in the middle of a poll's if that comes first."""
    consumer.subscribe([topic])
    while True:
        records = await consumer.poll(timeout_ms=100)
        if records and commits_before:
            await consumer.commit()
        for record in records:
            if len(done) == count:
                raise CrashError
            done.append(int(record.value))


async def rest(bootstrap: str, group: str, topic: str, count: int) -> list[int]:
    """Return what the next member of the group gets, up to the last record."""
    found: list[int] = []
    async with member(bootstrap, group) as consumer:
        consumer.subscribe([topic])
        while not found or found[-1] < count - 1:
            found += [int(record.value) for record in await consumer.poll(timeout_ms=100)]
    return found


def test_a_crash_between_two_commits_by_the_clock_repeats_what_came_in_between(bootstrap: str) -> None:
    async def test() -> None:
        topic, group, done = await make_topic(bootstrap, 1), name("g"), list[int]()
        await fill(bootstrap, topic, RECORDS_COUNT, 1)
        with pytest.raises(CrashError):  # five seconds have not passed
            async with member(bootstrap, group, auto_commit_interval_ms=5_000) as consumer:
                await process(consumer, topic, 25, done)

        assert list(range(25)) == done
        assert list(range(RECORDS_COUNT)) == await rest(bootstrap, group, topic, RECORDS_COUNT)

    run(test)


def test_a_commit_before_the_work_loses_what_was_not_done(bootstrap: str) -> None:
    async def test() -> None:
        topic, group, done = await make_topic(bootstrap, 1), name("g"), list[int]()
        await fill(bootstrap, topic, RECORDS_COUNT, 1)
        with pytest.raises(CrashError):
            async with member(bootstrap, group, enable_auto_commit=False) as consumer:
                await process(consumer, topic, 14, done, commits_before=True)

        found = done + await rest(bootstrap, group, topic, RECORDS_COUNT)
        assert [number for number in range(RECORDS_COUNT) if number not in found] == [14, 15, 16, 17, 18, 19]

    run(test)


def test_commits_without_waiting_and_a_last_one_with_it_repeat_and_lose_nothing(bootstrap: str) -> None:
    async def test() -> None:
        topic, group, done = await make_topic(bootstrap, 1), name("g"), list[int]()
        await fill(bootstrap, topic, RECORDS_COUNT, 1)
        async with member(bootstrap, group, enable_auto_commit=False) as consumer:
            consumer.subscribe([topic])
            try:
                while len(done) < 20:
                    done += [int(record.value) for record in await consumer.poll(timeout_ms=100)]
                    consumer.commit_nowait()
            finally:
                await consumer.commit()

        assert list(range(RECORDS_COUNT)) == done + await rest(bootstrap, group, topic, RECORDS_COUNT)

    run(test)


def test_a_rebalance_repeats_what_was_not_committed_unless_the_listener_commits(bootstrap: str) -> None:
    async def repeated(listener: RebalanceListener | None) -> int:
        """Return how many records two members read twice, of which the first commits only by its listener."""
        topic, group = await make_topic(bootstrap, 2), name("g")
        await fill(bootstrap, topic, RECORDS_COUNT, 2)
        seen: list[bytes] = []
        async with (
            member(bootstrap, group, enable_auto_commit=False) as first,
            member(bootstrap, group, enable_auto_commit=False) as second,
        ):
            if isinstance(listener, Committing):
                listener.consumer = first
            first.subscribe([topic], listener=listener)
            while len(seen) < RECORDS_COUNT:
                seen += [record.value for record in await first.poll(timeout_ms=50)]
            second.subscribe([topic])
            while len(first.assignment) != 1 or len(second.assignment) != 1:
                for each in (first, second):
                    seen += [record.value for record in await each.poll(timeout_ms=20)]
            for each in (first, second):
                while (await each.position(next(iter(each.assignment)))) < RECORDS_COUNT // 2:
                    seen += [record.value for record in await each.poll(timeout_ms=20)]
        return len(seen) - len(set(seen))

    class Committing(RebalanceListener):
        consumer: Consumer

        async def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
            await self.consumer.commit()

    async def test() -> None:
        assert await repeated(None) == RECORDS_COUNT
        assert await repeated(Committing()) == 0

    run(test)
