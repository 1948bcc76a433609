"""Coordinators that have very much to look at hold up nobody; counted in calls, as in `test_bounded_requests.py`.

A group of a thousand members is written down, not joined: asked for one by one, they take as long as all that is
measured.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.messages.consumer_protocol import encode_assignment, new_assignment
from odradek.kernel.wire.messages.data_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.plugins.groups.records import GroupRecord
from tests.plugins.groups.driven import subscription

from .test_bounded_requests import CALLS_MAX, NAMES, LongestStep, World, begin_producers, until, work_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from odradek.kernel.coordinator.runtime import Runtime

MEMBERS: Final = 1_000
OFFSETS: Final = 5_000
READS: Final = subscription(["read"])
GROUP: Final = {"group_id": "large", "rebalance_timeout_ms": 60_000}
CONSUMER: Final = {**GROUP, "member_id": "A" * 22}
JOINS: Final = {**CONSUMER, "subscribed_topic_names": ["read"], "topic_partitions": []}
"""What a member of the consumer protocol says; where it has an instance id, it is static."""
TAKES_ITS_PLACE: Final = {
    **GROUP,
    "member_id": "",
    "group_instance_id": "another",
    "session_timeout_ms": 60_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": READS}],
}
"""What a member of the classic protocol says that comes in the name of the static one."""


def group_of_many(_shard: Any, _now_ms: int) -> CoordinatorResult[GroupRecord, None]:
    """Write down a stable classic group, each of whose members has a partition; one of them is static."""
    members = [
        MemberMetadata(
            member_id=f"member-{number}",
            group_instance_id=None if number else "static",
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=600_000,
            subscription=READS,
            assignment=encode_assignment(new_assignment({"read": [number]}), 0),
        )
        for number in range(MEMBERS)
    ]
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="member-0", members=members
    )
    return CoordinatorResult([GroupRecord(GroupMetadataKey(group="large"), value)], None)


def very_many_offsets(_shard: Any, now_ms: int) -> CoordinatorResult[GroupRecord, None]:
    """Write down what a group has committed in very many partitions."""
    records = [
        GroupRecord(
            OffsetCommitKey(group="many", topic="read", partition=number),
            OffsetCommitValue(offset=1, leader_epoch=0, metadata="", commit_timestamp=now_ms, topic_id=ZERO_ID),
        )
        for number in range(OFFSETS)
    ]
    return CoordinatorResult(records, None, is_atomic=False)


async def filled(world: World, key_type: int) -> Runtime:
    """Return the runtime of groups or of transactions, once it coordinates."""
    read = CreatableTopic(name="read", num_partitions=3, replication_factor=1)
    await world.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[read], timeout_ms=60_000))
    find = partial(world.ask, 10, {"key_type": key_type, "coordinator_keys": ["any"]})
    await until(find, lambda answer: not answer.coordinators[0].error_code)
    runtime = world.parts.requests.coordinators.by_key_type[key_type]
    while not any(runtime.shards()):  # noqa: ASYNC110 - as a client does
        await trio.sleep(0.01)
    return runtime


async def longest(work: Callable[[LongestStep], Awaitable[Any]], is_over: Callable[[], bool]) -> int:
    """Return the calls of the longest step until a piece of work has had its effect."""
    steps = LongestStep()
    trio.lowlevel.add_instrument(steps)
    await work(steps)
    while not is_over():  # noqa: ASYNC110 - nobody tells of it
        await trio.sleep(0.001)
    trio.lowlevel.remove_instrument(steps)
    return steps.calls


def asking(world: World, key: int, fields: dict[str, Any]) -> Callable[[LongestStep], Awaitable[Any]]:
    return lambda steps: world.ask(key, fields, steps)


def reloading(runtime: Runtime) -> Callable[[LongestStep], Awaitable[Any]]:
    """Have the one shard loaded anew, as when this broker leads again."""

    async def load() -> None:
        runtime.places[0].leave()
        runtime.places[0].check()

    async def reload(_steps: LongestStep) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load)

    return reload


def is_active(runtime: Runtime) -> bool:
    hosted = runtime.places[0].hosted
    return hosted is not None and hosted.is_active


def test_large_groups_change_their_protocol_are_loaded_and_deleted_in_short_steps(tmp_path: Path) -> None:
    found: dict[str, int] = {}

    async def work(world: World) -> None:
        runtime = await filled(world, 0)
        ((_, shard),) = runtime.shards()
        groups = shard.context.groups

        def is_now(kind: str, size: int) -> bool:
            return groups["large"].type.value == kind and len(groups["large"].members) == size

        await runtime.call(0, group_of_many)
        asks: dict[str, tuple[int, dict[str, Any], str, int]] = {
            "joined by the consumer protocol": (68, JOINS, "consumer", MEMBERS + 1),
            "left by its last member": (68, {**CONSUMER, "member_epoch": -1}, "classic", MEMBERS),
            "joined by a static member": (68, {**JOINS, "instance_id": "another"}, "consumer", MEMBERS + 1),
            "whose place is taken by a classic one": (11, TAKES_ITS_PLACE, "classic", MEMBERS + 1),
        }
        for name, (key, fields, kind, size) in asks.items():
            found[name] = await longest(asking(world, key, fields), partial(is_now, kind, size))
        await runtime.call(0, very_many_offsets)
        deletion = asking(world, 42, {"groups_names": ["many"]})
        found["deleted with its offsets"] = await longest(deletion, lambda: "many" not in groups)
        for _ in range(4):  # as rebalances write it again and again
            await runtime.call(0, group_of_many)
        found["loaded"] = await longest(reloading(runtime), partial(is_active, runtime))

    work_in(tmp_path, work)

    assert {name: calls for name, calls in found.items() if calls > CALLS_MAX} == {}


def test_very_many_transactional_ids_are_loaded_and_expire_in_short_steps(tmp_path: Path) -> None:
    found: dict[str, int] = {}

    async def work(world: World) -> None:
        runtime = await filled(world, 1)
        await runtime.call(0, begin_producers)
        found["loaded"] = await longest(reloading(runtime), partial(is_active, runtime))
        ((_, shard),) = runtime.shards()

        assert len(shard.ids) >= len(NAMES)

        async def expire() -> None:
            await runtime.call(0, lambda shard, now_ms: shard.expire(now_ms + (1 << 40)))

        async def run(_steps: LongestStep) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(expire)

        found["expired"] = await longest(run, lambda: not shard.ids)

    work_in(tmp_path, work)

    assert {name: calls for name, calls in found.items() if calls > CALLS_MAX} == {}
