"""A rebalance of a large group is worked on in short steps, whoever's request brings it about."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from odradek.kernel.api import ErrorCode, encode_bytes
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.messages.data_consumer_protocol import ConsumerProtocolSubscription
from odradek.kernel.wire.registry import APIS

from .memory_client import MemoryClient
from .test_bounded_requests import CALLS_MAX, LongestStep, World, made, until, work_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROUP = "large"
LARGE = 1000
HUGE = 1500


@attrs.define
class Member:
    """A member of the consumer protocol that owns at once what it is given."""

    number: int
    names: list[str]
    epoch: int = 0
    owned: dict[Any, list[int]] = attrs.field(factory=dict)

    async def beat(self, world: World, steps: LongestStep | None = None) -> None:
        fields: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": f"member-{self.number}",
            "member_epoch": self.epoch,
            "topic_partitions": [{"topic_id": key, "partitions": parts} for key, parts in self.owned.items()],
        }
        if self.epoch == 0:
            fields |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.names}
        answer = await world.ask(68, fields, steps)

        assert not answer.error_code, answer.error_message
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}


@contextmanager
def counted(steps_of: dict[str, LongestStep], name: str) -> Iterator[LongestStep]:
    """Count what is done inside."""
    steps = steps_of[name] = LongestStep()
    trio.lowlevel.add_instrument(steps)
    yield steps
    trio.lowlevel.remove_instrument(steps)


class ClassicMembers:
    """The members of a large classic group; the first one leads.

    Attributes:
        ids: By number, the id that a member was given.
    """

    def __init__(self, world: World, names: list[str]) -> None:
        self.world = world
        self.ids: dict[int, str] = {}
        self.metadata = b"\0\0" + encode_bytes(ConsumerProtocolSubscription(topics=names), 0)
        self._waiting: dict[int, tuple[MemoryClient, int]] = {}

    def ask(self, number: int, key: int, fields: dict[str, Any], steps: LongestStep | None = None) -> None:
        """Send a member's request, and end the turn of the reactor in which it came."""
        client = MemoryClient(self.world.router)
        self._waiting[number] = client, key
        common = {"group_id": GROUP, "member_id": self.ids.get(number, ""), "group_instance_id": f"i{number}"}
        request = made(APIS[key].request, {**common, **fields}, {})
        if steps is not None:
            steps.begin()
        client.send(request, APIS[key].versions.highest)
        client.turn()
        if steps is not None:
            steps.end("the reactor")

    def join(self, *numbers: int, steps: LongestStep | None = None) -> None:
        protocols = [{"name": name, "metadata": self.metadata} for name in ("range", "cooperative-sticky")]
        times = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
        for number in numbers:
            self.ask(number, 11, {**times, "protocol_type": "consumer", "protocols": protocols}, steps)

    def sync(self, *numbers: int, generation_id: int, share: bytes = b"", steps: LongestStep | None = None) -> None:
        """Have members sync; the leader gives everybody the same."""
        known = {"generation_id": generation_id, "protocol_type": "consumer", "protocol_name": "range"}
        shares = [{"member_id": member_id, "assignment": share} for member_id in self.ids.values()]
        for number in numbers:
            self.ask(number, 14, {**known, "assignments": [] if number else shares}, steps)

    async def codes(self, count: int) -> list[int]:
        """Wait until so many are answered that wait, and return the codes that they are told, in no order."""
        return [answer.error_code for _number, _key, answer in await self._answered(count)]

    async def answers(self, count: int) -> list[Any]:
        """Wait until so many are served that wait, and return what they are told, in no order."""
        answers: list[Any] = []
        for number, key, answer in await self._answered(count):
            assert not answer.error_code
            if key == 11:
                self.ids[number] = answer.member_id
            answers.append(answer)
        return answers

    async def _answered(self, count: int) -> list[tuple[int, int, Any]]:

        async def answered() -> list[int]:
            return [number for number, (client, _key) in self._waiting.items() if client.connection.outgoing]

        found: list[tuple[int, int, Any]] = []
        for number in await until(answered, lambda found: len(found) == count):
            client, key = self._waiting.pop(number)
            found += [(number, key, answer) for answer in client.received()]
        return found


