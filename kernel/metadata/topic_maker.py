"""Shell: makes topics that somebody asked for without creating them (`auto.create.topics.enable`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import ErrorCode, KafkaError
from ..wire.messages.api_19_create_topics import CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ..wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsResponse

log = logging.getLogger(__name__)

WAITING_MAX: Final = 1000
"""How many topics may wait; what is beyond is forgotten: its client asks again."""


class TopicMaker:
    """One task that asks the controller for topics. `create_soon` is called by the reactor's task."""

    def __init__(
        self,
        create: Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]],
        topic: Callable[[str], CreatableTopic],
    ) -> None:
        """Make a maker with nothing to do.

        Args:
            create: Asks the controller.
            topic: Returns how the topic of a name is created.
        """
        self._create = create
        self._topic = topic
        self._send, self._receive = trio.open_memory_channel[str](WAITING_MAX)
        self._waiting: set[str] = set()

    def create_soon(self, names: Iterable[str]) -> None:
        """Ask for topics, without waiting; a name that waits already is not asked for twice."""
        for name in names:
            if name in self._waiting:
                continue
            try:
                self._send.send_nowait(name)
            except trio.WouldBlock:
                return
            self._waiting.add(name)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Create what is asked for, until cancelled: what waits then is not created."""
        task_status.started()
        async for name in self._receive:
            request = CreateTopicsRequest(topics=[self._topic(name)], timeout_ms=30_000)
            try:
                response = await self._create(request)
            except KafkaError as error:
                log.warning("topic %s was not created: %s", name, error.detail)
            else:
                (result,) = response.topics
                if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    log.warning("topic %s was not created: %s", name, result.error_message)
            finally:
                self._waiting.discard(name)
