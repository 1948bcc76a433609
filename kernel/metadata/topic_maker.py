"""Shell: makes topics that somebody asked for without creating them (`auto.create.topics.enable`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import ErrorCode, KafkaError
from ..wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from ..wire.messages.api_19_create_topics import CreateTopicsResponse
    from .image import MetadataImage

log = logging.getLogger(__name__)

SUFFIXES: Final = (".retry", ".dlq")
"""Of topics that may be those of a group's failed records (`kernel/retry/names.py`)."""
WAITING_MAX: Final = 1000
"""How many topics may wait; what is beyond is forgotten: its client asks again."""


class TopicMaker:
    """One task that asks the controller for topics. `create_soon` is called by the reactor's task."""

    def __init__(
        self,
        create: Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]],
        topics: Callable[[str], Sequence[CreatableTopic]],
    ) -> None:
        """Make a maker with nothing to do.

        Args:
            create: Asks the controller.
            topics: Returns what is created where a name is asked for: it, and what goes with it; a KafkaError says
                why that is to be left.
        """
        self._create = create
        self._topics = topics
        self._send, self._receive = trio.open_memory_channel[str](WAITING_MAX)
        self._waiting: set[str] = set()
        self._told: dict[str, str] = {}

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
            try:
                await self._make(self._topics(name))
            except KafkaError as error:
                self._tell(name, error.detail)
            finally:
                self._waiting.discard(name)

    async def _make(self, topics: Sequence[CreatableTopic]) -> None:
        """Create what belongs together; what is there already is left as it is."""
        response = await self._create(CreateTopicsRequest(topics=[*topics], timeout_ms=30_000))
        for result in response.topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                self._tell(result.name, result.error_message)
            else:
                self._told.pop(result.name, None)

    def _tell(self, name: str, why: str | None) -> None:
        """Say why a topic was not created; once, as a client that wants it asks again and again."""
        told = f"topic {name} was not created: {why}"
        if self._told.get(name) == told:
            return
        if len(self._told) >= WAITING_MAX:
            self._told.clear()
        self._told[name] = told
        log.warning("%s", told)


def topics_for(name: str, image: MetadataImage, default_bytes: int) -> list[CreatableTopic]:
    """Return what is created for a name of no internal topic: with defaults, or as its group's failed records want it.

    Args:
        name: What somebody asked for.
        image: As it is now.
        default_bytes: The brokers' `message.max.bytes`.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION: nobody can say whose failed records it is for, or what belongs to it is
            another's.
    """
    if name.endswith(SUFFIXES):
        from .retry_topics import owner_of, topics_of_group  # most clusters do not pay for it

        if (owner := owner_of(name, image)) is not None:
            return topics_of_group(*owner, image, default_bytes)
    return [CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)]
