"""Shell: brokers without sockets, on virtual time: a test may hold answers back, replace them, or refuse connections.

    async def test(brokers):
        async with brokers.producer(linger_ms=0) as producer: ...

    with_brokers(test)

The client is the whole client, and what it does is seen at its connections: when it connects, what it asks, whom and
when, and when it closes. A broker's id is its port.
"""

from __future__ import annotations

import random
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs
import trio
import trio.testing

from odradek.client import Admin, Consumer, Producer
from odradek.kernel import wire
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import TrioClock
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.wire.messages import api_00_produce as produce
from odradek.kernel.wire.messages import api_01_fetch as fetch
from odradek.kernel.wire.messages import api_02_list_offsets as offsets
from odradek.kernel.wire.messages import api_03_metadata as metadata
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorResponse
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tests.machines import WiredNetwork, machine_with

from .model_partition import ModelPartition
from .offered_versions import every_api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.kernel.machine.clock import Clock
    from odradek.kernel.machine.machine import Machine

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
FIND_COORDINATOR, API_VERSIONS, INIT_PRODUCER_ID = 10, 18, 22
_VERSIONS_MAX = {PRODUCE: 12, FETCH: 12}
_EARLIEST = -2
_LIMIT_S = 100_000


@attrs.frozen
class Asked:
    """A request that came: when in seconds, to which broker, of which client, and what."""

    time_s: float
    node: int
    client_id: str | None
    request: Any


