"""Pure core: one Fetch, in or out of a session: what it reads, and how its answer is put together.

Answers are added in pieces, so that a Fetch of very many partitions holds up nobody.

*Source:* KIP-227, KIP-516; Kafka's FetchSession.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..errors import ErrorCode
from ..wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..partitions.quiet_followers import Stamp
    from ..wire.messages.api_01_fetch import FetchRequest, PartitionData
    from .fetch_session import FetchSession, FetchSessionCache
    from .fetch_target import FetchTarget, TargetKey

NO_SESSION_ID: Final = 0
UNKNOWN_ERRORS: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
"""Errors of what this broker does not have: answered last, and without regard to the isolation level."""


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

    def add(
        self, found: TopicsBuilder, targets: Sequence[FetchTarget], answers: Sequence[PartitionData | None]
    ) -> None:
        """Take the answers of some targets: `build` in pieces, each behind the one before, and `finish`."""
        ...

    def finish(self, found: TopicsBuilder) -> FetchResponse:
        """Return the answer, once those of all targets were added."""
        ...


class TopicsBuilder:
    """Gathers answers under their topics; neighbours of one topic share an entry.

    The order stays, but what this broker does not have comes last, as in Kafka.
    """

    __slots__ = ("_known", "_unknown")

    def __init__(self) -> None:
        """Make one that has nothing yet."""
        self._known = _Entries()
        self._unknown: _Entries | None = None

    def add(self, target: FetchTarget, answer: PartitionData) -> None:
        """Add an answer."""
        if answer.error_code not in UNKNOWN_ERRORS:
            self._known.place(target, answer)
            return
        if self._unknown is None:
            self._unknown = _Entries()
        self._unknown.place(target, answer)

    def finish(self) -> list[FetchableTopicResponse]:
        """Return everything that was added; nothing is added then."""
        return self._known.responses if self._unknown is None else self._known.joined(self._unknown)


class _Entries:
    """Topics of an answer, in order."""

    __slots__ = ("_first_key", "_last_key", "_partitions", "responses")

    def __init__(self) -> None:
        self.responses: list[FetchableTopicResponse] = []
        self._first_key: str | int | None = None
        self._last_key: str | int | None = None
        self._partitions: list[PartitionData] = []

    def place(self, target: FetchTarget, answer: PartitionData) -> None:
        topic_key = target.key[0]
        if topic_key != self._last_key:
            if not self.responses:
                self._first_key = topic_key
            self._last_key = topic_key
            self._partitions = []
            self.responses.append(
                FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id, partitions=self._partitions)
            )
        self._partitions.append(answer)

    def joined(self, others: _Entries) -> list[FetchableTopicResponse]:
        responses = others.responses
        if self.responses and others._first_key == self._last_key:
            self._partitions += responses[0].partitions
            responses = responses[1:]
        return self.responses + responses


def _build_all(found: TopicsBuilder, targets: Sequence[FetchTarget], answers: Sequence[PartitionData | None]) -> None:
    for target, answer in zip(targets, answers, strict=True):
        assert answer is not None, "outside an incremental fetch every partition is answered"
        found.add(target, answer)


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
        if len(answers) == 1 and (only := answers[0]) is not None:  # what most fetches are
            (target,) = self.targets
            entry = FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id, partitions=[only])
            return FetchResponse(responses=[entry])
        return _built(self, answers)

    def add(
        self, found: TopicsBuilder, targets: Sequence[FetchTarget], answers: Sequence[PartitionData | None]
    ) -> None:
        """See `FetchContext.add`."""
        _build_all(found, targets, answers)

    def finish(self, found: TopicsBuilder) -> FetchResponse:
        """See `FetchContext.finish`."""
        return FetchResponse(responses=found.finish())


class FullContext:
    """A fetch that names everything and asks for a session, which it gets if there is room when it is answered."""

    __slots__ = ("_cache", "_is_privileged", "_now_ms", "_uses_topic_ids", "by_key", "targets")

    is_incremental = False
    stamp = None

    def __init__(
        self,
        cache: FetchSessionCache,
        by_key: dict[TargetKey, FetchTarget],
        now_ms: int,
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
    ) -> None:
        self.targets = list(by_key.values())
        self.by_key = by_key
        self._cache = cache
        self._now_ms = now_ms
        self._is_privileged = is_privileged
        self._uses_topic_ids = uses_topic_ids

    def build(self, answers: Sequence[PartitionData | None]) -> FetchResponse:
        """Return every answer, and the new session's id."""
        return _built(self, answers)

    def add(
        self, found: TopicsBuilder, targets: Sequence[FetchTarget], answers: Sequence[PartitionData | None]
    ) -> None:
        """See `FetchContext.add`."""
        _build_all(found, targets, answers)
        for target, answer in zip(targets, answers, strict=True):
            assert answer is not None
            target.is_news(answer)

    def finish(self, found: TopicsBuilder) -> FetchResponse:
        """See `FetchContext.finish`."""
        responses = found.finish()
        session = self._cache.create(
            self.by_key, self._now_ms, is_privileged=self._is_privileged, uses_topic_ids=self._uses_topic_ids
        )
        return FetchResponse(session_id=NO_SESSION_ID if session is None else session.session_id, responses=responses)


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
        return _built(self, answers)

    def add(
        self, found: TopicsBuilder, targets: Sequence[FetchTarget], answers: Sequence[PartitionData | None]
    ) -> None:
        """See `FetchContext.add`."""
        session = self._session
        if session.epoch != self._expected_epoch:
            return
        for target, answer in zip(targets, answers, strict=True):
            if answer is None or not target.is_news(answer):
                continue
            found.add(target, answer)
            if answer.records and target.key in session.targets:
                del session.targets[target.key]
                session.targets[target.key] = target

    def finish(self, found: TopicsBuilder) -> FetchResponse:
        """See `FetchContext.finish`."""
        session = self._session
        if session.epoch != self._expected_epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        return FetchResponse(session_id=session.session_id, responses=found.finish())


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
        return _built(self, answers)

    def add(
        self, found: TopicsBuilder, targets: Sequence[FetchTarget], answers: Sequence[PartitionData | None]
    ) -> None:
        """See `FetchContext.add`: there is nothing."""
        assert not answers

    def finish(self, found: TopicsBuilder) -> FetchResponse:
        """See `FetchContext.finish`."""
        return FetchResponse(error_code=self._code)


def _built(context: FetchContext, answers: Sequence[PartitionData | None]) -> FetchResponse:
    found = TopicsBuilder()
    context.add(found, context.targets, answers)
    return context.finish(found)
