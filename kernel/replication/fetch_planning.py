"""Pure core: which partitions a fetcher asks its leader for next, and from where."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from ..peers.fetch_session_handler import Wish
from ..types import NO_EPOCH
from ..wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ..wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from .throttling import names_replica

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence

    from ..contracts.storage import PartitionLog
    from ..partitions.replica import Replica
    from ..types import TopicPartition
    from ..wire.messages.api_01_fetch import ForgottenTopic
    from .settings import FetcherSettings


SLOW_MS: Final = 100
"""How soon a replica is looked at again that is throttled, or waits for a flush."""
SLOW_VOTER_MS: Final = 500
"""How often one that votes is asked for all the same, for a batch: who never asks for it does not hear who leads it."""
SLOW_VOTER_BYTES: Final = 1
PLANNED_MS_MAX: Final = 5000
"""So long a leader may not hear where a follower's log begins by now: it is asked before records are deleted."""


def fetcher_number(partition: TopicPartition, fetchers_count: int) -> int:
    """Return which of a leader's fetchers has a partition: those of one topic are spread over all."""
    return (zlib.crc32(partition.topic.encode()) + partition.partition) % fetchers_count


@attrs.define(eq=False)
class Followed:
    """A partition that a fetcher follows.

    Attributes:
        replica: This broker's.
        broker_id: This broker.
        failures_count: How often in a row it could not be fetched.
        due_ms: Before that time it is not asked for.
        is_beginning: Whether its log is to begin at the remote store's part: it is not asked for meanwhile.
        is_in_sync: Whether it had all that was committed when it was asked for last, and before that whether it is in
            the in-sync set: then it is never throttled.
        slow_due_ms: When it is asked for next while it is throttled, if it votes.
    """

    replica: Replica
    broker_id: int
    failures_count: int = 0
    due_ms: int = 0
    is_beginning: bool = False
    is_in_sync: bool = attrs.field(init=False)
    slow_due_ms: int = attrs.field(default=0, init=False)
    _wish: Wish | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        state = self.replica.state
        self.is_in_sync = state is not None and self.broker_id in state.isr

    @property
    def is_throttled(self) -> bool:
        """Whether its topic's `follower.replication.throttled.replicas` names it."""
        replica = self.replica
        return names_replica(replica.settings.throttled_followers, replica.partition.partition, self.broker_id)

    def wish(self, bytes_max: int) -> Wish:
        """Return what is to be asked for it now; the same object as long as nothing has changed.

        It is asked for what follows on what is kept as its topic wants it: that is what its leader takes from it.
        """
        replica = self.replica
        log = replica.log
        offset, leader_epoch, last_epoch = log.log_end_offset, replica.leader_epoch, log.latest_epoch
        if replica.appended_offset < offset:
            offset = replica.appended_offset
            last_epoch = _epoch_below(log, offset)
        known = self._wish
        if (
            known is None
            or known.partition.fetch_offset != offset
            or known.partition.current_leader_epoch != leader_epoch
            or known.partition.last_fetched_epoch != last_epoch
            or known.partition.log_start_offset != log.log_start_offset
            or known.partition.partition_max_bytes != bytes_max
        ):
            known = self._wish = Wish(
                replica.partition.topic_id,
                FetchPartition(
                    partition=replica.partition.partition,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=last_epoch,
                    log_start_offset=log.log_start_offset,
                    partition_max_bytes=bytes_max,
                ),
            )
        return known

    def may_take(self, asked: Wish) -> bool:
        """Return whether the replica still follows as it did when it asked, so that an answer means anything to it."""
        replica = self.replica
        return (
            replica.offline_reason is None
            and not replica.is_leader
            and replica.leader_epoch == asked.partition.current_leader_epoch
        )


class Wanted(NamedTuple):
    """What is to be asked for now.

    Attributes:
        wishes: For each of them.
        next_due_ms: When to look again, at the latest: the first of the others is due. None when none is.
        has_slow: Whether any is throttled, or waits for a flush: such a one is asked for now and then, if it votes.
    """

    wishes: dict[TopicPartition, Wish]
    next_due_ms: int | None
    has_slow: bool


class Plan:
    """What a fetcher asks for, kept as long as nothing of it has changed. Owned by the fetcher.

    Where nothing happens it asks for the same again and again: for a thousand partitions it sees to it that each is
    still served here, and no more. Where few move, as records come for them, only these are looked at. What changes
    without its doing, as where a log begins, it finds out in time.

    Attributes:
        is_stale: Whether something has changed: set by the fetcher, for what it does itself.
        moved: What was told of since, and is to be asked for as all others are: added by the fetcher.
        has_slow: See `Wanted.has_slow`.
    """

    def __init__(self, followed: Mapping[TopicPartition, Followed]) -> None:
        """Begin with nothing planned of what is followed."""
        self._followed = followed
        self._wanted: dict[TopicPartition, Wish] = {}
        self._bytes_max = self._due_ms = 0
        self.is_stale, self.has_slow = True, False
        self.moved: set[TopicPartition] = set()

    def now(
        self, now_ms: int, bytes_max: int, *, is_throttling: bool = False
    ) -> tuple[Mapping[TopicPartition, Wish], int | None]:
        """See `wanted_now`; the same object as long as the same is asked for: it does not change."""
        is_kept = not self.is_stale and not is_throttling and bytes_max == self._bytes_max
        if is_kept and now_ms < self._due_ms and self._are_served() and self._has_followed(bytes_max):
            return self._wanted, None
        self.moved.clear()
        wanted, next_due_ms, has_slow = wanted_now(self._followed, now_ms, bytes_max, is_throttling=is_throttling)
        if wanted != self._wanted:
            self._wanted = wanted
        self._bytes_max, self._due_ms = bytes_max, now_ms + PLANNED_MS_MAX
        self.has_slow = has_slow
        self.is_stale = is_throttling or has_slow or len(wanted) < len(self._followed)
        return self._wanted, next_due_ms

    def _has_followed(self, bytes_max: int) -> bool:
        """Take over where those are that have moved; return whether each is to be asked for at once."""
        wishes = {}
        for partition in self.moved:
            each = self._followed[partition]
            if each.replica.appended_offset < each.replica.log.log_end_offset:
                return False
            wish = each.wish(bytes_max)
            if wish is not self._wanted[partition]:
                wishes[partition] = wish
        self.moved.clear()
        if wishes:
            self._wanted = {**self._wanted, **wishes}  # the one before does not change
        return True

    def _are_served(self) -> bool:
        for each in self._followed.values():
            if each.replica.offline_reason is not None or each.replica.is_leader:
                return False
        return True


