"""Pure core: one partition that a Fetch wants to read, in or out of a session, and what its reader was last told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from ..classes import define

if TYPE_CHECKING:
    import uuid

    from ..partitions.quiet_followers import QuietFollower
    from ..partitions.replica import Replica
    from ..wire.messages.api_01_fetch import FetchPartition, PartitionData

_NOTHING_TOLD: Final = -1

TargetKey: TypeAlias = "tuple[str | int, int]"
"""(topic name, or topic id as a number; partition): a UUID's own hash is ten times slower."""


@define(eq=False)
class FetchTarget:
    """A partition that a client wants to read, as its last request that named it says.

    Attributes:
        key: Its key in a session.
        topic: Its topic's name, empty from v13 on.
        topic_id: Its topic's id, zero up to v12.
        partition: Its number.
        current_leader_epoch: What the client takes for the leader's epoch, -1 when it does not say.
        fetch_offset: Where to read.
        last_fetched_epoch: Of the last record that the client has, -1 when it does not say.
        max_bytes: At most so many, but for a first batch.
        follower_log_start_offset: A follower's own, -1 for a consumer.
        noted_log_start_offset: The follower's that was taken note of last.
        told_high_watermark: What the session's last answer said, -1 for nothing yet.
        told_log_start_offset: The same.
        replica: The reader's: where it was found last; to be looked up again once that leads no more.
        quiet: What is known of a follower that has all there is, as long as its fetches repeat that.
    """

    key: TargetKey
    topic: str
    topic_id: uuid.UUID
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    max_bytes: int
    follower_log_start_offset: int
    noted_log_start_offset: int = _NOTHING_TOLD
    told_high_watermark: int = _NOTHING_TOLD
    told_log_start_offset: int = _NOTHING_TOLD
    replica: Replica | None = None
    quiet: QuietFollower | None = None

    def change(self, wanted: FetchPartition) -> None:
        """Take over what a later request of the session says."""
        self.end_quiet()
        self.current_leader_epoch = wanted.current_leader_epoch
        self.fetch_offset = wanted.fetch_offset
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.max_bytes = wanted.partition_max_bytes
        self.follower_log_start_offset = wanted.log_start_offset

    def end_quiet(self) -> None:
        """Take note that the follower says something new, or nothing any more."""
        if self.quiet is not None:
            self.quiet.end()
            self.quiet = None

    def is_told_all_of(self, replica: Replica) -> bool:
        """Return whether a reader who has all records of a replica, in its epoch, was told all the rest."""
        return (
            self.told_high_watermark == replica.high_watermark
            and self.told_log_start_offset == replica.log.log_start_offset
            and self.max_bytes >= 0
        )

    def is_news(self, answer: PartitionData) -> bool:
        """Return whether an incremental answer has to hold this, and take note of what is then told."""
        if answer.error_code:
            # So that the next answer without an error is news, whatever it says.
            self.told_high_watermark = _NOTHING_TOLD
            return True
        is_news = bool(answer.records) or answer.preferred_read_replica >= 0 or answer.diverging_epoch is not None
        if answer.high_watermark != self.told_high_watermark:
            self.told_high_watermark = answer.high_watermark
            is_news = True
        if answer.log_start_offset != self.told_log_start_offset:
            self.told_log_start_offset = answer.log_start_offset
            is_news = True
        return is_news
