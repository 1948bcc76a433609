"""Pure core: fetch sessions, so that a client with a thousand partitions need not name them all in every Fetch.

The client sends its partitions once; afterwards it sends what changed, and gets what changed::

    request (session id, epoch)    what it names          answer                         context
    (0, 0)                         everything             everything, a new session id   FullContext
    (any, 0)                       everything             the same; that session ends    FullContext
    (id, n)    n = 1, 2, ...       added, changed,        what is new                    IncrementalContext
                                   forgotten
    (id, wrong n)                                         INVALID_FETCH_SESSION_EPOCH    ErrorContext
    (unknown id, n)                                       FETCH_SESSION_ID_NOT_FOUND     ErrorContext
    (any, -1)                      everything             everything, session id 0       SessionlessContext

After epoch 2**31 - 1 comes 1. A session goes by topic names (Fetch to v12) or by topic ids (from v13), and stays with
it: FETCH_SESSION_TOPIC_ID_ERROR otherwise.

An incremental answer holds a partition that has records, an error, a diverging epoch, a preferred replica, or whose
high watermark or log start offset is not what was last told. A partition that gave records goes to the end of the
session's order: so that one busy partition cannot starve the others when `max_bytes` cuts the answer.

The handler's part::

    context = cache.open(request, version, now_ms, is_privileged=...)
    answers = [read(target) for target in context.targets]
    response = context.build(answers)

When the cache is full a session is evicted that was not used for two minutes; else the smallest one that is older than
two minutes and smaller than the new one. A follower's session is privileged: it may take the place of any consumer's.
Kafka takes everybody's word for being one; here it has to be a broker, as it is registered now.

When there are as many partitions in sessions as may be, those that were not used for two minutes make room; for a
follower consumers' do, too, the largest first, so that few clients have to name everything again. Where that would not
do, nobody is evicted: a client gets no session, and one that adds more loses its own.

*Source:* KIP-227, KIP-516; Kafka's FetchSession.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from ..classes import define, frozen
from ..errors import ErrorCode
from ..machine.turnstile import run_at_once
from ..partitions.quiet_followers import Stamp
from .fetch_context import NO_SESSION_ID, ErrorContext, FullContext, IncrementalContext, SessionlessContext
from .fetch_target import FetchTarget

if TYPE_CHECKING:
    import random
    import uuid
    from collections.abc import Generator, Iterable, Iterator

    from ..wire.messages.api_01_fetch import FetchPartition, FetchRequest
    from .fetch_context import FetchContext
    from .fetch_target import TargetKey

FULL_EPOCH: Final = 0
SESSIONLESS_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
MIN_EVICTION_MS: Final = 120_000
"""Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""

PARTITIONS_MAX: Final = 1_000_000
"""Of all sessions: some hundred megabytes, several times what followers and consumers of a full broker have."""

EVICTED_AT_ONCE_MAX: Final = 1_000
"""So many sessions that rest, and so many consumers', are looked at for one request: it holds nobody up."""

NEVER_MS: Final = -(1 << 62)
FIRST_VERSION_WITH_IDS: Final = 13

EvictionKey: TypeAlias = tuple[bool, int, int]
"""(is privileged, partitions, session id): the least valuable session first."""


@define(eq=False)
class FetchSession:
    """A client's partitions, in the order they are read. Owned by its cache.

    Attributes:
        session_id: Greater than 0.
        is_privileged: Whether a follower owns it that is known.
        uses_topic_ids: Whether it goes by ids.
        created_ms: When it was made.
        epoch: Of the next request.
        targets: Its partitions.
        last_used_ms: When a request last used it.
        eviction_key: Under which the cache keeps it for eviction, None while it is not kept there.
        stamp: When a follower was heard last that repeated itself.
    """

    session_id: int
    is_privileged: bool
    uses_topic_ids: bool
    created_ms: int
    targets: dict[TargetKey, FetchTarget] = attrs.field(repr=False)
    epoch: int = 1
    last_used_ms: int = 0
    eviction_key: EvictionKey | None = None
    cached_count: int = 0
    stamp: Stamp = attrs.field(factory=lambda: Stamp(NEVER_MS))

    def update_in_steps(self, request: FetchRequest) -> Generator[None, None, None]:
        """Add, change and forget partitions as the request says; a step is one of them."""
        targets = self.targets
        for key, topic, topic_id, wanted in _wanted_partitions(request, self.uses_topic_ids):
            target = targets.get(key)
            if target is None:
                targets[key] = _new_target(key, topic, topic_id, wanted)
            else:
                target.change(wanted)
            yield
        for forgotten in request.forgotten_topics_data:
            topic_key = forgotten.topic_id.int if self.uses_topic_ids else forgotten.topic
            for partition in forgotten.partitions:
                gone = targets.pop((topic_key, partition), None)
                if gone is not None:
                    gone.end_quiet()
                yield


