"""Shell: a broker that follows a script: what happens to each Produce request, over real TCP, in the test's own run."""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import trio

from odradek.kernel import wire
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.kernel.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdResponse

from .model_partition import ModelPartition
from .offered_versions import every_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

APPEND = "append"
DROP_BEFORE = "drop the connection before the append"
DROP_AFTER = "drop the connection after the append"
SILENT = "append, and never answer"
TIMED_OUT_AFTER = "append, and answer REQUEST_TIMED_OUT"
NOT_LEADER_AFTER = "append, and answer NOT_LEADER_OR_FOLLOWER"
OFFLINE_AFTER = "append, and answer KAFKA_STORAGE_ERROR"
FAILED_AFTER = "append, and answer UNKNOWN_SERVER_ERROR"

_REFUSED_AFTER = {
    TIMED_OUT_AFTER: ErrorCode.REQUEST_TIMED_OUT,
    NOT_LEADER_AFTER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    OFFLINE_AFTER: ErrorCode.KAFKA_STORAGE_ERROR,
    FAILED_AFTER: ErrorCode.UNKNOWN_SERVER_ERROR,
}


@attrs.define
class FakeBroker:
    """What it does, and what it saw.

    Attributes:
        script: What happens to the next Produce requests: a word from above, or an error code; then all are appended.
        partitions_count: Of every topic.
        topic_error: What Metadata says of every topic.
        is_silent: Whether it answers nothing at all.
        partitions: The logs.
        produce_count: How many Produce requests came.
        connections_count: How many connections were made.
        versions_max: Highest versions to advertise, by API key, where not ours.
        hidden: API keys that are not advertised at all.
        versions_refusal: What ApiVersions is answered with in versions above its highest, after the correlation id;
            None for an answer in whatever version was asked.
        versions_asked: In which versions ApiVersions was asked.
        answers: What other APIs are answered with, by key and in turn.
        asked: The keys of the requests that were answered so.
        client_software: What the last client said it is, and of which version.
    """

    script: deque[str | ErrorCode] = attrs.field(factory=deque)
    partitions_count: int = 1
    topic_error: ErrorCode = ErrorCode.NONE
    is_silent: bool = False
    partitions: dict[tuple[str, int], ModelPartition] = attrs.field(factory=dict)
    produce_count: int = 0
    connections_count: int = 0
    versions_max: dict[int, int] = attrs.field(factory=lambda: {0: 12})
    hidden: frozenset[int] = frozenset()
    versions_refusal: bytes | None = None
    versions_asked: list[int] = attrs.field(factory=list)
    answers: dict[int, deque[Any]] = attrs.field(factory=dict)
    asked: list[int] = attrs.field(factory=list)
    client_software: tuple[str, str] = ("", "")
    port: int = 0

    @property
    def bootstrap(self) -> str:
        """For `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    def values(self, topic: str = "t", partition: int = 0) -> list[bytes | None]:
        """What stands in a partition's log."""
        log = self.partitions.get((topic, partition))
        return [] if log is None else log.values

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one connection until it ends."""
        self.connections_count += 1
        frames = wire.FrameBuffer(2**31 - 1)
        async with stream:
            while True:
                try:
                    data = await stream.receive_some()
                except trio.BrokenResourceError:
                    return
                if not data:
                    return
                frames.receive(data)
                while (frame := frames.next_frame()) is not None:
                    if not await self._answer(stream, bytes(frame)):
                        return

    async def _answer(self, stream: trio.SocketStream, frame: bytes) -> bool:
        header = wire.decode_request_header(frame)
        body = frame[header.size_bytes :]
        if self.is_silent:
            return True
        response: Any
        if header.api_key == 18:
            self.versions_asked.append(header.api_version)
            if self.versions_refusal is not None and header.api_version > self.versions_max[18]:
                await stream.send_all(_frame(header.correlation_id, self.versions_refusal))
                return True
            request = wire.decode(ApiVersionsRequest, body, version=header.api_version)
            self.client_software = (request.client_software_name, request.client_software_version)
            response = every_api(self.versions_max, self.hidden)
        elif header.api_key == 3:
            response = self._metadata(wire.decode(MetadataRequest, body, version=header.api_version))
        elif header.api_key == 22:
            response = InitProducerIdResponse(producer_id=7, producer_epoch=0)
        elif header.api_key == 0:
            response = self._produce(wire.decode(ProduceRequest, body, version=header.api_version))
            if response is False:
                return False
        elif self.answers.get(header.api_key):
            self.asked.append(header.api_key)
            response = self.answers[header.api_key].popleft()
        else:
            raise AssertionError(f"API {header.api_key} is not in the script")
        if response is not None:
            encoded = wire.encode_response(response, header.api_version, header.correlation_id)
            await stream.send_all(encoded.join())
        return True

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = [topic.name for topic in request.topics or ()]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)],
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    error_code=self.topic_error,
                    name=name,
                    partitions=[
                        MetadataResponsePartition(partition_index=number, leader_id=1, replica_nodes=[1], isr_nodes=[1])
                        for number in range(0 if self.topic_error else self.partitions_count)
                    ],
                )
                for name in names
            ],
        )

    def _produce(self, request: ProduceRequest) -> ProduceResponse | bool | None:
        self.produce_count += 1
        action = self.script.popleft() if self.script else APPEND
        if action == DROP_BEFORE:
            return False
        topics = []
        for topic in request.topic_data:
            answers = []
            for item in topic.partition_data:
                code, offset = ErrorCode.NONE, -1
                if isinstance(action, ErrorCode):
                    code = action
                else:
                    log = self.partitions.setdefault((topic.name, item.index), ModelPartition())
                    assert item.records is not None
                    code, offset = log.append(item.records)
                if isinstance(action, str) and action in _REFUSED_AFTER:
                    code, offset = _REFUSED_AFTER[action], -1
                answers.append(PartitionProduceResponse(index=item.index, error_code=code, base_offset=offset))
            topics.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
        if action == DROP_AFTER:
            return False
        if action == SILENT or request.acks == 0:
            return None
        return ProduceResponse(responses=topics)


def _frame(correlation_id: int, body: bytes) -> bytes:
    return (4 + len(body)).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body


@asynccontextmanager
async def fake_broker(**values: Any) -> AsyncIterator[FakeBroker]:
    """Run a broker with a script for the time of an `async with`."""
    broker = FakeBroker(**values)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, broker.serve, 0, host="127.0.0.1"))
        broker.port = listeners[0].socket.getsockname()[1]
        yield broker
        nursery.cancel_scope.cancel()
