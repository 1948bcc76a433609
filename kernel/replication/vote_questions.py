"""Shell: what other brokers ask of elections here, until it is answered, or cannot be any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import trio

from ..errors import ErrorCode

if TYPE_CHECKING:
    from uuid import UUID

    from ..partitions.replica import Replica
    from ..types import TopicIdPartition
    from ..wire.message import Message
    from .vote_messages import Part


class Asked:
    """A request of many partitions, and what is answered of it by now. Owned by who waits for it."""

    def __init__(self) -> None:
        """Begin with no answer."""
        self.open_ids: set[int] = set()
        self.answers: list[tuple[UUID | None, Message]] = []
        self._done = trio.Event()

    def refuse(self, part: Part, error: ErrorCode) -> None:
        """Have one of its partitions refused."""
        self.answers.append((part.topic_id, part.refused(error)))

    def end(self, correlation_id: int) -> None:
        """Take note that one of its questions is not open any more."""
        self.open_ids.discard(correlation_id)
        if not self.open_ids:
            self._done.set()

    async def wait(self) -> None:
        """Wait until nothing is open any more. Cancelled: what there is stays."""
        if self.open_ids:
            self._done = trio.Event()
            await self._done.wait()


class _Question(NamedTuple):
    asked: Asked
    replica: Replica
    part: Part


class Questions:
    """What is open. Owned by `VotingReplicas`; any task of the run may call."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open: dict[int, _Question] = {}
        self._ids: dict[Replica, set[int]] = {}
        self._last_id = 0

    def __repr__(self) -> str:
        return f"<Questions: {len(self._open)} open>"

    def open(self, asked: Asked, replica: Replica, part: Part) -> int:
        """Take note of a question to a replica's election, and return by which id it is answered."""
        self._last_id += 1
        self._open[self._last_id] = _Question(asked, replica, part)
        self._ids.setdefault(replica, set()).add(self._last_id)
        asked.open_ids.add(self._last_id)
        return self._last_id

    def answer(self, correlation_id: int, partition: TopicIdPartition, message: Message) -> None:
        """Give an answer to who asked, if it still waits."""
        question = self._end(correlation_id)
        if question is not None:
            question.asked.answers.append((partition.topic_id, message))
            question.asked.end(correlation_id)

    def close(self, replica: Replica) -> None:
        """Refuse what is asked of a replica that answers nothing any more."""
        for correlation_id in sorted(self._ids.get(replica, ())):
            question = self._end(correlation_id)
            if question is not None:
                question.asked.refuse(question.part, ErrorCode.KAFKA_STORAGE_ERROR)
                question.asked.end(correlation_id)

    def forget(self, asked: Asked) -> None:
        """Take note that somebody does not wait any more."""
        for correlation_id in asked.open_ids:
            self._end(correlation_id)

    def _end(self, correlation_id: int) -> _Question | None:
        question = self._open.pop(correlation_id, None)
        if question is not None:
            ids = self._ids[question.replica]
            ids.discard(correlation_id)
            if not ids:
                del self._ids[question.replica]
        return question