def _wanted_partitions(
    request: FetchRequest, uses_topic_ids: bool
) -> Iterator[tuple[TargetKey, str, uuid.UUID, FetchPartition]]:
    for topic in request.topics:
        topic_key: str | int = topic.topic_id.int if uses_topic_ids else topic.topic
        for wanted in topic.partitions:
            yield (topic_key, wanted.partition), topic.topic, topic.topic_id, wanted


def _new_target(key: TargetKey, topic: str, topic_id: uuid.UUID, wanted: FetchPartition) -> FetchTarget:
    return FetchTarget(
        key,
        topic,
        topic_id,
        wanted.partition,
        wanted.current_leader_epoch,
        wanted.fetch_offset,
        wanted.last_fetched_epoch,
        wanted.partition_max_bytes,
        wanted.log_start_offset,
    )


def _all_targets(request: FetchRequest, uses_topic_ids: bool) -> Generator[None, None, dict[TargetKey, FetchTarget]]:
    """Return what the request names; of a partition named twice the last counts, at the first one's place."""
    targets: dict[TargetKey, FetchTarget] = {}
    for key, topic, topic_id, wanted in _wanted_partitions(request, uses_topic_ids):
        targets[key] = _new_target(key, topic, topic_id, wanted)
        yield
    return targets


@frozen
class FetchSessionStatistics:
    """A picture of the cache: sessions, partitions in them, evictions since the start."""

    sessions_count: int
    partitions_count: int
    evictions_count: int


