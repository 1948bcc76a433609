"""Three broker processes and a topic whose replicas vote: its leaders are killed under a producer, and nothing is lost.

The producer is ours, with `acks=all`. What it was told is read once each, in order, at the offsets that were told.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from odradek.client import Admin, ClientError, Consumer, NewTopic, Producer, RecordMetadata, TopicPartition
from tests.waiting import until_async

from .test_processes import PATIENCE_S
from .test_real_faults import Faulty

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

TOPIC = "votes"
PLACE = TopicPartition(TOPIC, 0)
MORE = 200
"""How many records more have to be acknowledged before the next accident."""


class Load:
    """Sends numbers until it is told to end; knows what was acknowledged where."""

    def __init__(self, bootstrap: str) -> None:
        # Who stands still answers nothing: the producer asks the next leader after this.
        self._settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, "request.timeout.ms": 3_000}
        self._sent_count = 0
        self.acknowledged: dict[int, int] = {}
        self.failures: list[ClientError] = []
        self.is_ending = False

    async def run(self) -> None:
        async with Producer(self._settings) as producer:
            while not self.is_ending:
                await self._send(producer)
                await trio.sleep(0.002)
            await producer.flush()

    async def _send(self, producer: Producer) -> None:
        number = self._sent_count
        self._sent_count += 1

        def told(metadata: RecordMetadata | None, error: ClientError | None) -> None:
            if metadata is not None:
                self.acknowledged[number] = metadata.offset
            elif error is not None:
                self.failures.append(error)

        await producer.enqueue(TOPIC, str(number), partition=0, on_delivery=told)

    async def await_more(self) -> None:
        """Wait until more records are acknowledged than were."""
        wanted = len(self.acknowledged) + MORE
        await until_async(lambda: len(self.acknowledged) >= wanted)


async def leader_of(admin: Admin) -> int:
    """Wait until the topic is led, and return by whom."""
    with trio.fail_after(PATIENCE_S):
        while True:
            info = (await admin.describe_topic(TOPIC)).partitions[0]
            if info.has_leader:
                return info.leader_id
            await trio.sleep(0.02)


async def read_all(bootstrap: str) -> list[tuple[int, int]]:
    """Return what the topic has: offsets and numbers, in their order."""
    found: list[tuple[int, int]] = []
    async with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([PLACE])
        end = (await consumer.end_offsets([PLACE]))[PLACE]
        with trio.fail_after(PATIENCE_S):
            while await consumer.position(PLACE) < end:
                found += [(each.offset, int(each.value)) for each in await consumer.poll(timeout_ms=1_000)]
    return found


def check(tmp_path: Path, accidents: Callable[[Faulty, Admin, Load], Awaitable[None]]) -> str:
    """See that a topic whose replicas vote keeps, once and in order, what is acknowledged; return what brokers said."""

    async def scenario(brokers: Faulty, load: Load) -> list[tuple[int, int]]:
        async with Admin({"bootstrap.servers": brokers.bootstrap}) as admin:
            await admin.create_topic(NewTopic(TOPIC, 1, 3, {"odradek.election": "quorum"}))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(load.run)
                await accidents(brokers, admin, load)
                load.is_ending = True
        return await read_all(brokers.bootstrap)

    with Faulty(tmp_path) as brokers:
        load = Load(brokers.bootstrap)
        found = trio.run(scenario, brokers, load)
        status, err = brokers.terminate()
    numbers = [number for _offset, number in found]
    told, seen = load.acknowledged, {number: offset for offset, number in found}
    wrong = {number: (told.get(number), seen.get(number)) for number in told.keys() | seen.keys()}
    wrong = {number: offsets for number, offsets in sorted(wrong.items()) if offsets[0] != offsets[1]}

    assert load.failures == []
    assert not wrong, f"told and found: {wrong}; numbers in order: {numbers == sorted(set(numbers))}\n{err}"
    assert numbers == sorted(set(numbers)), err
    assert status == 0, err
    return err


def test_nothing_acknowledged_is_lost_as_leaders_are_killed(tmp_path: Path) -> None:
    async def accidents(brokers: Faulty, admin: Admin, load: Load) -> None:
        for _ in range(2):
            await load.await_more()
            leader = await leader_of(admin)
            await trio.to_thread.run_sync(brokers.kill_and_await_another, leader)
            await load.await_more()

    said = check(tmp_path, accidents)

    assert said.count("ended by SIGKILL; it is started again") == 2


def test_who_leads_stands_still_and_another_leads(tmp_path: Path) -> None:
    async def accidents(brokers: Faulty, admin: Admin, load: Load) -> None:
        await load.await_more()
        leader = await leader_of(admin)
        os.kill(brokers.pids[leader], signal.SIGSTOP)
        await load.await_more()
        os.kill(brokers.pids[leader], signal.SIGCONT)
        await load.await_more()

    check(tmp_path, accidents)


async def moved(admin: Admin, target: tuple[int, ...]) -> None:
    """Wait until the partition has these replicas, and nothing moves any more."""
    with trio.fail_after(PATIENCE_S):
        while True:
            info = (await admin.describe_topic(TOPIC)).partitions[0]
            if tuple(info.replicas) == target and not await admin.list_partition_reassignments():
                return
            await trio.sleep(0.05)


def test_voters_come_and_go_under_a_producer_and_one_leader_is_killed_on_the_way(tmp_path: Path) -> None:
    async def accidents(brokers: Faulty, admin: Admin, load: Load) -> None:
        for target in ((1, 2), (2, 3), (3,), (3, 1, 2)):
            await load.await_more()
            refused = await admin.alter_partition_reassignments({PLACE: target})

            assert refused == {}
            if target == (2, 3):
                await trio.to_thread.run_sync(brokers.kill_and_await_another, await leader_of(admin))
            await moved(admin, target)
        await load.await_more()

    check(tmp_path, accidents)
