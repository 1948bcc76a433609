"""Pure core: whether a record may be given to the application now, is passed over, or is put behind others of its key.

A topic that is read, and the group's retry topic of it, are a *pair*, partition by partition. Of each pair the records
of one key are given in the order of their origins:

| a record | of the topic | of the retry topic |
| --- | --- | --- |
| a copy of it was put into the retry topic later | is passed over: the copy comes | likewise |
| that was in a transaction that is open | stays until it is known whether the copy comes | likewise |
| one of its key was given by this poll | stays: nobody knows yet whether that fails | likewise |
| one of its key that came before it waits | is put behind that | likewise |
| one of its key that came before it was given back, and is not worked on yet | stays until it is | likewise |
| any other | is given | is given |

So one poll gives a key's record once, and the next poll says that it was worked on. Passing over is what makes putting
behind, and failing, idempotent: who crashes before it has committed reads the record again, and finds the copy.

A partition stays as it is while the log of its retry partition is not known far enough: up to its end when the
partition was assigned, and since then up to what this consumer produced there.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from odradek.kernel.retry.headers import BEHIND, Origin, first_failed_headers
from odradek.kernel.retry.names import retry_topics
from odradek.kernel.types import TopicPartition

from .waiting_keys import NO_ORIGIN, WaitingKeys, failed_at, origin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..fetched_records import ConsumerRecord

OPEN_PAUSE_MS: Final = 1_000
"""So long waits at least what is put behind a record of a transaction that is open, which may be due already."""


class Verdict(Enum):
    """What becomes of a record: see the table above; `BEHIND` stays, too, until it is behind."""

    GIVE = auto()
    PASS_OVER = auto()
    STAY = auto()
    BEHIND = auto()


class Sieve(Protocol):
    """Who says which fetched records may be given to the application."""

    def begin(self, position_of: Callable[[TopicPartition], int | None]) -> None:
        """Begin to give anew: what was given before was worked on.

        Args:
            position_of: Returns the offset of the next record to be given; None while it is not known.
        """
        ...

    def judge(self, record: ConsumerRecord) -> Verdict:
        """Return what becomes of the next record of its partition, as it was fetched."""
        ...

    def put_behind(self, records: Sequence[ConsumerRecord]) -> None:
        """Have records of one partition put behind others, the first of which is to be, where that is to be."""
        ...


@attrs.define(eq=False)
class Pair:
    """A partition and the retry partition of the group, both read here.

    Attributes:
        home: The partition.
        retry: The retry partition.
        pending: What is pending there; None until it is known from where on the log is to be read.
        end_offset: Up to where the log has to be known.
        under_way: The origins of the records that are being put behind others.
        is_full: Whether as many are pending as may be: nothing more is put behind others.
    """

    home: TopicPartition
    retry: TopicPartition
    pending: WaitingKeys | None = None
    end_offset: int = 0
    under_way: int = 0
    is_full: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the log is known far enough."""
        return self.pending is not None and not self.under_way and self.pending.next_offset >= self.end_offset

    def begin(self, *, noted: int | None, position: int | None, log: range, home_position: int | None = None) -> None:
        """Begin to read the log; what was committed of it counts where it reaches as far: else it is another one now.

        Args:
            noted: From where on it is needed, as was committed; None for nothing.
            position: What was committed with that: what was given back below was worked on; None for nothing.
            log: The offsets of the log.
            home_position: What was committed of the partition; None for nothing.
        """
        start_offset = noted if noted is not None and log.start <= noted <= log.stop else log.start
        self.pending = WaitingKeys(self.home, start_offset, home_position)
        if position is not None and position <= log.stop:
            self.pending.processed(position)  # or it would keep all of an old log
        self.end_offset = max(self.end_offset, log.stop)

    def lost(self) -> None:
        """Take note that the log is not as it was: its beginning was deleted, or its end lost. It is begun anew."""
        self.pending, self.end_offset = None, 0


@attrs.frozen
class Behind:
    """Records of one pair to be put behind others.

    Attributes:
        pair: The pair.
        records: In this order, each with when those are due, epoch milliseconds.
        is_open: Whether any of those was failed in a transaction that is open: it comes when that ends, not when due.
    """

    pair: Pair
    records: tuple[tuple[ConsumerRecord, int], ...]
    is_open: bool = False

    def dues(self, now_ms: int) -> list[tuple[ConsumerRecord, int]]:
        """Return the records, each with until when it is to wait: where a transaction is open, never for no time."""
        earliest_ms = now_ms + OPEN_PAUSE_MS if self.is_open else 0
        return [(record, max(due_ms, earliest_ms)) for record, due_ms in self.records]