class FetchSessionCache:
    """The sessions of one broker, in the order of their last use. Owned by the reactor's task."""

    def __init__(
        self,
        *,
        slots: int,
        random_source: random.Random,
        eviction_ms: int = MIN_EVICTION_MS,
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        """Make an empty cache.

        Args:
            slots: `max.incremental.fetch.session.cache.slots`; 0 for no sessions at all.
            random_source: For session ids.
            eviction_ms: How long a session is safe from being evicted by a bigger one.
            partitions_max: How many all sessions may have: where nobody makes room, none is made, and one that grows
                ends.
        """
        self._slots = slots
        self._partitions_max = partitions_max
        self._random = random_source
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}
        self._evictable_by_privileged: list[EvictionKey] = []
        self._evictable_by_all: list[EvictionKey] = []
        self._partitions_count = 0
        self._evictions_count = 0

    def __repr__(self) -> str:
        return f"<FetchSessionCache: {len(self._sessions)} of {self._slots} sessions>"

    def open(self, request: FetchRequest, version: int, now_ms: int, *, is_privileged: bool) -> FetchContext:
        """Find the session that a request belongs to, and take over what it changes.

        Args:
            request: Decoded.
            version: Its version.
            now_ms: The monotonic clock.
            is_privileged: Whether a follower asks that is known.
        """
        return run_at_once(self.open_in_steps(request, version, now_ms, is_privileged=is_privileged))

    def open_in_steps(
        self, request: FetchRequest, version: int, now_ms: int, *, is_privileged: bool
    ) -> Generator[None, None, FetchContext]:
        """Do as `open`; a step is a partition. If it is closed before its end, the session may have some changes.

        Then its epoch is the next one, too: a client that asks again begins a new session.
        """
        uses_topic_ids = version >= FIRST_VERSION_WITH_IDS
        epoch = request.session_epoch
        if epoch in (SESSIONLESS_EPOCH, FULL_EPOCH):
            if request.session_id != NO_SESSION_ID:
                self.remove(request.session_id)
            by_key = yield from _all_targets(request, uses_topic_ids)
            if epoch == SESSIONLESS_EPOCH:
                return SessionlessContext(by_key)
            return FullContext(self, by_key, now_ms, is_privileged=is_privileged, uses_topic_ids=uses_topic_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return ErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = next_epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.is_privileged |= is_privileged  # of its first request its registration may not have been known here
        yield from session.update_in_steps(request)
        code = self._ended_meanwhile(session, next_epoch, now_ms)
        if code is not ErrorCode.NONE:
            return ErrorContext(code)
        if not session.targets:
            self.remove(session.session_id)
            return SessionlessContext((yield from _all_targets(request, uses_topic_ids)))
        self._touch(session, now_ms)
        return IncrementalContext(session)

    def _ended_meanwhile(self, session: FetchSession, epoch: int, now_ms: int) -> ErrorCode:
        """Return why a session cannot be gone on with, now that it has taken what a request changes."""
        if session.epoch != epoch:  # another request has used it
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if self._sessions.get(session.session_id) is not session:  # it was evicted
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if not self._may_grow(session, now_ms):
            self.remove(session.session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return ErrorCode.NONE

    def _may_grow(self, session: FetchSession, now_ms: int) -> bool:
        """Return whether there is room for what a session has grown by, after others were evicted if need be."""
        growth = len(session.targets) - session.cached_count
        if growth <= 0:
            return True
        too_many = self._partitions_count + growth - self._partitions_max
        victims = self._victims_for_room(too_many, now_ms, is_privileged=session.is_privileged, spared=session)
        if victims is None:
            return False
        self._evict(victims)
        return True

    def targets_count(self, session_id: int) -> int:
        """Return how many partitions a session has, 0 where there is none."""
        session = self._sessions.get(session_id)
        return 0 if session is None else len(session.targets)

    def create(
        self, targets: dict[TargetKey, FetchTarget], now_ms: int, *, is_privileged: bool, uses_topic_ids: bool
    ) -> FetchSession | None:
        """Make a session, evicting others if need be; None when there is no room for it."""
        victims = self._victims_for((is_privileged, len(targets), 0), now_ms)
        if victims is None:
            return None
        self._evict(victims)
        session_id = self._random.randint(1, EPOCH_MAX)
        while session_id in self._sessions:
            session_id = self._random.randint(1, EPOCH_MAX)
        session = FetchSession(session_id, is_privileged, uses_topic_ids, now_ms, targets)
        self._sessions[session_id] = session
        self._touch(session, now_ms)
        return session

    def remove(self, session_id: int) -> None:
        """End a session; nothing happens when there is none."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions_count -= session.cached_count
            self._forget_eviction_key(session)

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        """Note that a session is used, how large it is now, and whether it may be evicted from now on."""
        session.last_used_ms = now_ms
        del self._sessions[session.session_id]
        self._sessions[session.session_id] = session
        count = len(session.targets)
        self._partitions_count += count - session.cached_count
        session.cached_count = count
        is_old = now_ms - session.created_ms > self._eviction_ms
        key = (session.is_privileged, count, session.session_id)
        if session.eviction_key == key and (not is_old or _contains(self._evictable_by_all, key)):
            return
        self._forget_eviction_key(session)
        if is_old or not session.is_privileged:
            session.eviction_key = key
            insort(self._evictable_by_privileged, key)
        if is_old:
            insort(self._evictable_by_all, key)

    def _forget_eviction_key(self, session: FetchSession) -> None:
        key, session.eviction_key = session.eviction_key, None
        if key is not None:
            for keys in (self._evictable_by_privileged, self._evictable_by_all):
                if _contains(keys, key):
                    del keys[bisect_left(keys, key)]

    def _victims_for(self, new_key: EvictionKey, now_ms: int) -> list[FetchSession] | None:
        """Return which sessions make way for a new one; None when there is no room for it."""
        is_privileged, count, _ = new_key
        too_many = self._partitions_count + count - self._partitions_max
        if len(self._sessions) >= self._slots:
            victim = self._victim_for_slot(new_key, now_ms)
            if victim is None:
                return None
            if victim.cached_count >= too_many:
                return [victim]
        # Whoever makes room leaves a slot as well.
        return self._victims_for_room(too_many, now_ms, is_privileged=is_privileged)

    def _victim_for_slot(self, new_key: EvictionKey, now_ms: int) -> FetchSession | None:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms > self._eviction_ms:
            return oldest
        keys = self._evictable_by_privileged if new_key[0] else self._evictable_by_all
        return self._sessions[keys[0][2]] if keys and keys[0] <= new_key else None

    def _victims_for_room(
        self, too_many: int, now_ms: int, *, is_privileged: bool, spared: FetchSession | None = None
    ) -> list[FetchSession] | None:
        """Return which sessions make room for the partitions that are too many; None where that would not do."""
        victims: dict[int, FetchSession] = {}
        for session in self._who_makes_room(now_ms, is_privileged=is_privileged):
            if too_many <= 0:
                break
            if session.cached_count and session is not spared and session.session_id not in victims:
                victims[session.session_id] = session
                too_many -= session.cached_count
        return None if too_many > 0 else list(victims.values())

    def _who_makes_room(self, now_ms: int, *, is_privileged: bool) -> Iterator[FetchSession]:
        resting = takewhile(lambda each: now_ms - each.last_used_ms > self._eviction_ms, self._sessions.values())
        yield from islice(resting, EVICTED_AT_ONCE_MAX)
        if is_privileged:
            keys = self._evictable_by_privileged
            end = bisect_left(keys, (True, 0, 0))  # behind the consumers', all of which are there
            for _, _, session_id in reversed(keys[max(end - EVICTED_AT_ONCE_MAX, 0) : end]):
                yield self._sessions[session_id]

    def _evict(self, victims: Iterable[FetchSession]) -> None:
        for victim in victims:
            self.remove(victim.session_id)
            self._evictions_count += 1

    def statistics(self) -> FetchSessionStatistics:
        """Return a picture of the cache."""
        return FetchSessionStatistics(len(self._sessions), self._partitions_count, self._evictions_count)


def _contains(keys: list[EvictionKey], key: EvictionKey) -> bool:
    index = bisect_left(keys, key)
    return index < len(keys) and keys[index] == key
