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

    context = cache.open(request, version, now_ms, is_follower=...)
    answers = [read(target) for target in context.targets]
    response = context.build(answers)

When the cache is full a session is evicted that was not used for two minutes; else the smallest one that is older than
two minutes and smaller than the new one. A follower's session is privileged: it may take the place of any consumer's.

*Source:* KIP-227, KIP-516; Kafka's FetchSession.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import attrs

from ..classes import define, frozen
from ..errors import ErrorCode
from ..partitions.quiet_followers import Stamp
from ..wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse
from .fetch_target import FetchTarget

if TYPE_CHECKING:
    import random
    import uuid
    from collections.abc import Iterator, Mapping, Sequence

    from ..wire.messages.api_01_fetch import FetchPartition, FetchRequest, PartitionData
    from .fetch_target import TargetKey

NO_SESSION_ID: Final = 0
FULL_EPOCH: Final = 0
SESSIONLESS_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
MIN_EVICTION_MS: Final = 120_000
"""Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""

NEVER_MS: Final = -(1 << 62)
FIRST_VERSION_WITH_IDS: Final = 13
UNKNOWN_ERRORS: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
"""Errors of what this broker does not have: answered last, and without regard to the isolation level."""

EvictionKey: TypeAlias = tuple[bool, int, int]
"""(is privileged, partitions, session id): the least valuable session first."""


class FetchContext(Protocol):
    """One Fetch request, in or out of a session; built from once."""

    @property
    def targets(self) -> Sequence[FetchTarget]:
        """What to read, in this order."""
        ...

    @property
    def by_key(self) -> Mapping[TargetKey, FetchTarget]:
        """The same by their keys."""
        ...

    @property
    def is_incremental(self) -> bool:
        """Whether the answer may be None for what has nothing new."""
        ...

    @property
    def stamp(self) -> Stamp | None:
        """When its session was heard last, None outside of one."""
        ...

    def build(self, answers: Sequence[PartitionData | None]) -> FetchResponse:
        """Return the answer.

        Args:
            answers: One for each target, in order. Within a session, None stands for a target that was not read
                because it has nothing new.
        """
        ...


@define(eq=False)
class FetchSession:
    """A client's partitions, in the order they are read. Owned by its cache.

    Attributes:
        session_id: Greater than 0.
        is_privileged: Whether a follower owns it.
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

    def update(self, request: FetchRequest) -> None:
        """Add, change and forget partitions as the request says."""
        targets = self.targets
        for key, topic, topic_id, wanted in _wanted_partitions(request, self.uses_topic_ids):
            target = targets.get(key)
            if target is None:
                targets[key] = _new_target(key, topic, topic_id, wanted)
            else:
                target.change(wanted)
        for forgotten in request.forgotten_topics_data:
            topic_key = forgotten.topic_id.int if self.uses_topic_ids else forgotten.topic
            for partition in forgotten.partitions:
                gone = targets.pop((topic_key, partition), None)
                if gone is not None:
                    gone.end_quiet()


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


def _all_targets(request: FetchRequest, uses_topic_ids: bool) -> dict[TargetKey, FetchTarget]:
    """Return what the request names; of a partition named twice the last counts, at the first one's place."""
    targets: dict[TargetKey, FetchTarget] = {}
    for topic in request.topics:
        topic_key: str | int = topic.topic_id.int if uses_topic_ids else topic.topic
        for wanted in topic.partitions:
            key = (topic_key, wanted.partition)
            targets[key] = _new_target(key, topic.topic, topic.topic_id, wanted)
    return targets


