"""Pure core: a consumer's fetch session with one broker: only what changed is asked for, only news is answered.

    epoch 0: everything is named -> the broker gives an id -> epoch 1, 2, ...: what is new, moved or no longer wanted

A session that failed in any way begins again: epoch 0 with the old id closes what may still be there. At the end epoch
-1 does, so that the broker need not keep it until others want its place.

*Source:* `FetchSessionHandler` of Kafka 4.3; KIP-227, KIP-516.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..errors import ErrorCode, error_code
from ..types import CONSUMER_REPLICA_ID, TopicPartition
from ..wire.messages.api_01_fetch import FetchRequest, ForgottenTopic

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from ..wire.messages.api_01_fetch import FetchPartition, FetchResponse

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1


@attrs.frozen
class Wish:
    """One partition that is wanted, and how.

    Attributes:
        topic_id: Of its topic.
        partition: What the request says.
    """

    topic_id: uuid.UUID
    partition: FetchPartition

    @property
    def key(self) -> tuple[object, ...]:
        """What the broker remembers."""
        part = self.partition
        return (
            self.topic_id,
            part.fetch_offset,
            part.current_leader_epoch,
            part.partition_max_bytes,
            part.last_fetched_epoch,
            part.log_start_offset,
        )


@attrs.define
class FetchSessionHandler:
    """The session with one broker; one request at a time.

    Attributes:
        session_id: As the broker gave it; 0 for none.
        epoch: Of the next request.
    """

    session_id: int = NO_SESSION
    epoch: int = FIRST_EPOCH
    _was_refused: bool = attrs.field(default=False, init=False)
    _known: Mapping[TopicPartition, Wish] = attrs.field(factory=dict, init=False)

    @property
    def is_incremental(self) -> bool:
        """Whether the next request names only what changed."""
        return self.epoch != FIRST_EPOCH

    @property
    def is_settled(self) -> bool:
        """Whether the last answer gave a session, or said that there is none: the next request is none that begins."""
        return self.is_incremental or self._was_refused

    def plan(self, wanted: Mapping[TopicPartition, Wish]) -> tuple[Mapping[TopicPartition, Wish], list[ForgottenTopic]]:
        """Return what to name in the next request, and what to forget; `wanted` is kept, and must not change."""
        known, self._known = self._known, wanted
        if not self.is_incremental:
            return wanted, []
        if known is wanted:
            return {}, []
        named = {
            partition: wish
            for partition, wish in wanted.items()
            if (before := known.get(partition)) is not wish and (before is None or before.key != wish.key)
        }
        forgotten: dict[tuple[str, uuid.UUID], ForgottenTopic] = {}
        for partition, wish in known.items():
            now = wanted.get(partition)
            # A topic that was made anew is another one, though it has the same name.
            if now is not wish and (now is None or now.topic_id != wish.topic_id):
                topic = (partition.topic, wish.topic_id)
                gone = forgotten.setdefault(topic, ForgottenTopic(topic=topic[0], topic_id=topic[1], partitions=[]))
                gone.partitions.append(partition.partition)
        return named, list(forgotten.values())

    def answered(self, response: FetchResponse) -> bool:
        """Take an answer over; return whether it is one to the request, not an error of the session."""
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
            self.failed()
            return False
        self._was_refused = response.session_id == NO_SESSION
        if self._was_refused:
            self.session_id, self.epoch = NO_SESSION, FIRST_EPOCH
        else:
            self.session_id = response.session_id
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        return True

    def end(self) -> FetchRequest | None:
        """Return the request that closes the session for good; None if there is none."""
        session_id, self.session_id = self.session_id, NO_SESSION
        self.failed()
        if session_id == NO_SESSION:
            return None
        return FetchRequest(
            replica_id=CONSUMER_REPLICA_ID, max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=FINAL_EPOCH
        )

    def failed(self) -> None:
        """Begin again with the next request."""
        self.epoch = FIRST_EPOCH
        self._was_refused = False
        self._known = {}