async def create_topics(world: World, count: int, partitions: int) -> list[str]:
    names = [f"topic-{number}" for number in range(count)]
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    await world.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=topics, timeout_ms=60_000))
    find = {"key_type": 0, "coordinator_keys": [GROUP]}
    await until(lambda: world.ask(10, find), lambda answer: not answer.coordinators[0].error_code)
    await world.settle()
    heartbeat = {"group_id": GROUP, "member_id": "nobody", "member_epoch": 1}
    await until(lambda: world.ask(68, heartbeat), lambda answer: answer.error_code == 69)  # the shard is loaded
    return names


def test_a_huge_classic_group_joins_and_syncs_in_short_steps(tmp_path: Path) -> None:
    """What answers all of its members, and writes all of them down in one record, is the leader's request."""
    steps_of: dict[str, LongestStep] = {}

    async def work(world: World) -> None:
        members = ClassicMembers(world, await create_topics(world, 10, 10))
        members.join(0)
        await members.answers(1)
        members.join(*range(1, HUGE))
        with counted(steps_of, "JoinGroup") as steps:
            members.join(0, steps=steps)
            joined = await members.answers(HUGE)
        generation_id = joined[0].generation_id
        members.sync(*range(1, HUGE), generation_id=generation_id)
        with counted(steps_of, "SyncGroup") as steps:
            members.sync(0, generation_id=generation_id, share=b"some", steps=steps)
            synced = await members.answers(HUGE)
        assert {answer.assignment for answer in synced} == {b"some"}

    work_in(tmp_path, work)

    assert {name: steps.task for name, steps in steps_of.items() if steps.calls > CALLS_MAX} == {}
    assert len(steps_of) == 2


def test_a_shard_that_ends_sends_a_huge_group_away_in_short_steps(tmp_path: Path) -> None:
    steps_of: dict[str, LongestStep] = {}

    async def work(world: World) -> None:
        members = ClassicMembers(world, await create_topics(world, 1, 1))
        members.join(0)
        await members.answers(1)
        members.join(*range(1, HUGE))
        coordinators = world.parts.requests.coordinators
        (runtime,) = (each for each in coordinators.by_topic.values() if each.coordinator.key_type == 0)
        with counted(steps_of, "the end") as steps:
            steps.begin()
            runtime.places[0].leave()
            steps.end("the reactor")
            codes = await members.codes(HUGE - 1)
        assert set(codes) == {ErrorCode.NOT_COORDINATOR}

    work_in(tmp_path, work)

    assert steps_of["the end"].calls <= CALLS_MAX, steps_of["the end"].task


@pytest.mark.parametrize(
    ("members_count", "topics_count", "partitions_count"),
    [
        pytest.param(1000, 100, 10, id="many members"),
        pytest.param(20, 400, 5, id="many topics"),
        pytest.param(1, 500, 10, id="many topics of one member"),
    ],
)
def test_a_rebalance_of_a_large_group_is_worked_on_in_short_steps(
    tmp_path: Path, members_count: int, topics_count: int, partitions_count: int
) -> None:
    steps_of: list[LongestStep] = []

    async def work(world: World) -> None:
        names = await create_topics(world, topics_count, partitions_count)
        members = [Member(number, names) for number in range(members_count)]
        for member in members[1:]:
            await member.beat(world)
        steps = LongestStep()
        steps_of.append(steps)
        trio.lowlevel.add_instrument(steps)
        await members[0].beat(world, steps)
        first = members[0].epoch
        wanted = topics_count * partitions_count
        while sum(len(parts) for one in members for parts in one.owned.values()) < wanted or first == members[0].epoch:
            for member in members:
                await member.beat(world, steps)
            await trio.sleep(0.1)
        (described,) = (await world.ask(69, {"group_ids": [GROUP]}, steps)).groups
        trio.lowlevel.remove_instrument(steps)

        owned = [(topic, part) for one in members for topic, parts in one.owned.items() for part in parts]
        assert len(owned) == len(set(owned)) == wanted
        told = [each for member in described.members for each in member.target_assignment.topic_partitions]
        assert sum(len(each.partitions) for each in told) == wanted

    work_in(tmp_path, work)
    (steps,) = steps_of

    assert steps.calls <= CALLS_MAX, steps.task