class _TopicsBuilder:
    """Gathers answers under their topics; neighbours of one topic share an entry.

    The order stays, but what this broker does not have comes last, as in Kafka.
    """

    __slots__ = ("_partitions", "_responses", "_topic_key", "_unknown")

    def __init__(self) -> None:
        self._responses: list[FetchableTopicResponse] = []
        self._unknown: list[tuple[FetchTarget, PartitionData]] = []
        self._topic_key: str | int | None = None
        self._partitions: list[PartitionData] = []

    def add(self, target: FetchTarget, answer: PartitionData) -> None:
        """Add an answer, unless it belongs at the end."""
        if answer.error_code in UNKNOWN_ERRORS:
            self._unknown.append((target, answer))
        else:
            self._place(target, answer)

    def finish(self) -> list[FetchableTopicResponse]:
        """Return everything that was added."""
        for target, answer in self._unknown:
            self._place(target, answer)
        return self._responses

    def _place(self, target: FetchTarget, answer: PartitionData) -> None:
        topic_key = target.key[0]
        if topic_key != self._topic_key:
            self._topic_key = topic_key
            self._partitions = []
            self._responses.append(
                FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id, partitions=self._partitions)
            )
        self._partitions.append(answer)


def _build_all(targets: Sequence[FetchTarget], answers: Sequence[PartitionData | None]) -> list[FetchableTopicResponse]:
    if len(targets) == 1 and (only := answers[0]) is not None:  # what most fetches are
        (target,) = targets
        return [FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id, partitions=[only])]
    builder = _TopicsBuilder()
    for target, answer in zip(targets, answers, strict=True):
        assert answer is not None, "outside an incremental fetch every partition is answered"
        builder.add(target, answer)
    return builder.finish()


class SessionlessContext:
    """A fetch that names everything and leaves nothing behind.

    Once it was answered it may be used again, by a request that names the same: `go_on`.
    """

    __slots__ = ("by_key", "targets")

    is_incremental = False
    stamp = None

    def __init__(self, by_key: dict[TargetKey, FetchTarget]) -> None:
        self.by_key = by_key
        self.targets = list(by_key.values())

    def go_on(self, request: FetchRequest) -> None:
        """Read from the offsets of a request that names the same partitions in the same order, none of them twice."""
        targets = iter(self.targets)
        for topic in request.topics:
            for wanted in topic.partitions:
                next(targets).fetch_offset = wanted.fetch_offset

    def build(self, answers: Sequence[PartitionData | None]) -> FetchResponse:
        """Return every answer, without a session."""
        return FetchResponse(responses=_build_all(self.targets, answers))


class FullContext:
    """A fetch that names everything and asks for a session, which it gets if there is room when it is answered."""

    __slots__ = ("_cache", "_is_follower", "_now_ms", "_uses_topic_ids", "by_key", "targets")

    is_incremental = False
    stamp = None

    def __init__(
        self,
        cache: FetchSessionCache,
        by_key: dict[TargetKey, FetchTarget],
        now_ms: int,
        *,
        is_follower: bool,
        uses_topic_ids: bool,
    ) -> None:
        self.targets = list(by_key.values())
        self.by_key = by_key
        self._cache = cache
        self._now_ms = now_ms
        self._is_follower = is_follower
        self._uses_topic_ids = uses_topic_ids

    def build(self, answers: Sequence[PartitionData | None]) -> FetchResponse:
        """Return every answer, and the new session's id."""
        responses = _build_all(self.targets, answers)
        session = self._cache.create(
            self.by_key, self._now_ms, is_privileged=self._is_follower, uses_topic_ids=self._uses_topic_ids
        )
        if session is None:
            return FetchResponse(responses=responses)
        for target, answer in zip(self.targets, answers, strict=True):
            assert answer is not None
            target.is_news(answer)
        return FetchResponse(session_id=session.session_id, responses=responses)


class IncrementalContext:
    """A fetch within a session."""

    __slots__ = ("_expected_epoch", "_session", "by_key", "stamp", "targets")

    is_incremental = True

    def __init__(self, session: FetchSession) -> None:
        self._session = session
        self.by_key = session.targets
        self._expected_epoch = session.epoch
        self.stamp = session.stamp
        self.targets = list(session.targets.values())

    def build(self, answers: Sequence[PartitionData | None]) -> FetchResponse:
        """Return what is news, unless another request has used the session meanwhile."""
        session = self._session
        if session.epoch != self._expected_epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        builder = _TopicsBuilder()
        for target, answer in zip(self.targets, answers, strict=True):
            if answer is None or not target.is_news(answer):
                continue
            builder.add(target, answer)
            if answer.records and target.key in session.targets:
                del session.targets[target.key]
                session.targets[target.key] = target
        return FetchResponse(session_id=session.session_id, responses=builder.finish())


