"""Shell: the coordinator of one producer's transactions of version 1, as strict as Kafka 3's.

coordinator = Coordinator()
brokers.answers.update(coordinator.answers)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import trio

from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import NO_EPOCH
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN = 22, 24, 25, 26


@attrs.define(eq=False)
class Coordinator:
    """What it knows, and how it behaves.

    Attributes:
        epoch: The producer's.
        open: What is part of the open transaction: topics with partition numbers, groups; empty when none is open.
        ended: What was part of each that ended, and whether it was committed.
        lost: How many of the next requests to add something are done, and their answers lost.
        refuses: What requests to add something are answered with while it is set; nothing is added then.
        unknown_topics: Topics whose metadata has not reached it: nothing that is asked together with one is done.
        delay_s: How long requests to add something take.
        knows_ids: Whether InitProducerId is answered.
    """

    epoch: int = NO_EPOCH
    open: set[tuple[str, int] | str] = attrs.field(factory=set)
    ended: list[tuple[set[tuple[str, int] | str], bool]] = attrs.field(factory=list)
    lost: int = 0
    refuses: ErrorCode | None = None
    unknown_topics: set[str] = attrs.field(factory=set)
    delay_s: float = 0
    knows_ids: bool = True

    @property
    def answers(self) -> dict[int, Callable[[Any], Awaitable[Any]]]:
        """What answers each API."""
        return {
            INIT_PRODUCER_ID: self._init,
            ADD_PARTITIONS_TO_TXN: self._add_partitions,
            ADD_OFFSETS_TO_TXN: self._add_offsets,
            END_TXN: self._end,
        }

    async def _init(self, request: InitProducerIdRequest) -> InitProducerIdResponse | None:
        if not self.knows_ids:
            return None
        if request.producer_epoch not in {NO_EPOCH, self.epoch, self.epoch - 1}:
            return InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if request.producer_epoch in {NO_EPOCH, self.epoch}:  # with the one before, it asks once more (KIP-360)
            self.epoch += 1
        return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)

    async def _add(self, epoch: int, items: set[tuple[str, int] | str]) -> ErrorCode | None:
        await trio.sleep(self.delay_s)
        if epoch != self.epoch:
            return ErrorCode.PRODUCER_FENCED
        if self.refuses is not None:
            return self.refuses
        self.open |= items
        if self.lost:
            self.lost -= 1
            return None
        return ErrorCode.NONE

    async def _add_partitions(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse | None:
        topics = request.v3_and_below_topics
        others = ErrorCode.OPERATION_NOT_ATTEMPTED
        if self.unknown_topics.isdisjoint(topic.name for topic in topics):
            items: set[tuple[str, int] | str] = {(each.name, number) for each in topics for number in each.partitions}
            code = await self._add(request.v3_and_below_producer_epoch, items)
            if code is None:
                return None
            others = code
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=number,
                            partition_error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                            if topic.name in self.unknown_topics
                            else others,
                        )
                        for number in topic.partitions
                    ],
                )
                for topic in topics
            ]
        )

    async def _add_offsets(self, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse | None:
        code = await self._add(request.producer_epoch, {request.group_id})
        return None if code is None else AddOffsetsToTxnResponse(error_code=code)

    async def _end(self, request: EndTxnRequest) -> EndTxnResponse:
        if request.producer_epoch != self.epoch:
            return EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if self.open:
            self.ended.append((self.open, request.committed))
            self.open = set()
        elif not self.ended or self.ended[-1][1] != request.committed:
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        return EndTxnResponse()
