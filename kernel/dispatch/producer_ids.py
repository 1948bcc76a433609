"""Shell: producer ids for producers that ask for one, out of blocks that the controller gives.

*Source:* KIP-98, KIP-730 (blocks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..errors import KafkaError, error_code
from ..wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..metadata.controller_calls import ControllerCalls


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