class ErrorContext:
    """A fetch that does not fit its session: nothing is read."""

    __slots__ = ("_code",)

    targets: Sequence[FetchTarget] = ()
    by_key: Mapping[TargetKey, FetchTarget] = {}  # empty for good
    is_incremental = False
    stamp = None

    def __init__(self, code: ErrorCode) -> None:
        self._code = code

    def build(self, answers: Sequence[PartitionData | None]) -> FetchResponse:
        """Return the error."""
        assert not answers
        return FetchResponse(error_code=self._code)


@frozen
class FetchSessionStatistics:
    """A picture of the cache: sessions, partitions in them, evictions since the start."""

    sessions_count: int
    partitions_count: int
    evictions_count: int


class FetchSessionCache:
    """The sessions of one broker, in the order of their last use. Owned by the reactor's task."""

    def __init__(self, *, slots: int, random_source: random.Random, eviction_ms: int = MIN_EVICTION_MS) -> None:
        """Make an empty cache.

        Args:
            slots: `max.incremental.fetch.session.cache.slots`; 0 for no sessions at all.
            random_source: For session ids.
            eviction_ms: How long a session is safe from being evicted by a bigger one.
        """
        self._slots = slots
        self._random = random_source
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}
        self._evictable_by_privileged: list[EvictionKey] = []
        self._evictable_by_all: list[EvictionKey] = []
        self._partitions_count = 0
        self._evictions_count = 0

    def __repr__(self) -> str:
        return f"<FetchSessionCache: {len(self._sessions)} of {self._slots} sessions>"

    def open(self, request: FetchRequest, version: int, now_ms: int, *, is_follower: bool) -> FetchContext:
        """Find the session that a request belongs to, and take over what it changes.

        Args:
            request: Decoded.
            version: Its version.
            now_ms: The monotonic clock.
            is_follower: Whether a replica asks.
        """
        uses_topic_ids = version >= FIRST_VERSION_WITH_IDS
        epoch = request.session_epoch
        if epoch in (SESSIONLESS_EPOCH, FULL_EPOCH):
            if request.session_id != NO_SESSION_ID:
                self.remove(request.session_id)
            by_key = _all_targets(request, uses_topic_ids)
            if epoch == SESSIONLESS_EPOCH:
                return SessionlessContext(by_key)
            return FullContext(self, by_key, now_ms, is_follower=is_follower, uses_topic_ids=uses_topic_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return ErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        if not session.targets:
            self.remove(session.session_id)
            return SessionlessContext(_all_targets(request, uses_topic_ids))
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        self._touch(session, now_ms)
        return IncrementalContext(session)

    def targets_count(self, session_id: int) -> int:
        """Return how many partitions a session has, 0 where there is none."""
        session = self._sessions.get(session_id)
        return 0 if session is None else len(session.targets)

    def create(
        self, targets: dict[TargetKey, FetchTarget], now_ms: int, *, is_privileged: bool, uses_topic_ids: bool
    ) -> FetchSession | None:
        """Make a session, evicting another if need be; None when there is no room for it."""
        if len(self._sessions) >= self._slots and not self._evict_for((is_privileged, len(targets), 0), now_ms):
            return None
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

    def _evict_for(self, new_key: EvictionKey, now_ms: int) -> bool:
        """Make room for a new session; return whether there is some now."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            victim_id = oldest.session_id
        else:
            keys = self._evictable_by_privileged if new_key[0] else self._evictable_by_all
            if not keys or new_key < keys[0]:
                return False
            victim_id = keys[0][2]
        self.remove(victim_id)
        self._evictions_count += 1
        return True

    def statistics(self) -> FetchSessionStatistics:
        """Return a picture of the cache."""
        return FetchSessionStatistics(len(self._sessions), self._partitions_count, self._evictions_count)


def _contains(keys: list[EvictionKey], key: EvictionKey) -> bool:
    index = bisect_left(keys, key)
    return index < len(keys) and keys[index] == key
