"""Shell: who coordinates a group or a transactional id: found by asking the least loaded broker, kept until in doubt.

The coordinator is spoken to over a connection of its own: a fetch that waits for records, or a join that waits for
others, would keep heartbeats waiting, for a broker answers one connection in order.

*Source:* FindCoordinator; `AbstractCoordinator.lookupCoordinator` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

from ..cluster import Node
from ..errors import BrokerError
from ..links import coordinator_link

if TYPE_CHECKING:
    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.wire import Message

    from ..brokers import Brokers

_VERSION_WITH_ONE_KEY: Final = 3
_REFUSED: Final = frozenset(
    {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class KeyType(IntEnum):
    """What is coordinated."""

    GROUP = 0
    TRANSACTION = 1


class CoordinatorLink:
    """The way to one coordinator; any number of tasks may use it.

    Attributes:
        brokers: Of its cluster.
    """

    def __init__(self, brokers: Brokers, key: str, key_type: KeyType, backoff: Backoff) -> None:
        """Remember; nothing is asked yet."""
        self.brokers = brokers
        self._key = key
        self._key_type = key_type
        self._backoff = backoff
        self._node_id: int | None = None
        self._lookup = trio.Lock()

    @property
    def node_id(self) -> int | None:
        """The coordinating broker; None while it is not known."""
        return self._node_id

    def forget(self) -> None:
        """Take note that somebody else may coordinate by now."""
        self._node_id = None

    async def find(self) -> int:
        """Return the coordinator's broker id, however long it takes to find one.

        Raises:
            BrokerError: The key may not be used.

        Cancelled, nothing is lost.
        """
        failures_count = 0
        async with self._lookup:  # one question for all who want to know
            while (node_id := self._node_id) is None:
                try:
                    self._node_id = await self._ask()
                except ClientError as error:
                    if not error.retriable:
                        raise
                    failures_count += 1
                    await trio.sleep(self._backoff.pause_ms(failures_count) / 1_000)
        return node_id

    async def _ask(self) -> int:
        request = FindCoordinatorRequest(key=self._key, key_type=self._key_type)
        response: FindCoordinatorResponse = await self.brokers.request_any(request, version_max=_VERSION_WITH_ONE_KEY)
        code = error_code(response.error_code)
        if code is ErrorCode.NONE:
            self.brokers.cluster.add_nodes([Node(response.node_id, response.host, response.port)])
            return response.node_id
        error = BrokerError(code, f"the coordinator of {self._key!r}: {response.error_message or code.text}")
        error.retriable = code not in _REFUSED
        raise error

    async def request(
        self,
        message: Message,
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        is_urgent: bool = False,
    ) -> Any:
        """Ask the coordinator, once it is found.

        Args:
            message: The request.
            timeout_ms: For the answer; `request.timeout.ms` when None.
            version_max: Speak no newer version.
            is_urgent: Whether it must not wait behind what the coordinator still owes an answer to.

        Raises:
            ConnectionFailedError: It could not be reached; another will be looked for.
            BrokerError: The key may not be used.
            UnsupportedVersionError: It does not know the request.

        Cancelled, whether the coordinator does the request is unknown.
        """
        node_id = await self.find()
        link = node_id if is_urgent else coordinator_link(node_id)
        try:
            return await self.brokers.request(link, message, timeout_ms=timeout_ms, version_max=version_max)
        except ConnectionFailedError:
            self.forget()
            raise

    def __repr__(self) -> str:
        return f"<CoordinatorLink of {self._key!r}: {'unknown' if self._node_id is None else self._node_id}>"
