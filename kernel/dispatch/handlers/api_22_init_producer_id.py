"""Pure core: InitProducerId (key 22): producer ids for idempotent producers.

Transactional ids belong to the transaction coordinator, which a plugin offers; while none does, they are answered as by
a cluster whose coordinator is not there.

*Source:* KIP-98, KIP-360 (epochs in the request).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode
from ...types import NO_EPOCH, NO_PRODUCER_ID
from ...wire.messages.api_22_init_producer_id import InitProducerIdResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.transactions import Transactions
    from ...wire.messages.api_22_init_producer_id import InitProducerIdRequest
    from ..producer_ids import ProducerIdSource

FIRST_EPOCH: Final = 0


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
            return await context.wait_aside(lambda: transactions.init_producer_id(request, context))
        producer_id = await context.wait_aside(self._producer_ids.new_producer_id)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)

    def error_response(
        self, request: InitProducerIdRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return _failed(code)


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
