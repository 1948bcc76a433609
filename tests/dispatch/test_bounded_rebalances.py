"""A rebalance of a large group is worked on in short steps, whoever's request brings it about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

from .test_bounded_requests import CALLS_MAX, LongestStep, World, until, work_in

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "large"


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
