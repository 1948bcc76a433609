"""Shell: a cluster without sockets, on a clock of its own: two brokers, logs in memory, the real group coordinator.

    async with virtual_cluster({"t": 2}) as cluster:
        async with cluster.consumer("a") as consumer: ...

run by `virtually`, time passes only while everybody waits, so hours take milliseconds and every run is the same. Only
the network is made up: the client is the whole client, and groups are a shard of the groups plugin behind its handlers.
"""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import attrs
import trio
import trio.testing

from odradek.client import Consumer
from odradek.kernel import wire
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages import api_01_fetch as fetch
from odradek.kernel.wire.messages import api_02_list_offsets as offsets
from odradek.kernel.wire.messages import api_03_metadata as metadata
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorResponse
from tests.machines import WiredNetwork, machine_with

from ..plugins.groups.consumer.driven_consumers import DrivenConsumers
from ..plugins.groups.handled import Context, HandledGroups
from .offered_versions import every_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from odradek.kernel.api import RequestContext
    from odradek.kernel.machine.machine import Machine

PROTOCOLS: dict[str, dict[str, object]] = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
SESSION_S = 45
"""How long a member that is not heard of stays, in both protocols, unless a test says otherwise."""
NODES = (1, 2)
_VERSIONS_MAX = {1: 12}
_EARLIEST = -2


def virtually(test: Callable[[], Awaitable[None]], limit_s: float = 3_600) -> None:
    """Run a test on virtual time, at most so much of it."""

    async def limited() -> None:
        with trio.fail_after(limit_s):
            await test()

    trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))


class PendingContext(Context):
    """A request's context that can be waited for."""

    def __init__(self, api_key: int, version: int, client_id: str | None) -> None:
        super().__init__(api_key, version, client_id)
        self.is_answered = trio.Event()

    def reply(self, response: Any) -> None:
        super().reply(response)
        self.is_answered.set()


