"""Who asks the controller, or waits for other brokers, leaves its place among the requests that run to others."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import trio

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.dispatch.controller.broker_calls import ANSWERS, BrokerCallHandler
from odradek.kernel.dispatch.controller.fetch import MetadataFetchHandler
from odradek.kernel.dispatch.controller.quorum import DescribeQuorumHandler, VotersHandler
from odradek.kernel.dispatch.forwarded import InnerRequest
from odradek.kernel.dispatch.handlers.api_19_create_topics import CreateTopicsHandler
from odradek.kernel.dispatch.handlers.api_20_delete_topics import DeleteTopicsHandler
from odradek.kernel.dispatch.handlers.api_22_init_producer_id import InitProducerIdHandler
from odradek.kernel.dispatch.handlers.api_33_alter_configs import AlterConfigsHandler
from odradek.kernel.dispatch.handlers.api_37_create_partitions import CreatePartitionsHandler
from odradek.kernel.dispatch.handlers.api_43_elect_leaders import ElectLeadersHandler
from odradek.kernel.dispatch.handlers.api_44_incremental_alter_configs import IncrementalAlterConfigsHandler
from odradek.kernel.dispatch.handlers.api_45_alter_partition_reassignments import AlterPartitionReassignmentsHandler
from odradek.kernel.dispatch.handlers.api_46_list_partition_reassignments import ListPartitionReassignmentsHandler
from odradek.kernel.dispatch.handlers.api_55_describe_quorum import ForwardedQuorumHandler
from odradek.kernel.dispatch.handlers.api_57_update_features import UpdateFeaturesHandler
from odradek.kernel.dispatch.handlers.api_64_unregister_broker import UnregisterBrokerHandler
from odradek.kernel.dispatch.handlers.api_80_add_raft_voter import AddRaftVoterHandler
from odradek.kernel.dispatch.handlers.api_81_remove_raft_voter import RemoveRaftVoterHandler
from odradek.kernel.dispatch.long_requests import LongPlace, TaskPlace
from odradek.kernel.dispatch.producer_ids import ProducerIdSource
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.types import METADATA_TOPIC_ID
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_43_elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest, Listener
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.kernel.wire.registry import APIS

WAY = KafkaError(ErrorCode.NOT_CONTROLLER, "away")


class Aside:
    """A request, and the controller that it asks: which is away, and sees whether the place is left."""

    api_version = 1

    def __init__(self) -> None:
        self.is_aside = False
        self.asked: list[bool] = []

    async def wait_aside(self, wait: Callable[[], Awaitable[Any]]) -> Any:
        self.is_aside = True
        try:
            return await wait()
        finally:
            self.is_aside = False

    async def ask(self, request: Any, timeout_ms: int | None = None) -> Any:
        self.asked.append(self.is_aside)
        raise WAY

    async def elect(self, wanted: Any, timeout_ms: int) -> Any:
        return await self.ask(wanted)

    def voted(self, wanted: Any) -> Any:
        return set(wanted)


def altering(handler: Any) -> Callable[[Aside], Any]:
    config = BrokerConfig(Registry.of())
    return lambda calls: handler(calls=calls, broker_id=1, config=lambda: config, image=MetadataImage)


def ids(calls: Any) -> Any:
    source = ProducerIdSource(broker_id=1, broker_epoch=lambda: 1, calls=calls)
    return InitProducerIdHandler(producer_ids=source, transactions=lambda: None)


MAKERS: dict[int, Callable[[Any], Any]] = {
    19: lambda calls: CreateTopicsHandler(calls=calls),
    20: lambda calls: DeleteTopicsHandler(calls=calls),
    22: ids,
    33: altering(AlterConfigsHandler),
    37: lambda calls: CreatePartitionsHandler(calls=calls),
    43: lambda calls: ElectLeadersHandler(calls=calls),
    44: altering(IncrementalAlterConfigsHandler),
    45: lambda calls: AlterPartitionReassignmentsHandler(calls=calls),
    46: lambda calls: ListPartitionReassignmentsHandler(calls=calls),
    55: lambda calls: ForwardedQuorumHandler(calls=calls),
    57: lambda calls: UpdateFeaturesHandler(calls=calls),
    64: lambda calls: UnregisterBrokerHandler(calls=calls),
    80: lambda calls: AddRaftVoterHandler(calls=calls),
    81: lambda calls: RemoveRaftVoterHandler(calls=calls),
    **{key: lambda calls, key=key: BrokerCallHandler(key, calls=calls, connections=calls) for key in ANSWERS},  # type: ignore[misc]
}


@pytest.mark.parametrize("api_key", MAKERS)
def test_who_asks_the_controller_waits_aside(api_key: int) -> None:
    aside = Aside()
    handler = MAKERS[api_key](aside)
    request = APIS[api_key].request() if api_key != 22 else InitProducerIdRequest(transactional_id=None)
    with pytest.raises(KafkaError, match="away"):
        trio.run(handler.handle_async, request, aside)

    assert aside.asked == [True]


class Feed(Aside):
    """The metadata log of a controller that leads, in which nothing happens, and whose voters are away."""

    is_leader = has_changing_voters = True
    is_ending = False
    leader_id = leader_epoch = 1
    end_offset = 0
    cluster_id = "c"
    listeners: ClassVar[dict[int, Any]] = {}

    def needs_snapshot(self, *_at: int) -> bool:
        return False

    def diverges(self, *_at: int) -> None:
        return None

    def follower_fetch(self, *_told: Any) -> None: ...

    def readable_end(self, *_reader: Any) -> int:
        return 0

    def is_member(self, _replica_id: int) -> bool:
        return True

    async def wait_changed(self) -> None:
        await self.ask(None)

    async def kraft_versions(self, _host: str, _port: int) -> None:
        await self.ask(None)


VOTER: dict[str, Any] = {"cluster_id": "c", "voter_id": 4, "voter_directory_id": uuid.UUID(int=4)}
QUORUM_REQUESTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "news": (
        lambda feed: MetadataFetchHandler(feed=lambda: feed),
        FetchRequest(
            topics=[
                FetchTopic(
                    topic_id=METADATA_TOPIC_ID,
                    partitions=[FetchPartition(partition=0, current_leader_epoch=1, last_fetched_epoch=0)],
                )
            ],
            max_wait_ms=500,
        ),
    ),
    "what the election says": (
        lambda feed: DescribeQuorumHandler(feed=lambda: feed),
        APIS[55].request(),
    ),
    "what a new voter says": (
        lambda feed: VotersHandler(80, feed=lambda: feed, listener="CONTROLLER"),
        AddRaftVoterRequest(**VOTER, listeners=[Listener(name="CONTROLLER", host="h", port=1)]),
    ),
    "a majority": (
        lambda feed: VotersHandler(81, feed=lambda: feed, listener="CONTROLLER"),
        RemoveRaftVoterRequest(**VOTER),
    ),
}


@pytest.mark.parametrize("awaited", QUORUM_REQUESTS)
def test_so_does_who_waits_for_others_of_the_controllers_quorum(awaited: str) -> None:
    feed = Feed()
    make, request = QUORUM_REQUESTS[awaited]
    with pytest.raises(KafkaError, match="away"):
        trio.run(make(feed).handle_async, request, feed)

    assert feed.asked == [True]


def test_so_does_who_waits_for_leaders_that_were_voted_for() -> None:
    aside = Aside()
    handler: Any = ElectLeadersHandler(calls=aside, hand_overs=aside)  # type: ignore[arg-type]
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    with pytest.raises(KafkaError, match="away"):
        trio.run(handler.handle_async, request, aside)

    assert aside.asked == [True]


async def test_a_request_in_an_envelope_leaves_both_places() -> None:
    outer_limiter, inner_limiter = trio.Semaphore(1), trio.Semaphore(1)
    outer, inner = TaskPlace(outer_limiter), LongPlace(inner_limiter)
    envelope: Any = SimpleNamespace(wait_aside=outer.wait_aside)
    nothing: Any = None
    request = InnerRequest(nothing, 19, 7, 1, None, nothing, envelope=envelope, place=inner)
    await outer.take()
    await inner.take()

    async def wait() -> tuple[int, int]:
        return outer_limiter.value, inner_limiter.value

    assert await request.wait_aside(wait) == (1, 1)
    assert (outer_limiter.value, inner_limiter.value) == (0, 1)
    for place in (outer, inner):
        place.give_back()
    assert (outer_limiter.value, inner_limiter.value) == (1, 1)


@pytest.mark.parametrize("is_long", [False, True])
async def test_a_place_is_given_back_once_whatever_happens_aside(*, is_long: bool) -> None:
    limiter = trio.Semaphore(1, max_value=1)
    place = (LongPlace if is_long else TaskPlace)(limiter)

    async def fail() -> None:
        raise WAY

    async def fail_aside() -> None:
        await place.wait_aside(fail)

    for wait in (fail, fail_aside, trio.sleep_forever):
        await place.take()
        with trio.move_on_after(0.01), pytest.raises(KafkaError, match="away"):
            await place.wait_aside(wait)
        place.give_back()
        place.give_back()

        assert limiter.value == 1
