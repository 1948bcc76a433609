"""A long request takes the time that it allows once, and not once for each of its pieces."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.dispatch.handlers.api_02_list_offsets import ListOffsetsHandler
from odradek.kernel.dispatch.handlers.api_19_create_topics import CreateTopicsHandler
from odradek.kernel.dispatch.handlers.api_20_delete_topics import DeleteTopicsHandler
from odradek.kernel.dispatch.handlers.api_37_create_partitions import CreatePartitionsHandler
from odradek.kernel.dispatch.handlers.api_43_elect_leaders import ElectLeadersHandler
from odradek.kernel.dispatch.handlers.api_45_alter_partition_reassignments import AlterPartitionReassignmentsHandler
from odradek.kernel.dispatch.router import Router
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.kernel.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.kernel.wire.messages.api_37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.kernel.wire.messages.api_43_elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.kernel.wire.registry import APIS
from odradek.testing.far_tier import FarTier
from tests.partitions.hosted import Hosted

from .deleting import deleting_handler
from .house import House, follower_request
from .memory_client import MemoryClient
from .test_list_offsets_tiered import TIERED

PARTITIONS = 500
NAMES = [f"topic-{number}" for number in range(2000)]
TIMEOUT_MS = 1000


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def codes(answer: Any, *path: str) -> list[int]:
    """Return the error codes at the end of a path of lists."""
    found = [answer]
    for name in path:
        found = [item for each in found for item in getattr(each, name)]
    return [each.error_code for each in found]


def answered(handler: Any, request: Message, version: int, *, threshold_s: float = 0.0) -> tuple[Any, float]:
    """Return the answer to a request, and how much virtual time it took."""

    async def main() -> tuple[Any, float]:
        router = Router(timer=trio.current_time, turn_enders=(), on_connection_closed=lambda connection: None)
        router.add(handler)
        client = MemoryClient(router)
        begun_s = trio.current_time()
        async with trio.open_nursery() as nursery:
            await nursery.start(router.run)
            client.send(request, version)
            while not (answers := client.received()):  # noqa: ASYNC110 # a client in memory wakes nobody
                await trio.sleep(0.05)
            nursery.cancel_scope.cancel()
        return answers[0], trio.current_time() - begun_s

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=threshold_s))


# ------------------------------------------------------------------------------------------------------- DeleteRecords


class Deleting:
    """A broker that leads many partitions, whose follower only fetches when it is told to."""

    def __init__(self, directory: Path) -> None:
        self.house = House(directory)
        house = self.house
        house.router.add(
            deleting_handler(house.hosted.replicas, lambda _topic: True, purgatory=house.produces, clock=house.clock)
        )
        house.hosted.open("t", PARTITIONS)
        state = PartitionState(leader=1, leader_epoch=1, partition_epoch=1, replicas=(1, 2), isr=(1, 2))
        for index in range(PARTITIONS):
            house.hosted.lifecycle.apply_leadership(house.hosted.replicas.get("t", index), state)

    def send(self) -> None:
        parts = [DeleteRecordsPartition(partition_index=index, offset=0) for index in range(PARTITIONS)]
        topics = [DeleteRecordsTopic(name="t", partitions=parts)]
        self.house.client.send(DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 2)

    def fetch(self, index: int) -> None:
        request = follower_request(self.house.hosted.replicas.topics["t"].topic_id, 0)
        request.topics[0].partitions[0].partition = index
        request.topics[0].partitions[0].log_start_offset = 0
        MemoryClient(self.house.router).ask(request, 15)


def play_deleting(directory: Path, scenario: Callable[[Deleting], Any]) -> None:
    async def main() -> None:
        scene = Deleting(directory)
        async with trio.open_nursery() as nursery:
            await nursery.start(scene.house.router.run)
            await scenario(scene)
            nursery.cancel_scope.cancel()
        scene.house.hosted.lifecycle.close()

    trio.run(main)


def test_a_deletion_from_many_partitions_waits_once(tmp_path: Path) -> None:
    async def scenario(scene: Deleting) -> None:
        scene.send()
        await settle()
        scene.house.pass_time(TIMEOUT_MS + 1)
        await settle()
        (answer,) = scene.house.client.received()

        assert codes(answer, "topics", "partitions") == [ErrorCode.REQUEST_TIMED_OUT] * PARTITIONS

    play_deleting(tmp_path, scenario)


def test_partitions_that_are_slow_cost_others_no_time(tmp_path: Path) -> None:
    async def scenario(scene: Deleting) -> None:
        scene.send()
        await settle()
        scene.fetch(PARTITIONS - 1)
        scene.house.pass_time(TIMEOUT_MS + 1)
        await settle()
        (answer,) = scene.house.client.received()
        late = [ErrorCode.REQUEST_TIMED_OUT] * (PARTITIONS - 1)

        assert codes(answer, "topics", "partitions") == [*late, ErrorCode.NONE]

    play_deleting(tmp_path, scenario)


def test_a_deletion_whose_client_goes_while_it_waits_is_forgotten(tmp_path: Path) -> None:
    async def scenario(scene: Deleting) -> None:
        scene.send()
        await settle()
        house = scene.house
        assert house.produces.delayed_count == len(range(0, PARTITIONS, 200))
        house.client.leave()
        await settle()

        assert house.produces.delayed_count == 0
        assert house.client._memory.kept_bytes == 0

    play_deleting(tmp_path, scenario)


# ------------------------------------------------------------------------------------------------------ the controller


PIECE_MS = 300
"""How long what a piece asks for takes: less than all of the time, and more than its share."""


class Slow:
    """A controller, and leaders that are to make way, which both take their time."""

    def __init__(self) -> None:
        self.answer: Callable[[Any], Any] = lambda request: {}
        self.asked = 0

    async def ask(self, request: Any, timeout_ms: int | None = None) -> Any:
        self.asked += 1
        assert timeout_ms is not None, "it would wait for ever"
        await trio.sleep(max(0, min(timeout_ms, PIECE_MS)) / 1000)
        if timeout_ms < PIECE_MS:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return self.answer(request)

    async def elect(self, wanted: Any, timeout_ms: int) -> Any:
        await trio.sleep(max(timeout_ms, 0) / 1000)
        self.asked += 1
        return {}

    def voted(self, wanted: Any) -> Any:
        return set(wanted)


Made = Callable[[Any], Any]
ASKED: dict[str, tuple[Made, Message]] = {
    "CreateTopics": (
        lambda slow: CreateTopicsHandler(calls=slow),
        CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in NAMES], timeout_ms=TIMEOUT_MS),
    ),
    "DeleteTopics": (
        lambda slow: DeleteTopicsHandler(calls=slow),
        DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in NAMES], timeout_ms=TIMEOUT_MS),
    ),
    "CreatePartitions": (
        lambda slow: CreatePartitionsHandler(calls=slow),
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, assignments=None) for name in NAMES], timeout_ms=TIMEOUT_MS
        ),
    ),
    "ElectLeaders": (
        lambda slow: ElectLeadersHandler(calls=slow),
        ElectLeadersRequest(
            topic_partitions=[TopicPartitions(topic=name, partitions=[0]) for name in NAMES], timeout_ms=TIMEOUT_MS
        ),
    ),
    "ElectLeaders of those that were voted for": (
        lambda slow: ElectLeadersHandler(calls=slow, hand_overs=slow),
        ElectLeadersRequest(
            topic_partitions=[TopicPartitions(topic=name, partitions=[0]) for name in NAMES], timeout_ms=TIMEOUT_MS
        ),
    ),
    "AlterPartitionReassignments": (
        lambda slow: AlterPartitionReassignmentsHandler(calls=slow),
        AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=0)]) for name in NAMES
            ],
            timeout_ms=TIMEOUT_MS,
        ),
    ),
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_pieces_of_what_is_asked_of_others_share_its_time(asked: str) -> None:
    make, request = ASKED[asked]
    slow = Slow()
    handler = make(slow)
    version = APIS[handler.api_key].versions.highest
    context = SimpleNamespace(api_version=version)
    slow.answer = lambda piece: handler.error_response(piece, context, ErrorCode.NONE, "")

    _answer, duration_s = answered(handler, request, version)

    assert slow.asked > 1
    assert duration_s == pytest.approx(TIMEOUT_MS / 1000, abs=0.1)


# --------------------------------------------------------------------------------------------------------- ListOffsets


@pytest.mark.parametrize(("version", "expected_s"), [(9, 3.0), (10, 1.0)], ids=["the broker says", "the client says"])
def test_the_pieces_of_a_list_of_offsets_share_the_time_for_a_store_that_is_away(
    tmp_path: Path, version: int, expected_s: float
) -> None:
    """Three topics, so that three pieces wait for it; all other partitions are unknown."""
    tier = FarTier()
    hosted = Hosted(tmp_path, tier=tier)
    is_over = threading.Event()
    for name in ("a", "b", "c"):
        hosted.open(name, tier=TIERED)
        for sequence in (0, 2):
            hosted.produce(name, sequence, 2).log.roll()
        tiered: Any = hosted.replicas.get(name, 0).log
        tiered.send(2)
        tiered.look_up = is_over.wait
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 3000, threads=SystemThreads())
    parts = [ListOffsetsPartition(partition_index=index, timestamp=1) for index in range(PARTITIONS)]
    topics = [ListOffsetsTopic(name=name, partitions=parts) for name in ("a", "b", "c")]

    request = ListOffsetsRequest(topics=topics, timeout_ms=TIMEOUT_MS)

    answer, duration_s = answered(handler, request, version, threshold_s=0.05)
    is_over.set()
    hosted.lifecycle.close()

    assert [topic.partitions[0].error_code for topic in answer.topics] == [ErrorCode.REQUEST_TIMED_OUT] * 3
    assert duration_s == pytest.approx(expected_s, abs=0.5)