@attrs.define(eq=False)
class VirtualCluster:
    """What it does, and what it saw.

    Attributes:
        groups: The coordinator's handlers, and its shard.
        coordinator: The node that coordinates every group.
        nursery: Where connections live.
        logs: Values by partition.
        unplugged: Client ids whose cable is cut.
        refusals: For coming requests, by API key: what the coordinator refuses them with, in turn.
        asked: Client id and class of each request to the coordinator, in order.
        requests: These requests, each with when it came in seconds.
        leaders: Nodes that lead a partition, where that is not the first one.
        searches: Which node was asked each time who coordinates.
    """

    groups: HandledGroups
    nursery: trio.Nursery
    coordinator: int = 1
    logs: dict[TopicPartition, list[bytes]] = attrs.field(factory=dict)
    unplugged: set[str] = attrs.field(factory=set)
    refusals: dict[int, list[ErrorCode]] = attrs.field(factory=dict)
    asked: list[tuple[str, type]] = attrs.field(factory=list)
    requests: list[tuple[float, Any]] = attrs.field(factory=list)
    leaders: dict[TopicPartition, int] = attrs.field(factory=dict)
    searches: list[int] = attrs.field(factory=list)
    _streams: list[tuple[str, trio.StapledStream[Any, Any]]] = attrs.field(factory=list)
    _waiting: dict[PendingContext, Any] = attrs.field(factory=dict)
    _has_changed: trio.Event = attrs.field(factory=trio.Event)
    _clock_ms: int = 0

    # What tests do.

    @property
    def driven(self) -> DrivenConsumers:
        """The shard and its topics."""
        return cast("DrivenConsumers", self.groups.driven)

    def consumer(self, client_id: str, protocol: str = "eager", **more: object) -> Consumer:
        """Return a consumer of the group that all tests use."""
        named = {key.replace("_", "."): value for key, value in more.items()}
        settings: dict[str, object] = {
            "bootstrap.servers": "node-1:1",
            "client.id": client_id,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            **PROTOCOLS[protocol],
        }
        if protocol != "consumer":
            settings["session.timeout.ms"] = SESSION_S * 1_000
        return Consumer({**settings, **named}, machine=self._machine(client_id))

    def append(self, topic: str, partition: int, *values: int) -> None:
        """Append records."""
        self.logs.setdefault(TopicPartition(topic, partition), []).extend(str(value).encode() for value in values)
        self._change()

    def committed(self) -> dict[TopicPartition, int]:
        """Return what the group has committed."""
        return {
            TopicPartition(topic, number): value.offset
            for group, topic, number, value in self.driven.shard.offsets.committed()
            if group == "g"
        }

    def unplug(self, client_id: str) -> None:
        """Cut a client's cable: nobody hears of it any more."""
        self.unplugged.add(client_id)
        for owner, stream in self._streams:
            if owner == client_id:
                self.nursery.start_soon(stream.aclose)

    def move_coordinator(self) -> None:
        """Have the other node coordinate: it knows what the log says, and those who wait are sent to it."""
        self._catch_up()
        self.coordinator = NODES[0] if self.coordinator == NODES[1] else NODES[1]
        self.driven.harness.reload()
        for context, request in list(self._waiting.items()):
            context.reply(self.groups.refused(request, context.api_version, ErrorCode.NOT_COORDINATOR))

    # The network.

    def _machine(self, client_id: str) -> Machine:
        network = WiredNetwork(lambda _host, port: self._connect(client_id, port))
        return machine_with(random=random.Random(client_id), network=network)

    async def _connect(self, client_id: str, port: int) -> trio.abc.HalfCloseableStream:
        await trio.lowlevel.checkpoint()
        if client_id in self.unplugged:
            raise ConnectionFailedError("the cable is cut")
        ours, theirs = trio.testing.memory_stream_pair()
        self._streams.append((client_id, theirs))
        self.nursery.start_soon(self._serve, port, theirs)
        return ours

    async def _serve(self, node: int, stream: trio.abc.Stream) -> None:
        frames = wire.FrameBuffer(2**31 - 1)
        async with stream:
            try:
                while data := await stream.receive_some():
                    frames.receive(data)
                    while (frame := frames.next_frame()) is not None:
                        await stream.send_all(await self._answer(node, bytes(frame)))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return

    async def _answer(self, node: int, body: bytes) -> bytes:
        header = wire.decode_request_header(body)
        request: Any = wire.decode(
            wire.APIS[header.api_key].request, body[header.size_bytes :], version=header.api_version
        )
        if header.api_key in self.groups.handlers:
            response = await self._coordinate(node, header, request)
        elif header.api_key == fetch.FetchRequest.__api_key__:
            response = await self._fetch(request)
        else:
            response = self._simple(node)[header.api_key](request)
        return wire.encode_response(response, header.api_version, header.correlation_id).join()

    def _found_coordinator(self, node: int) -> FindCoordinatorResponse:
        self.searches.append(node)
        return FindCoordinatorResponse(node_id=self.coordinator, host=f"node-{self.coordinator}", port=self.coordinator)

    def _simple(self, node: int) -> dict[int, Callable[[Any], Any]]:
        return {
            2: self._list_offsets,
            3: self._metadata,
            10: lambda _: self._found_coordinator(node),
            18: lambda _: every_api(_VERSIONS_MAX),
        }

    # The coordinator.

    async def _coordinate(self, node: int, header: Any, request: Any) -> Any:
        self._catch_up()
        self.asked.append((header.client_id, type(request)))
        self.requests.append((trio.current_time(), request))
        refusals = self.refusals.get(header.api_key)
        code = ErrorCode.NOT_COORDINATOR if node != self.coordinator else refusals.pop(0) if refusals else None
        if code is not None:
            return self.groups.refused(request, header.api_version, code)
        context = PendingContext(header.api_key, header.api_version, header.client_id)
        self._waiting[context] = request
        answer = self.groups.handlers[header.api_key].handle(request, cast("RequestContext", context))
        self._change()
        if context.answers or not isinstance(answer, wire.Message):
            await context.is_answered.wait()
            (answer,) = context.answers
        del self._waiting[context]
        return answer

    def _catch_up(self) -> None:
        """Let the shard's clock run up to ours."""
        passed_ms = int(trio.current_time() * 1_000) - self._clock_ms
        self._clock_ms += passed_ms
        self.driven.harness.advance(passed_ms)

    def _change(self) -> None:
        self._has_changed.set()
        self._has_changed = trio.Event()

    async def keep_time(self) -> None:
        """Run the shard's timers when they are due, until cancelled."""
        while True:
            self._catch_up()
            pause_ms = min(self.driven.harness.armed.values(), default=None)
            with trio.move_on_after(float("inf") if pause_ms is None else max(pause_ms, 1) / 1_000):
                await self._has_changed.wait()

    # The logs.

    def _metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        cluster = self.driven.broker.cluster
        wanted = cluster.topic_names() if request.topics is None else [topic.name for topic in request.topics]
        named = [name or "" for name in wanted]
        if request.topics is not None:
            found = (cluster.topic_by_id(topic.topic_id) for topic in request.topics if topic.name is None)
            named += [view.name for view in found if view is not None]
        topics = []
        for name in sorted(set(named) - {""}):
            view = cluster.topic(name)
            topics.append(
                metadata.MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if view is None
                else metadata.MetadataResponseTopic(
                    name=name,
                    topic_id=view.topic_id,
                    is_internal=name.startswith("__"),
                    partitions=[
                        metadata.MetadataResponsePartition(
                            partition_index=number,
                            leader_id=self.leaders.get(TopicPartition(name, number), NODES[0]),
                            leader_epoch=-1,
                        )
                        for number in range(view.partitions_count)
                    ],
                )
            )
        brokers = [metadata.MetadataResponseBroker(node_id=node, host=f"node-{node}", port=node) for node in NODES]
        return metadata.MetadataResponse(brokers=brokers, topics=topics, controller_id=1)

    def _list_offsets(self, request: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
        return offsets.ListOffsetsResponse(
            topics=[
                offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        offsets.ListOffsetsPartitionResponse(
                            partition_index=item.partition_index,
                            offset=0
                            if item.timestamp == _EARLIEST
                            else len(self.logs.get(TopicPartition(topic.name, item.partition_index), ())),
                        )
                        for item in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        with trio.move_on_after(request.max_wait_ms / 1_000):
            while not any(
                len(self.logs.get(TopicPartition(topic.topic, item.partition), ())) > item.fetch_offset
                for topic in request.topics
                for item in topic.partitions
            ):
                await self._has_changed.wait()
        return fetch.FetchResponse(
            responses=[
                fetch.FetchableTopicResponse(
                    topic=topic.topic, partitions=[self._read(topic.topic, item) for item in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _read(self, topic: str, item: fetch.FetchPartition) -> fetch.PartitionData:
        values = self.logs.get(TopicPartition(topic, item.partition), [])
        new = values[item.fetch_offset :]
        records = b""
        if new:
            builder = BatchBuilder(base_offset=item.fetch_offset)
            for value in new:
                builder.append(None, value, timestamp=1)
            records = bytes(builder.build())
        return fetch.PartitionData(partition_index=item.partition, high_watermark=len(values), records=records)


@asynccontextmanager
async def virtual_cluster(topics: Mapping[str, int], **settings: object) -> AsyncIterator[VirtualCluster]:
    """Keep a cluster with these topics for the time of an `async with`.

    Args:
        topics: Partitions by name.
        settings: The broker's, with `_` for `.`.
    """
    named = {key.replace("_", "."): value for key, value in settings.items()}
    async with trio.open_nursery() as nursery:
        cluster = VirtualCluster(HandledGroups(DrivenConsumers(named, topics)), nursery)
        nursery.start_soon(cluster.keep_time)
        yield cluster
        nursery.cancel_scope.cancel()