@attrs.define(eq=False)
class ScriptedBrokers:
    """What they do, and what they saw.

    Attributes:
        nursery: Where connections live.
        nodes: What Metadata says: the brokers that there are.
        leaders: Who leads each partition of every topic.
        down: Brokers that nobody can connect to.
        held: Brokers that answer no Produce before `release`.
        errors: What the next Produce requests are answered with, whatever the partition; then all are appended.
        refusals: What the next requests of other APIs are answered with, by key: an answer, or None for silence.
        answers: What answers requests of other APIs, by key: given the request it returns an answer, or None.
        logs: What was appended, by topic and partition.
        fetched: What Fetch brings of any partition, once.
        connects_s: When somebody tried to connect, by broker.
        closes_s: When the client closed a connection, by broker.
        asked: Every request, in order.
        unanswered: Produce requests that were not answered yet, by broker.
        unanswered_max: The most that there were, by broker.
    """

    nursery: trio.Nursery
    nodes: tuple[int, ...] = (1, 2)
    leaders: tuple[int, ...] = (1,)
    down: set[int] = attrs.field(factory=set)
    held: set[int] = attrs.field(factory=set)
    errors: deque[ErrorCode] = attrs.field(factory=deque)
    refusals: dict[int, deque[Any]] = attrs.field(factory=dict)
    answers: dict[int, Callable[[Any], Awaitable[Any]]] = attrs.field(factory=dict)
    logs: dict[tuple[str, int], ModelPartition] = attrs.field(factory=dict)
    fetched: bytes = b""
    connects_s: dict[int, list[float]] = attrs.field(factory=dict)
    closes_s: dict[int, list[float]] = attrs.field(factory=dict)
    asked: list[Asked] = attrs.field(factory=list)
    unanswered: dict[int, int] = attrs.field(factory=dict)
    unanswered_max: dict[int, int] = attrs.field(factory=dict)
    _released: trio.Event = attrs.field(factory=trio.Event)
    _streams: list[tuple[int, trio.abc.Stream]] = attrs.field(factory=list)

    # What tests do.

    def producer(self, **more: object) -> Producer:
        """Return a producer; settings with `_` for `.`."""
        return Producer(self._settings(more), machine=self.machine())

    def consumer(self, clock: Clock | None = None, /, **more: object) -> Consumer:
        """Return a consumer."""
        return Consumer(self._settings(more), machine=self.machine(clock))

    def admin(self, **more: object) -> Admin:
        """Return an admin client."""
        return Admin(self._settings(more), machine=self.machine())

    def machine(self, clock: Clock | None = None) -> Machine:
        """Return a machine that reaches these brokers."""
        return machine_with(clock=clock or TrioClock(), random=random.Random(5), network=WiredNetwork(self.connect))

    @staticmethod
    def _settings(more: dict[str, object]) -> dict[str, object]:
        return {"bootstrap.servers": "node:1", **{name.replace("_", "."): value for name, value in more.items()}}

    def release(self) -> None:
        """Have every Produce that is held back answered."""
        self.held.clear()
        self._released.set()
        self._released = trio.Event()

    def requests(self, api_key: int, node: int | None = None) -> list[Asked]:
        """Return the requests of an API that came so far, or those that came to one broker."""
        return [
            each for each in self.asked if each.request.__api_key__ == api_key and (node is None or each.node == node)
        ]

    def values(self, partition: int = 0, topic: str = "t") -> list[bytes | None]:
        """Return what stands in a partition's log."""
        log = self.logs.get((topic, partition))
        return [] if log is None else log.values

    # The network.

    async def connect(self, _host: str, port: int) -> trio.abc.HalfCloseableStream:
        """Be the wire."""
        self.connects_s.setdefault(port, []).append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if port in self.down:
            raise ConnectionFailedError("nobody is there")
        ours, theirs = trio.testing.memory_stream_pair()
        self._streams.append((port, theirs))
        self.nursery.start_soon(self._serve, port, theirs)
        return ours

    def stop(self, *nodes: int) -> None:
        """Have brokers go: their connections end, and there are no new ones."""
        self.down.update(nodes)
        for node, stream in self._streams:
            if node in nodes:
                self.nursery.start_soon(stream.aclose)

    async def _serve(self, node: int, stream: trio.abc.Stream) -> None:
        """Read all that comes, and answer in order."""
        to_answer, questions = trio.open_memory_channel[bytes](1_000)
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(self._answer_all, node, stream, questions)
            frames = wire.FrameBuffer(2**31 - 1)
            with suppress(trio.ClosedResourceError):
                while data := await stream.receive_some():
                    frames.receive(data)
                    while (frame := frames.next_frame()) is not None:
                        self._take(node, bytes(frame))
                        to_answer.send_nowait(bytes(frame))
                self.closes_s.setdefault(node, []).append(trio.current_time())
            self.unanswered[node] = 0
            nursery.cancel_scope.cancel()

    def _take(self, node: int, frame: bytes) -> None:
        header, request = _decoded(frame)
        self.asked.append(Asked(trio.current_time(), node, header.client_id, request))
        if request.__api_key__ == PRODUCE:
            count = self.unanswered[node] = self.unanswered.get(node, 0) + 1
            self.unanswered_max[node] = max(self.unanswered_max.get(node, 0), count)

    async def _answer_all(
        self, node: int, stream: trio.abc.Stream, questions: trio.MemoryReceiveChannel[bytes]
    ) -> None:
        async for frame in questions:
            header, request = _decoded(frame)
            while header.api_key == PRODUCE and node in self.held:
                await self._released.wait()
            refusals = self.refusals.get(header.api_key)
            response = refusals.popleft() if refusals else await self._answer(header.api_key, request)
            if header.api_key == PRODUCE:
                self.unanswered[node] -= 1
            if response is not None:
                encoded = wire.encode_response(response, header.api_version, header.correlation_id)
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await stream.send_all(encoded.join())

    # The answers.

    async def _answer(self, api_key: int, request: Any) -> Any:
        if api_key == FETCH:
            return await self._fetch(request)
        if api_key in self.answers:
            return await self.answers[api_key](request)
        answers: dict[int, Any] = {
            PRODUCE: self._produce,
            LIST_OFFSETS: self._list_offsets,
            METADATA: self.metadata,
            FIND_COORDINATOR: lambda _: FindCoordinatorResponse(node_id=1, host="node", port=1),
            API_VERSIONS: lambda _: every_api(_VERSIONS_MAX),
            INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=7, producer_epoch=0),
        }
        return answers[api_key](request)

    def metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        """Answer Metadata as things are."""
        return metadata.MetadataResponse(
            brokers=[metadata.MetadataResponseBroker(node_id=node, host="node", port=node) for node in self.nodes],
            controller_id=self.nodes[0],
            topics=[
                metadata.MetadataResponseTopic(
                    name=topic.name,
                    partitions=[
                        metadata.MetadataResponsePartition(partition_index=number, leader_id=leader)
                        for number, leader in enumerate(self.leaders)
                    ],
                )
                for topic in request.topics or ()
            ],
        )

    def _produce(self, request: produce.ProduceRequest) -> produce.ProduceResponse | None:
        error = self.errors.popleft() if self.errors else None
        topics = []
        for topic in request.topic_data:
            answers = []
            for item in topic.partition_data:
                code, offset = error or ErrorCode.NONE, -1
                if error is None:
                    assert item.records is not None
                    log = self.logs.setdefault((topic.name, item.index), ModelPartition())
                    code, offset = log.append(item.records)
                answers.append(produce.PartitionProduceResponse(index=item.index, error_code=code, base_offset=offset))
            topics.append(produce.TopicProduceResponse(name=topic.name, partition_responses=answers))
        return produce.ProduceResponse(responses=topics) if request.acks else None

    async def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        records, self.fetched = self.fetched, b""
        if not records:
            await trio.sleep(request.max_wait_ms / 1_000)
        return fetch.FetchResponse(
            responses=[
                fetch.FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        fetch.PartitionData(partition_index=item.partition, high_watermark=9, records=records)
                        for item in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _list_offsets(self, request: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
        return offsets.ListOffsetsResponse(
            topics=[
                offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        offsets.ListOffsetsPartitionResponse(
                            partition_index=item.partition_index, offset=0 if item.timestamp == _EARLIEST else 9
                        )
                        for item in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def _decoded(frame: bytes) -> tuple[Any, Any]:
    header = wire.decode_request_header(frame)
    api = wire.APIS[header.api_key]
    return header, wire.decode(api.request, frame[header.size_bytes :], version=header.api_version)


def virtually(test: Callable[[], Awaitable[None]], limit_s: float = 3_600) -> None:
    """Run a test on virtual time, at most so much of it."""

    async def limited() -> None:
        with trio.fail_after(limit_s):
            await test()

    trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))


def with_brokers(test: Callable[[ScriptedBrokers], Awaitable[None]], **values: Any) -> None:
    """Run a test with such brokers, made with these values."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await test(ScriptedBrokers(nursery, **values))
            nursery.cancel_scope.cancel()

    virtually(run, limit_s=_LIMIT_S)