@attrs.frozen
class Rule:
    """What a retry topic asks for, as its keys say.

    Attributes:
        is_by_key: Whether records of one key are to be given in order.
        waiting_max: How many may be pending of one partition.
        is_there: Whether there was such a topic when that was asked.
    """

    is_by_key: bool
    waiting_max: int = 0
    is_there: bool = True


class KeyOrder:
    """The `Sieve` of one consumer.

    Attributes:
        pairs: By both of their partitions.
        behind: What is to be put behind others, and was not taken yet.
        unknown: Retry topics of which nobody knows yet whether they ask for order.
        lonely: Partitions that stay, since their retry partitions are read elsewhere.
    """

    def __init__(self, group_id: str) -> None:
        """Begin with no partition."""
        self._group_id = group_id
        self._rules: dict[str, Rule] = {}
        self._given: set[tuple[TopicPartition, bytes]] = set()
        self._under_way: dict[TopicPartition, int] = {}  # by retry partition, also when the pair was taken away
        self.pairs: dict[TopicPartition, Pair] = {}
        self.behind: list[Behind] = []
        self.unknown: dict[TopicPartition, str] = {}
        self.lonely: set[TopicPartition] = set()

    @property
    def is_idle(self) -> bool:
        """Whether there is no order to be kept, and none that may have to be."""
        return not self.pairs and not self.unknown and not self.lonely

    def is_ordered(self, topic: str) -> bool:
        """Return whether order is kept in a topic, or a retry topic."""
        rule = self._rules.get(topic) or self._rules.get(retry_topics(topic, self._group_id).retry)
        return rule is not None and rule.is_by_key

    # Which partitions.

    def follow(self, assignment: Iterable[TopicPartition], subscribed: Iterable[str]) -> None:
        """Take note of what is read now; pairs that are read still stay as they are.

        Args:
            assignment: The partitions that are read here.
            subscribed: The topics that are read, here or elsewhere in the group, as far as that is known.
        """
        assigned = frozenset(assignment)
        topics = {partition.topic for partition in assigned} | set(subscribed)
        retry_of = {topic: name for topic in topics if (name := retry_topics(topic, self._group_id).retry) in topics}
        homes = {retry: topic for topic, retry in retry_of.items()}
        before, self.pairs, self.unknown, self.lonely = self.pairs, {}, {}, set()
        for partition in sorted(assigned):
            topic = homes.get(partition.topic, partition.topic)
            retry = retry_of.get(topic)
            if retry is None:
                continue
            rule = self._rules.get(retry)
            if rule is not None and not rule.is_there and partition.topic == retry:
                rule = None  # it is there now: ask again
            pair = Pair(TopicPartition(topic, partition.partition), TopicPartition(retry, partition.partition))
            if rule is None:
                self.unknown[partition] = retry
            elif not rule.is_by_key:
                continue
            elif pair.retry in assigned:
                pair.under_way = self._under_way.get(pair.retry, 0)
                self.pairs[partition] = before.get(partition) or self.pairs.get(pair.retry) or pair
                self.pairs[pair.retry] = self.pairs[partition]
            else:
                self.lonely.add(partition)
        self.behind = [each for each in self.behind if self.pairs.get(each.pair.retry) is each.pair]

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget pairs of which a partition is read no more: somebody else may go on with them."""
        for partition in partitions:
            pair = self.pairs.pop(partition, None)
            if pair is not None:
                self.pairs.pop(pair.home, None)
                self.pairs.pop(pair.retry, None)

    def learned(self, retry_topic: str, rule: Rule) -> None:
        """Take note of what a retry topic asks for; `follow` is to be called then."""
        self._rules[retry_topic] = rule

    # What becomes of records.

    def begin(self, position_of: Callable[[TopicPartition], int | None]) -> None:
        """See `Sieve.begin`."""
        self._given.clear()
        for partition, pair in self.pairs.items():
            position = position_of(partition)
            if position is None or pair.pending is None:
                continue
            if partition == pair.home:
                pair.pending.home_passed(position)
            elif pair.is_known:
                pair.pending.processed(position)

    def judge(self, record: ConsumerRecord) -> Verdict:
        """See `Sieve.judge`."""
        partition = record.topic_partition
        pair = self.pairs.get(partition)
        if pair is None:
            is_held = partition in self.unknown or partition in self.lonely
            return Verdict.STAY if is_held else Verdict.GIVE
        if not pair.is_known:
            return Verdict.STAY
        if record.key is None:
            return Verdict.GIVE
        verdict = self._judge(pair, record)
        if verdict is Verdict.GIVE:
            self._given.add((pair.home, record.key))
        elif verdict is Verdict.BEHIND and partition == pair.home and self._is_full(pair):
            return Verdict.STAY
        return verdict

    def _judge(self, pair: Pair, record: ConsumerRecord) -> Verdict:
        pending = pair.pending
        assert pending is not None, "the log is known far enough"
        is_home = record.topic_partition == pair.home
        origin = self._origin_of(pair, record)
        offset = None if is_home else failed_at(record.headers)
        newest = None if origin == NO_ORIGIN else pending.newest_copy(origin)
        if newest is not None and newest.key != record.key:
            newest = None  # of another record that was there: the topic was made anew
        if newest is not None and (is_home or (offset is not None and newest.offset > offset)):
            return Verdict.STAY if newest.is_open else Verdict.PASS_OVER
        if is_home and pending.is_done(origin, record.key):
            return Verdict.PASS_OVER
        if (pair.home, record.key) in self._given:
            return Verdict.STAY
        if not pending.has_before(record.key, origin, offset):
            return Verdict.GIVE
        state = pending.key_state(record.key)
        assert state is not None, "one of the key is pending"
        comes_here = state.waiting_count == 0 and (is_home or state.delivered_max <= record.offset)
        return Verdict.STAY if comes_here else Verdict.BEHIND

    def _origin_of(self, pair: Pair, record: ConsumerRecord) -> int:
        if record.topic_partition == pair.home:
            return record.offset
        return origin_of(record.headers, pair.home)

    def _is_full(self, pair: Pair) -> bool:
        assert pair.pending is not None, "the log is known far enough"
        rule = self._rules[pair.retry.topic]
        pair.is_full = len(pair.pending) >= rule.waiting_max
        return pair.is_full

    def put_behind(self, records: Sequence[ConsumerRecord]) -> None:
        """See `Sieve.put_behind`: of those that follow the first, what is certain now is put behind with it.

        They go in the order of their origins, so that what came into disorder, as by a crash, is in order again.
        """
        pair = self.pairs[records[0].topic_partition]
        pending = pair.pending
        assert pending is not None, "the log is known far enough"
        rule = self._rules[pair.retry.topic]
        left = max(rule.waiting_max - len(pending), 1) if records[0].topic_partition == pair.home else len(records)
        chosen: list[tuple[ConsumerRecord, int]] = []
        is_open = False
        for record in records:
            state = None if record.key is None else pending.key_state(record.key)
            if len(chosen) < left and state is not None and self._judge(pair, record) is Verdict.BEHIND:
                chosen.append((record, state.due_ms))
                is_open = is_open or state.open_count > 0
        chosen.sort(key=lambda each: self._origin_of(pair, each[0]))
        pair.under_way = len(chosen)
        self.behind.append(Behind(pair, tuple(chosen), is_open))

    def take_behind(self) -> list[Behind]:
        """Return what is to be put behind others now; `put` is to be called for each."""
        taken, self.behind = self.behind, []
        self._under_way |= {each.pair.retry: len(each.records) for each in taken}
        return taken

    def put(self, behind: Behind, end_offset: int) -> None:
        """Take note that records were put behind others: they end there, or were not all put."""
        self._under_way.pop(behind.pair.retry, None)
        for pair in (behind.pair, self.pairs.get(behind.pair.retry)):
            if pair is not None:
                pair.under_way = 0
                pair.end_offset = max(pair.end_offset, end_offset)

    def produced(self, partition: TopicPartition, offset: int) -> None:
        """Take note that this consumer failed a record of a partition, to that offset of the retry partition."""
        pair = self.pairs.get(partition)
        if pair is not None:
            pair.end_offset = max(pair.end_offset, offset + 1)


def behind_headers(record: ConsumerRecord, pair: Pair, due_ms: int) -> list[tuple[str, bytes | None]]:
    """Return the headers that a record of a pair is put behind another of its key with, until that is due."""
    if record.topic_partition == pair.home:
        kept = first_failed_headers(record.headers, Origin(record.topic, record.partition, record.offset))
    else:
        kept = [header for header in record.headers if header[0] != BEHIND]
    return [*kept, (BEHIND, b"%d" % due_ms)]
