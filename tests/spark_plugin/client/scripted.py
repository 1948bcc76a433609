"""Brokers that follow a script, without sockets and without waiting: a network of addresses, a clock that is moved.

    network = Network()
    network.broker(1, "a", 9092)
    client = network.client()

A broker answers by handlers, one for each API key: `(request, version) -> response`, or one of the actions below. The
bytes are the protocol's own, so damage can be done to them at every place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import attrs

from odradek.kernel import wire
from odradek.kernel.wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.kernel.wire.messages.api_03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersion, ApiVersionsResponse
from odradek.spark_plugin.client.client import Client
from odradek.spark_plugin.client.errors import ConnectionFailedError, RequestTimeoutError
from odradek.spark_plugin.client.settings import ClientSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.types import Buffer

TOPIC_ID = UUID("11111111-2222-3333-4444-555555555555")
OTHER_ID = UUID("99999999-2222-3333-4444-555555555555")

Handler = Callable[[Any, int], Any]


class HangUp:
    """The broker closes the connection instead of answering."""


class Silence:
    """The broker never answers."""


@attrs.define
class Raw:
    """The broker sends these bytes as they are."""

    data: bytes


@attrs.define
class FakeClock:
    """Time that passes only by waiting; counts what was slept."""

    time_ms: int = 1_000_000
    slept_ms: int = 0

    def monotonic_ms(self) -> int:
        return self.time_ms

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self.time_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self.time_ms += duration_ms
        self.slept_ms += duration_ms


@attrs.define(eq=False)
class Broker:
    """One broker: what it answers, what it was asked."""

    node_id: int
    host: str
    port: int
    handlers: dict[int, Handler] = attrs.field(factory=dict)
    asked: list[tuple[int, int, Any]] = attrs.field(factory=list)
    is_down: bool = False
    connections: list[FakeTransport] = attrs.field(factory=list)
    cut_after: int | None = None
    piece_bytes: int = 1 << 30
    piece_ms: int = 0
    spoil: Callable[[bytes], bytes] = lambda answer: answer
    versions: dict[int, tuple[int, int]] = attrs.field(
        factory=lambda: {key: (api.versions.lowest, api.versions.highest) for key, api in wire.APIS.items()}
    )

    def count(self, key: int) -> int:
        """How often an API was asked."""
        return sum(asked[0] == key for asked in self.asked)

    def requests(self, key: int) -> list[Any]:
        """What an API was asked."""
        return [request for api_key, _, request in self.asked if api_key == key]

    def answer(self, frame: bytes) -> bytes | HangUp | Silence | Raw:
        header = wire.decode_request_header(frame)
        api = wire.APIS[header.api_key]
        request = wire.decode(api.request, memoryview(frame), header.api_version, position=header.size_bytes)
        self.asked.append((header.api_key, header.api_version, request))
        found = self.handlers[header.api_key](request, header.api_version)
        if isinstance(found, HangUp | Silence | Raw):
            return found
        refuses_version = header.api_key == 18 and found.error_code == 35
        version = 0 if refuses_version else header.api_version
        return self.spoil(wire.encode_response(found, version, header.correlation_id).join())


@attrs.define(eq=False)
class FakeTransport:
    """One connection to a scripted broker."""

    broker: Broker
    clock: FakeClock
    _incoming: bytearray = attrs.field(factory=bytearray)
    _outgoing: bytearray = attrs.field(factory=bytearray)
    _sent_count: int = 0
    is_closed: bool = False
    has_hung_up: bool = False

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        if self.has_hung_up or self.broker.is_down:
            raise ConnectionFailedError(f"sending to {self.broker.host}:{self.broker.port} failed: broken pipe")
        for part in parts:
            self._incoming += part
        while len(self._incoming) >= 4:
            size = int.from_bytes(self._incoming[:4], "big")
            if len(self._incoming) < 4 + size:
                return
            frame = bytes(self._incoming[4 : 4 + size])
            del self._incoming[: 4 + size]
            answer = self.broker.answer(frame)
            if isinstance(answer, HangUp):
                self.has_hung_up = True
            elif isinstance(answer, Raw):
                self._outgoing += answer.data
            elif not isinstance(answer, Silence):
                self._outgoing += answer

    def receive_into(self, space: memoryview, timeout_ms: int) -> int:
        assert len(space), "nobody asks for nothing"
        limit = self.broker.piece_bytes
        if self.broker.cut_after is not None:
            limit = min(limit, self.broker.cut_after - self._sent_count)
        count = min(len(space), len(self._outgoing), limit)
        if count:
            self.clock.time_ms += self.broker.piece_ms
            space[:count] = self._outgoing[:count]
            del self._outgoing[:count]
            self._sent_count += count
            return count
        if self.has_hung_up or limit <= 0 or self.broker.is_down:
            self.has_hung_up = True
            return 0
        self.clock.time_ms += timeout_ms
        raise RequestTimeoutError(f"{self.broker.host}:{self.broker.port} sent nothing within {timeout_ms} ms")

    def is_quiet(self) -> bool:
        return not self._outgoing and not self.has_hung_up and not self.broker.is_down

    def close(self) -> None:
        self.is_closed = True


@attrs.define(slots=False)
class Network:
    """Addresses, the brokers behind them, and what they agree on."""

    clock: FakeClock = attrs.field(factory=FakeClock)
    brokers: dict[tuple[str, int], Broker] = attrs.field(factory=dict)
    leaders: dict[str, dict[int, int]] = attrs.field(factory=dict)
    topic_ids: dict[str, UUID] = attrs.field(factory=dict)
    topic_errors: dict[str, int] = attrs.field(factory=dict)
    leader_epoch: int = 7
    tried: list[str] = attrs.field(factory=list)

    def broker(self, node_id: int, host: str, port: int = 9092) -> Broker:
        """Add a broker that knows of versions and metadata."""
        made = Broker(node_id, host, port)
        made.handlers[18] = lambda request, version: ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in made.versions.items()
            ]
        )
        made.handlers[3] = self.metadata
        self.brokers[host, port] = made
        return made

    def metadata(self, request: Any, version: int) -> MetadataResponse:
        names = sorted(self.leaders) if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=one.node_id, host=one.host, port=one.port)
                for one in self.brokers.values()
                if one.node_id >= 0
            ],
            controller_id=1,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        error = self.topic_errors.get(name, 0 if name in self.leaders else 3)
        partitions = [
            MetadataResponsePartition(
                error_code=0 if leader >= 0 else 5,
                partition_index=number,
                leader_id=leader,
                leader_epoch=self.leader_epoch,
                replica_nodes=[],
                isr_nodes=[],
            )
            for number, leader in (() if error else self.leaders[name].items())
        ]
        topic_id = self.topic_ids.get(name, UUID(int=0) if error else TOPIC_ID)
        return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, partitions=partitions)

    def connect(self, host: str, port: int, *, timeout_ms: int) -> FakeTransport:
        self.tried.append(host)
        broker = self.brokers.get((host, port))
        if broker is None or broker.is_down:
            raise ConnectionFailedError(f"{host}:{port}: connection refused")
        transport = FakeTransport(broker, self.clock)
        broker.connections.append(transport)
        return transport

    def client(self, **options: object) -> Client:
        """Return a client of this network; options with underscores for dots."""
        first = next(iter(self.brokers), ("a", 9092))
        given = {"bootstrap.servers": f"{first[0]}:{first[1]}"}
        given.update({name.replace("_", "."): str(value) for name, value in options.items()})
        return Client(ClientSettings.of(given), connector=self.connect, clock=self.clock)


@attrs.define
class FakeLog:
    """A partition's log as Fetch and ListOffsets show it: batches with their offsets, watermarks, faults in turn.

    Attributes:
        batches: First offset, next offset, bytes; rising.
        high_watermark: Where consumers end.
        last_stable_offset: Where committed ones end; the high watermark when None.
        log_start: The first offset.
        local_start: The first that is not in remote storage alone.
        script: What the next fetches are answered with instead, None for the log itself: a code, or a response.
        is_first_whole: Whether the first batch is sent whole however large (KIP-74).
    """

    batches: list[tuple[int, int, bytes]] = attrs.field(factory=list)
    high_watermark: int = 0
    last_stable_offset: int | None = None
    log_start: int = 0
    local_start: int = 0
    aborted: list[Any] = attrs.field(factory=list)
    script: deque[Any] = attrs.field(factory=deque)
    is_first_whole: bool = True

    def add(self, count: int, size: int = 200, *, gap: int = 0) -> None:
        """Append a batch of so many offsets after a gap."""
        first = self.high_watermark + gap
        self.batches.append((first, first + count, raw_batch(first, count, size)))
        self.high_watermark = first + count

    def install(self, broker: Broker) -> None:
        """Have a broker serve this log as partition 0 of any topic."""
        broker.handlers[1] = self.fetch
        broker.handlers[2] = self.list_offsets

    def fetch(self, request: Any, version: int) -> Any:
        planned = self.script.popleft() if self.script else None
        if planned is not None and not isinstance(planned, int):
            return planned(request) if callable(planned) else planned
        topic = request.topics[0]
        wanted = topic.partitions[0]
        data = b""
        code = planned or 0
        if not code and not self.log_start <= wanted.fetch_offset <= self.high_watermark:
            code = 1
        if not code:
            for _, next_offset, raw in self.batches:
                if next_offset > wanted.fetch_offset and len(data) < wanted.partition_max_bytes:
                    data += raw
            if not (self.is_first_whole and len(data) > wanted.partition_max_bytes):
                data = data[: wanted.partition_max_bytes]
            elif self.batches:
                data = self._cut(data, wanted.partition_max_bytes)
        stable = self.high_watermark if self.last_stable_offset is None else self.last_stable_offset
        partition = PartitionData(
            partition_index=wanted.partition,
            error_code=code,
            high_watermark=-1 if code else self.high_watermark,
            last_stable_offset=-1 if code else stable,
            log_start_offset=-1 if code else self.log_start,
            aborted_transactions=self.aborted if request.isolation_level else None,
            records=data,
        )
        return FetchResponse(
            responses=[FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[partition])]
        )

    def _cut(self, data: bytes, limit: int) -> bytes:
        first = 12 + int.from_bytes(data[8:12], "big")
        return data[: max(first, limit)]

    def list_offsets(self, request: Any, version: int) -> Any:
        from odradek.kernel.wire.messages.api_02_list_offsets import (
            ListOffsetsPartitionResponse,
            ListOffsetsResponse,
            ListOffsetsTopicResponse,
        )

        stable = self.high_watermark if self.last_stable_offset is None else self.last_stable_offset
        latest = stable if request.isolation_level else self.high_watermark
        known: dict[int, int] = {-1: latest, -2: self.log_start, -4: self.local_start}
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=one.partition_index,
                            offset=known.get(one.timestamp, 0),
                            timestamp=max(one.timestamp, -1),
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def raw_batch(first: int, count: int, size: int = 200) -> bytes:
    """Return something with the header of a record batch, for who looks at headers only."""
    assert size >= 61
    head = first.to_bytes(8, "big") + (size - 12).to_bytes(4, "big") + (0).to_bytes(4, "big") + b"\x02"
    head += bytes(6) + (count - 1).to_bytes(4, "big")
    return head + bytes(size - len(head))
