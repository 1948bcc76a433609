"""Shell: two brokers that share one partition, whose leader moves when a test says so; over real TCP."""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import trio

from odradek.kernel import wire
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages import api_00_produce as produce
from odradek.kernel.wire.messages import api_01_fetch as fetch
from odradek.kernel.wire.messages import api_02_list_offsets as offsets
from odradek.kernel.wire.messages import api_03_metadata as metadata
from odradek.kernel.wire.messages import api_23_offset_for_leader_epoch as epochs
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsResponse
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdResponse

from .offered_versions import every_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_VERSIONS_MAX = {0: 12, 1: 12}


@attrs.define
class FakeCluster:
    """What it does, and what it saw.

    Attributes:
        leader: The node that leads the partition: 1 or 2.
        leader_epoch: Of that leader.
        told_leader: What Metadata says, where that lags behind.
        hints: Whether answers name the new leader (KIP-951).
        batches: First offset, leader epoch and bytes of each batch.
        session_id: What Fetch answers; 0 for no sessions.
        fetch_errors: Top-level errors of the next fetches.
        throttles_ms: What the next answers to Produce ask for.
        asked: API key and node of each request, in order.
        fetches: Session epochs and partitions named, of each Fetch.
    """

    leader: int = 1
    leader_epoch: int = 0
    told_leader: int | None = None
    hints: bool = True
    batches: list[tuple[int, int, bytes]] = attrs.field(factory=list)
    session_id: int = 0
    fetch_errors: deque[ErrorCode] = attrs.field(factory=deque)
    throttles_ms: deque[int] = attrs.field(factory=deque)
    asked: list[tuple[int, int]] = attrs.field(factory=list)
    fetches: list[tuple[int, int]] = attrs.field(factory=list)
    ports: dict[int, int] = attrs.field(factory=dict)

    @property
    def bootstrap(self) -> str:
        """For `bootstrap.servers`."""
        return f"127.0.0.1:{self.ports[1]}"

    @property
    def end_offset(self) -> int:
        """The next offset of the log."""
        return self.batches[-1][0] + 1 if self.batches else 0

    def append(self, *values: bytes) -> None:
        """Append records, each in a batch of its own, in the present epoch."""
        for value in values:
            offset = self.end_offset
            builder = BatchBuilder(base_offset=offset, partition_leader_epoch=self.leader_epoch)
            builder.append(None, value, timestamp=1)
            self.batches.append((offset, self.leader_epoch, bytes(builder.build())))

    def move(self, leader: int, *, keeps: int | None = None) -> None:
        """Have another node lead, in the next epoch; it has only the first records, if so told."""
        self.leader = leader
        self.leader_epoch += 1
        if keeps is not None:
            del self.batches[keeps:]

    async def serve(self, node: int, stream: trio.SocketStream) -> None:
        """Answer one connection until it ends."""
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
                    body = bytes(frame)
                    header = wire.decode_request_header(body)
                    self.asked.append((header.api_key, node))
                    request: Any = wire.decode(
                        wire.APIS[header.api_key].request, body[header.size_bytes :], version=header.api_version
                    )
                    response = self._answer(node, header.api_key, request)
                    if header.api_key == 1 and not any(
                        item.records for topic in response.responses for item in topic.partitions
                    ):
                        await trio.sleep(0.005)
                    await stream.send_all(
                        wire.encode_response(response, header.api_version, header.correlation_id).join()
                    )

    def _answer(self, node: int, api_key: int, request: Any) -> Any:
        answers: dict[int, Any] = {
            0: self._produce,
            1: self._fetch,
            2: self._list_offsets,
            3: self._metadata,
            18: self._api_versions,
            22: lambda *_: InitProducerIdResponse(producer_id=7, producer_epoch=0),
            23: self._end_of_epoch,
        }
        return answers[api_key](node, request)

    def _api_versions(self, node: int, request: Any) -> ApiVersionsResponse:
        return every_api(_VERSIONS_MAX)

    def _metadata(self, node: int, request: Any) -> metadata.MetadataResponse:
        leader = self.leader if self.told_leader is None else self.told_leader
        epoch = self.leader_epoch if self.told_leader is None else self.leader_epoch - 1
        partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
        return metadata.MetadataResponse(
            brokers=[
                metadata.MetadataResponseBroker(node_id=number, host="127.0.0.1", port=port)
                for number, port in self.ports.items()
            ],
            topics=[metadata.MetadataResponseTopic(name="t", partitions=[partition])],
        )

    def _judge(self, node: int, current_leader_epoch: int) -> ErrorCode:
        if node != self.leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if 0 <= current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if current_leader_epoch > self.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE

    def _produce(self, node: int, request: Any) -> produce.ProduceResponse:
        code = self._judge(node, -1)
        item = produce.PartitionProduceResponse(index=0, error_code=code, base_offset=self.end_offset)
        if code:
            item.base_offset = -1
            if self.hints:
                item.current_leader = produce.LeaderIdAndEpoch(leader_id=self.leader, leader_epoch=self.leader_epoch)
        else:
            self.append(b"produced")
        topic = produce.TopicProduceResponse(name="t", partition_responses=[item])
        throttle_ms = self.throttles_ms.popleft() if self.throttles_ms else 0
        return produce.ProduceResponse(responses=[topic], throttle_time_ms=throttle_ms)

    def _fetch(self, node: int, request: Any) -> fetch.FetchResponse:
        named = [item for topic in request.topics for item in topic.partitions]
        self.fetches.append((request.session_epoch, len(named)))
        if self.fetch_errors:
            return fetch.FetchResponse(error_code=self.fetch_errors.popleft())
        answered = [self._fetch_partition(node, item) for item in named]
        topic = fetch.FetchableTopicResponse(topic="t", partitions=answered)
        return fetch.FetchResponse(responses=[topic] if named else [], session_id=self.session_id)

    def _fetch_partition(self, node: int, asked: Any) -> fetch.PartitionData:
        code = self._judge(node, asked.current_leader_epoch)
        if code:
            hint = None
            if self.hints and code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                hint = fetch.LeaderIdAndEpoch(leader_id=self.leader, leader_epoch=self.leader_epoch)
            return fetch.PartitionData(error_code=code, high_watermark=-1, current_leader=hint)
        if asked.fetch_offset > self.end_offset:
            return fetch.PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1)
        records = b"".join(data for offset, _, data in self.batches if offset >= asked.fetch_offset)
        return fetch.PartitionData(high_watermark=self.end_offset, records=records)

    def _list_offsets(self, node: int, request: Any) -> offsets.ListOffsetsResponse:
        (asked,) = request.topics[0].partitions
        code = self._judge(node, asked.current_leader_epoch)
        offset = 0 if asked.timestamp == -2 else self.end_offset
        item = offsets.ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=-1 if code else offset)
        return offsets.ListOffsetsResponse(topics=[offsets.ListOffsetsTopicResponse(name="t", partitions=[item])])

    def _end_of_epoch(self, node: int, request: Any) -> epochs.OffsetForLeaderEpochResponse:
        (asked,) = request.topics[0].partitions
        code = self._judge(node, asked.current_leader_epoch)
        kept = [(offset, epoch) for offset, epoch, _ in self.batches if epoch <= asked.leader_epoch]
        item = epochs.EpochEndOffset(error_code=code, partition=0)
        if kept and not code:
            item.leader_epoch, item.end_offset = kept[-1][1], kept[-1][0] + 1
        topic = epochs.OffsetForLeaderTopicResult(topic="t", partitions=[item])
        return epochs.OffsetForLeaderEpochResponse(topics=[topic])


@asynccontextmanager
async def fake_cluster(**values: Any) -> AsyncIterator[FakeCluster]:
    """Run two brokers for the time of an `async with`."""
    cluster = FakeCluster(**values)
    async with trio.open_nursery() as nursery:
        for node in (1, 2):
            listeners = await nursery.start(partial(trio.serve_tcp, partial(cluster.serve, node), 0, host="127.0.0.1"))
            cluster.ports[node] = listeners[0].socket.getsockname()[1]
        yield cluster
        nursery.cancel_scope.cancel()
