"""Shell: InitProducerId (key 22): producer ids for idempotent producers, out of blocks that the controller gives.

Transactional ids belong to the transaction coordinator, which a plugin offers; while none does, they are answered as by
a cluster whose coordinator is not there.

*Source:* KIP-98, KIP-360 (epochs in the request), KIP-730 (blocks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ...errors import ErrorCode, KafkaError, error_code
from ...types import NO_EPOCH, NO_PRODUCER_ID
from ...wire.messages.api_22_init_producer_id import InitProducerIdResponse
from ...wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.transactions import Transactions
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_22_init_producer_id import InitProducerIdRequest

FIRST_EPOCH: Final = 0


class ProducerIdSource:
    """Gives out producer ids that no other producer of the cluster has. Safe to use from many tasks."""

    def __init__(self, *, broker_id: int, broker_epoch: Callable[[], int], calls: ControllerCalls) -> None:
        """Make a source without a block; the first id fetches one."""
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._calls = calls
        self._next_id = 0
        self._end = 0
        self._lock = trio.Lock()

    def __repr__(self) -> str:
        return f"ProducerIdSource(next {self._next_id}, until {self._end})"

    async def new_producer_id(self) -> int:
        """Return a producer id. If it is cancelled, at most a block of ids is lost.

        Raises:
            KafkaError: The controller cannot give a block now.
        """
        while self._next_id >= self._end:
            async with self._lock:
                if self._next_id >= self._end:
                    request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
                    block = await self._calls.ask(request)
                    if block.error_code:
                        raise KafkaError(error_code(block.error_code), "the controller gives no producer ids")
                    self._next_id = block.producer_id_start
                    self._end = block.producer_id_start + block.producer_id_len
        self._next_id += 1
        return self._next_id - 1


class InitProducerIdHandler:
    """Answers InitProducerId; with a transactional id, the transaction coordinator does."""

    api_key = 22

    def __init__(self, *, producer_ids: ProducerIdSource, transactions: Callable[[], Transactions | None]) -> None:
        """Make the handler.

        Args:
            producer_ids: For producers without a transactional id.
            transactions: Returns the transaction coordinator, where there is one.
        """
        self._producer_ids = producer_ids
        self._transactions = transactions

    async def handle_async(self, request: InitProducerIdRequest, context: RequestContext) -> Answer:
        """Answer with a fresh id; at once but for the first of a block. Cancelled: the broker is stopping."""
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
            return _failed(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            if not request.transactional_id:
                return _failed(ErrorCode.INVALID_REQUEST)
            transactions = self._transactions()
            if transactions is None:
                return _failed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return await transactions.init_producer_id(request, context)
        producer_id = await self._producer_ids.new_producer_id()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)

    def error_response(
        self, request: InitProducerIdRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return _failed(code)


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