def wanted_now(
    followed: Mapping[TopicPartition, Followed], now_ms: int, bytes_max: int, *, is_throttling: bool = False
) -> Wanted:
    """Return what is to be asked for now.

    What waits for a flush is not, as whoever is throttled: to ask for more would say that all before is kept.

    Args:
        followed: All that is followed.
        now_ms: The monotonic clock.
        bytes_max: How much of one partition an answer brings.
        is_throttling: Whether replicas that are throttled, and behind, have to wait.
    """
    wanted: dict[TopicPartition, Wish] = {}
    next_due_ms: int | None = None
    has_slow = False
    for partition, each in followed.items():
        replica = each.replica
        if replica.offline_reason is not None or replica.is_leader or each.is_beginning:
            continue
        due_ms, most_bytes = each.due_ms, bytes_max
        is_unflushed = replica.appended_offset < replica.log.log_end_offset
        if is_unflushed or (is_throttling and not each.is_in_sync and each.is_throttled):
            has_slow, most_bytes = True, SLOW_VOTER_BYTES
            if due_ms <= now_ms:  # who is held back does not have his turn, and keeps it
                due_ms = _slow_due_ms(each, now_ms)
        if due_ms > now_ms:
            next_due_ms = due_ms if next_due_ms is None else min(next_due_ms, due_ms)
        else:
            wanted[partition] = each.wish(most_bytes)
    if has_slow:  # what was flushed is to be told soon
        next_due_ms = now_ms + SLOW_MS if next_due_ms is None else min(next_due_ms, now_ms + SLOW_MS)
    return Wanted(wanted, next_due_ms, has_slow)


def asked_slowly(wanted: Mapping[TopicPartition, Wish], replica: Replica) -> bool:
    """Return whether a replica was asked for as those are that are slow: the next requests may be without it."""
    asked = wanted.get(replica.topic_partition)
    return asked is not None and asked.partition.partition_max_bytes == SLOW_VOTER_BYTES


def _slow_due_ms(followed: Followed, now_ms: int) -> int:
    """Return when a replica is asked for that is to be slow, or is flushed; who votes now and then at once."""
    if followed.replica.voting is None or now_ms < followed.slow_due_ms:
        return now_ms + SLOW_MS
    followed.slow_due_ms = now_ms + SLOW_VOTER_MS
    return now_ms


def _epoch_below(log: PartitionLog, offset: int) -> int:
    """Return the epoch of the last record below an offset, or of where the log begins; -1 where it does not know it."""
    for epoch, start_offset in reversed(log.epoch_entries()):
        if start_offset < offset or start_offset == log.log_start_offset:
            return epoch
    return NO_EPOCH


def offset_request(replica: Replica, replica_id: int, timestamp: int) -> ListOffsetsRequest:
    """Return the question where the leader's log has a timestamp, or what a special one stands for."""
    part = ListOffsetsPartition(
        partition_index=replica.partition.partition, current_leader_epoch=replica.leader_epoch, timestamp=timestamp
    )
    topic = ListOffsetsTopic(name=replica.partition.topic, partitions=[part])
    return ListOffsetsRequest(replica_id=replica_id, topics=[topic])


def fetch_request(
    settings: FetcherSettings,
    state: ReplicaState,
    session: tuple[int, int],
    named: Mapping[TopicPartition, Wish],
    forgotten: Sequence[ForgottenTopic],
) -> FetchRequest:
    """Return a follower's Fetch.

    Args:
        settings: How much, how long.
        state: Who asks.
        session: Its id and epoch.
        named: What is new or has moved.
        forgotten: What is no longer wanted.
    """
    session_id, session_epoch = session
    topics: dict[uuid.UUID, FetchTopic] = {}
    for partition, wish in named.items():
        topic = topics.get(wish.topic_id)
        if topic is None:
            topic = topics[wish.topic_id] = FetchTopic(topic=partition.topic, topic_id=wish.topic_id, partitions=[])
        topic.partitions.append(wish.partition)
    return FetchRequest(
        replica_state=state,
        max_wait_ms=settings.wait_ms_max,
        min_bytes=settings.bytes_min,
        max_bytes=settings.response_bytes_max,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=list(topics.values()),
        forgotten_topics_data=list(forgotten),
    )
