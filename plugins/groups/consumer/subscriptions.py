"""Pure core: subscriptions by regular expression: which topics match, and when that is looked up again.

Members bring expressions with their heartbeats. What they match is looked up a moment later, by an operation of its
own, for all expressions of the group at once, and written down; the group's epoch then grows if it matters. It is
looked up again when a topic came or after `group.consumer.regex.refresh.interval.ms`, at the next heartbeat of a
member, but never within ten seconds of the last time.

*Source:* KIP-848; the behaviour of Kafka 4.3's GroupMetadataManager and TopicRegexResolver.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode, KafkaError, PatternError, compile_pattern

from ..group import Effects
from . import records
from .group import ConsumerGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.kernel.api import CoordinatorResult, Pattern, TimerKey

    from ..group import ShardContext
    from ..records import GroupRecord
    from .member import Member
    from .rebalancing import Rebalancing
    from .settings import Settings

REFRESH_MS_MIN: Final = 10_000
"""How long what was looked up stands at least."""

_NEVER_MS: Final = -(1 << 62)


class RegexChange(Enum):
    """What became of a member's regular expression."""

    NONE = "the same as before"
    UNRESOLVED = "another one, and nobody knows yet what it matches"
    RESOLVED = "another one, or none, and it is known what that means"


class RegexSubscriptions:
    """The regular expressions of a shard's groups."""

    def __init__(self, context: ShardContext, settings: Settings, rebalancing: Rebalancing) -> None:
        """Make it."""
        self._context = context
        self._cluster = context.broker.cluster
        self._settings = settings
        self._rebalancing = rebalancing
        self._topics_came_in = -1

    def loaded(self) -> None:
        """Take it that topics came while another broker coordinated."""
        self._topics_came_in = self._cluster.version

    def topics_created(self) -> None:
        """New topics are there: what was looked up before may miss them."""
        self._topics_came_in = self._cluster.version

    def update(self, group: ConsumerGroup, old: Member, new: Member, effects: Effects) -> RegexChange:
        """Take a member's expression, and see to it that the group's are looked up when they have to be.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        change = self._change(group, old, new, effects) if old.regex != new.regex else RegexChange.NONE
        is_new = change is RegexChange.UNRESOLVED and bool(new.regex) and new.regex not in group.regexes
        if (is_new or group.regexes) and self._is_due(group, old, new, is_new=is_new):
            self._context.timers.schedule(_timer_key(group.group_id), 0, partial(self._begin, group.group_id))
        return change

    def _change(self, group: ConsumerGroup, old: Member, new: Member, effects: Effects) -> RegexChange:
        if old.regex and group.regexes.get(old.regex) == 1:
            effects.records.append(records.regex_tombstone(group.group_id, old.regex))
        if new.regex:
            if new.regex not in group.regexes:
                _validate(new.regex)
                return RegexChange.UNRESOLVED
            return RegexChange.RESOLVED if new.regex in group.resolved else RegexChange.UNRESOLVED
        return RegexChange.RESOLVED if old.regex else RegexChange.UNRESOLVED

    def _is_due(self, group: ConsumerGroup, old: Member, new: Member, *, is_new: bool) -> bool:
        timers = self._context.timers
        if timers.is_scheduled(_timer_key(group.group_id)):
            return False
        last = next(iter(group.resolved.values()), None)
        now_ms = timers.monotonic_ms()
        last_ms = _NEVER_MS if last is None or group.looked_up_at_ms is None else group.looked_up_at_ms
        if now_ms <= last_ms + REFRESH_MS_MIN:
            return False
        used = set(group.regexes)
        if old.regex and group.regexes.get(old.regex) == 1:
            used.discard(old.regex)
        if new.regex:
            used.add(new.regex)
        return bool(used) and (
            is_new
            or len(used) != len(group.resolved)
            or (0 if last is None else last.version) < self._topics_came_in
            or now_ms > last_ms + self._settings.regex_refresh_ms
        )

    def _begin(self, group_id: str, now_ms: int) -> CoordinatorResult[GroupRecord, None]:
        group = self._context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or not group.regexes:
            return Effects().result(None)
        lookup = _Lookup(group.regexes, self._cluster.topic_names(), self._cluster.version, now_ms)
        return self._continue(group_id, lookup, now_ms)

    def _continue(self, group_id: str, lookup: _Lookup, now_ms: int) -> CoordinatorResult[GroupRecord, None]:
        """Look up some more; at the end write down what matches, and begin a new epoch if it changes what is read."""
        effects = Effects()
        if not lookup.advance():
            step = partial(self._continue, group_id, lookup)
            self._context.timers.schedule(_timer_key(group_id), 0, step)
            return effects.result(None)
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            self._finish(group, lookup, effects)
        return effects.result(None)

    def _finish(self, group: ConsumerGroup, lookup: _Lookup, effects: Effects) -> None:
        by_regex = {regex: resolved.topics for regex, resolved in group.resolved.items()}
        is_due = False
        for regex, found in lookup.found.items():
            if regex not in group.regexes:
                continue
            topics = frozenset(found)
            is_due = is_due or topics != by_regex.get(regex, frozenset())
            by_regex[regex] = topics
            effects.records.append(records.regex(group.group_id, regex, topics, lookup.version, lookup.begun_ms))
        metadata_hash = self._rebalancing.hash_of(set(group.topics_by_name).union(*by_regex.values()))
        if is_due or metadata_hash != group.metadata_hash:
            self._rebalancing.begin_epoch(group, metadata_hash, effects)


class _Lookup:
    """Which topics match which expressions, found in small portions: other groups are served in between."""

    def __init__(self, regexes: Iterable[str], names: Iterable[str], version: int, now_ms: int) -> None:
        self.found: dict[str, list[str]] = {regex: [] for regex in regexes}
        self.version = version
        self.begun_ms = now_ms
        texts = tuple(names)
        self._left = chain.from_iterable(
            _sifted(pattern, texts, found) for regex, found in self.found.items() if (pattern := _known_pattern(regex))
        )

    def advance(self) -> bool:
        """Do one portion; return whether everything is found."""
        return next(self._left, True)


def _sifted(pattern: Pattern, texts: Iterable[str], found: list[str]) -> Iterator[bool]:
    """Put what matches into `found`; yield False after each portion."""
    for name in pattern.sift(texts):
        if name is None:
            yield False
        else:
            found.append(name)


def _timer_key(group_id: str) -> TimerKey:
    return "consumer regex", group_id


def _validate(regex: str) -> None:
    try:
        compile_pattern(regex)
    except PatternError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


def _known_pattern(regex: str) -> Pattern | None:
    """Return the pattern; None for one that matches nothing: a log of another version brought it, we cannot read it."""
    try:
        return compile_pattern(regex)
    except PatternError:
        return None
