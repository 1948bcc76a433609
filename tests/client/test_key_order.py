"""Records of one key are given in order, whatever fails, waits, is read late, or crashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.failed_records import failed_headers
from odradek.client.fetched_records import ConsumerRecord
from odradek.client.group.committed import OffsetAndMetadata
from odradek.client.ordered.key_order import OPEN_PAUSE_MS, KeyOrder, Pair, Rule, Verdict, behind_headers
from odradek.client.ordered.order_keeper import note_of, noted
from odradek.kernel.retry.headers import ATTEMPT, BEHIND, DEAD, ORIGIN
from odradek.kernel.types import TopicPartition

from .retry_log import HOME, LEVELS_MS, RETRY, Produced, RetryLog

KEYS = (b"a", b"b", None)
Offsets = dict[TopicPartition, OffsetAndMetadata]
ROUNDS_MAX = 2_000


def polled(key: bytes | None, offset: int) -> ConsumerRecord:
    value = b"%d" % offset
    return ConsumerRecord(*HOME, offset, 0, key, value, (), is_log_append_time=False, leader_epoch=0)


@attrs.define
class Member:
    """A consumer without sockets: reads both partitions, as `Fetcher` does, from what it has in memory."""

    log: RetryLog
    home: list[ConsumerRecord]
    committed: Offsets
    waiting_max: int = 1_000
    order: KeyOrder = attrs.field(init=False)
    positions: dict[TopicPartition, int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.order = KeyOrder("billing")
        self.order.learned(RETRY.topic, Rule(is_by_key=True, waiting_max=self.waiting_max))
        self.order.follow([HOME, RETRY], ())
        self.positions = {each: self.committed[each].offset if each in self.committed else 0 for each in (HOME, RETRY)}
        known = self.committed.get(RETRY)
        position = None if known is None else known.offset
        home = self.committed.get(HOME)
        home_position = None if home is None else home.offset
        log = range(self.log.end_offset)
        self.pair.begin(noted=noted(known), position=position, log=log, home_position=home_position)

    @property
    def pair(self) -> Pair:
        return self.order.pairs[HOME]

    def read(self, batches: int | None = None) -> None:
        """Read the retry partition's log a little further."""
        assert self.pair.pending is not None
        self.pair.pending.read(self.log.read(self.pair.pending.next_offset, batches))

    def poll(self, count: int, first: TopicPartition = HOME) -> list[ConsumerRecord]:
        self.order.begin(self.positions.__getitem__)
        taken: list[ConsumerRecord] = []
        for partition in (first, RETRY if first == HOME else HOME):
            start = self.positions[partition]
            records = self.home[start:] if partition == HOME else self.log.records(start)
            for number, record in enumerate(records):
                if len(taken) == count:
                    break
                verdict = self.order.judge(record)
                if verdict is Verdict.BEHIND:
                    self.order.put_behind(records[number : number + count])
                if verdict in (Verdict.BEHIND, Verdict.STAY):
                    break
                self.positions[partition] = record.offset + 1
                if verdict is Verdict.GIVE:
                    taken.append(record)
        return taken

    def put_behind(self) -> None:
        """Produce what is to be put behind others."""
        for behind in self.order.take_behind():
            dues = behind.dues(self.log.now_ms)
            batch = [
                Produced(record.key, record.value, behind_headers(record, behind.pair, due)) for record, due in dues
            ]
            offset = self.log.produce(batch)
            self.order.put(behind, offset + len(batch))

    def fail(self, record: ConsumerRecord, producer_id: int = -1) -> None:
        headers = failed_headers(record, "billing", "why", is_dead=False)
        offset = self.log.produce([Produced(record.key, record.value, headers)], producer_id=producer_id)
        self.order.produced(record.topic_partition, offset)

    def consumed(self) -> Offsets:
        assert self.pair.pending is not None
        note = note_of(self.pair.pending.needed_from)
        return {
            HOME: OffsetAndMetadata(self.positions[HOME]),
            RETRY: OffsetAndMetadata(self.positions[RETRY], note),
        }


class World:
    """A topic, its retry topic, and one group that works on them, told what fails how often."""

    def __init__(self, keys: Sequence[bytes | None], failures: Sequence[int], waiting_max: int = 1_000) -> None:
        self.home = [polled(key, offset) for offset, key in enumerate(keys)]
        self.failures = {record.value: count for record, count in zip(self.home, failures, strict=True)}
        self.failed: Counter[bytes] = Counter()
        self.done: list[ConsumerRecord] = []
        self.log = RetryLog()
        self.waiting_max = waiting_max
        self.committed: Offsets = {}
        self.open: list[int] = []
        self.member = Member(self.log, self.home, {}, waiting_max)

    def poll(self, count: int, first: TopicPartition = HOME) -> int:
        records = self.member.poll(count, first)
        for record in records:
            if self.failed[record.value] < self.failures[record.value]:
                self.failed[record.value] += 1
                self.member.fail(record)
            else:
                self.done.append(record)
        self.member.put_behind()
        return len(records)

    def act(self, action: str, number: int) -> None:
        match action:
            case "poll":
                self.poll(number)
            case "poll what came back":
                self.poll(number, RETRY)
            case "read":
                self.member.read(number)
            case "time":
                self.log.pass_time(number)
            case "commit":
                self.committed = self.member.consumed()
            case "crash":
                self._begin_anew()
            case "die":
                self.die(number)
            case "abort":
                self.abort()
            case "carry":
                self.log.carry(self.log.end_offset)

    def die(self, count: int) -> None:
        """Have a member die in a transaction, which stays open, and somebody else go on, who reads the log first."""
        producer_id = 7 + len(self.log.data)
        for record in self.member.poll(count):
            if self.failed[record.value] < self.failures[record.value]:
                self.member.fail(record, producer_id)
        self.member.put_behind()
        self.open.append(producer_id)
        self._begin_anew()
        self.member.read()

    def abort(self) -> None:
        """Abort transactions of those who died."""
        while self.open:
            self.log.end(self.open.pop(), commits=False)

    def _begin_anew(self) -> None:
        self.member = Member(self.log, self.home, self.committed, self.waiting_max)

    def finish(self) -> None:
        """Go on until all is worked on."""
        self.abort()
        for _ in range(ROUNDS_MAX):
            self.member.read()
            given = self.poll(50)
            self.member.read()
            pending = self.member.pair.pending
            assert pending is not None
            is_at_end = self.member.positions[HOME] == len(self.home)
            is_at_end = is_at_end and not self.log.records(self.member.positions[RETRY])
            if given == 0 and not len(pending) and self.log.next_due_ms is None and is_at_end:
                return
            if given == 0 and self.log.next_due_ms is not None:
                self.log.pass_time(max(self.log.next_due_ms - self.log.now_ms, 0))
        raise AssertionError("it does not come to an end")

    def check(self, *, is_once: bool) -> None:
        """Each is done, or dead; once, where nothing crashed; and of a key in order."""
        done = [record.value for record in self.done]
        dead = set(self.log.dead)
        assert set(done) | dead == {record.value for record in self.home}
        if is_once:
            assert len(done) == len(set(done))
            assert not set(done) & dead
        for key in KEYS[:2]:
            first: dict[bytes, None] = dict.fromkeys(record.value for record in self.done if record.key == key)
            assert list(first) == sorted(first, key=int)


WORLDS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.lists(st.sampled_from(KEYS), min_size=count, max_size=count),
        st.lists(st.sampled_from([0, 0, 0, 1, 2, 9]), min_size=count, max_size=count),
    )
)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["poll", "poll", "poll what came back", "read", "time", "commit", "carry"]), st.integers(1, 30)
    ),
    max_size=40,
)
CRASHES = st.lists(
    st.tuples(
        st.sampled_from(
            ["poll", "poll", "poll what came back", "read", "time", "commit", "crash", "die", "die", "abort", "carry"]
        ),
        st.integers(1, 30),
    ),
    max_size=40,
)


@given(WORLDS, ACTIONS, st.sampled_from([1, 2, 1_000]))
def test_each_record_is_worked_on_once_and_those_of_a_key_in_order(
    told: tuple[list[bytes | None], list[int]], actions: list[tuple[str, int]], waiting_max: int
) -> None:
    world = World(*told, waiting_max)
    for action in actions:
        world.act(*action)
    world.finish()

    world.check(is_once=True)


@given(WORLDS, CRASHES)
def test_order_holds_over_crashes(told: tuple[list[bytes | None], list[int]], actions: list[tuple[str, int]]) -> None:
    world = World(*told)
    for action in actions:
        world.act(*action)
    world.finish()

    world.check(is_once=False)


def test_a_later_record_of_a_key_that_waits_is_put_behind_it_and_counts_no_attempt() -> None:
    world = World([b"a", b"b", b"a"], [1, 0, 0])

    assert [world.poll(10), len(world.done)] == [
        2,
        1,
    ]  # the second of a stays: nobody knows yet whether the first fails
    assert world.poll(10) == 0  # the log is not read up to it
    world.member.read()
    world.poll(10)
    world.member.read()
    assert world.member.poll(10) == []
    world.log.pass_time(LEVELS_MS[0])
    world.member.read()
    first, second = world.log.records(0)
    assert (first.value, second.value) == (b"0", b"2")
    assert dict(second.headers)[ATTEMPT] == b"0"
    assert dict(second.headers)[ORIGIN] == b"orders/0/2"
    assert world.member.poll(10) == [first]
    assert world.member.poll(10) == [second]


def worked_on_before_its_partition_was_read_so_far() -> World:
    """The last of `a` is put behind with the one before it, and comes back before its topic is read up to it."""
    world = World([b"a", b"a", b"b", b"b", b"a"], [1, 0, 0, 0, 0])
    world.poll(1)
    world.member.read()
    world.poll(5)
    world.member.read()
    world.log.pass_time(LEVELS_MS[0])
    world.member.read()
    for _ in range(3):
        world.poll(1, RETRY)
    assert [record.value for record in world.done] == [b"0", b"1", b"4"]
    return world


def test_what_came_back_is_not_given_again_where_its_partition_is_read_up_to_it_later() -> None:
    world = worked_on_before_its_partition_was_read_so_far()
    world.finish()

    assert [record.value for record in world.done] == [b"0", b"1", b"4", b"2", b"3"]
    assert world.member.pair.pending is not None
    assert world.member.pair.pending.needed_from == world.member.pair.pending.next_offset


def test_who_goes_on_there_knows_what_came_back_and_was_worked_on() -> None:
    world = worked_on_before_its_partition_was_read_so_far()
    world.poll(1, RETRY)  # what the poll before gave is worked on
    world.act("commit", 0)
    world.act("crash", 0)
    world.member.read()
    world.finish()

    assert sorted(record.value for record in world.done) == [b"0", b"1", b"2", b"3", b"4"]


def test_who_goes_back_in_the_partition_is_given_again_what_came_back_and_was_worked_on() -> None:
    world = worked_on_before_its_partition_was_read_so_far()
    world.member.positions[HOME] = 4
    world.poll(1, RETRY)
    world.member.positions[HOME] = 2
    world.done.clear()
    world.finish()

    assert [record.value for record in world.done] == [b"2", b"3", b"4"]


def test_records_of_a_topic_that_was_made_anew_are_given_though_old_ones_were_worked_on() -> None:
    """What was committed of a topic goes with it, what was committed of the retry topic stays."""
    world = worked_on_before_its_partition_was_read_so_far()
    world.poll(1, RETRY)
    world.act("commit", 0)
    del world.committed[HOME]
    world.act("crash", 0)
    world.done.clear()
    world.finish()

    assert [record.value for record in world.done if record.topic_partition == HOME] == [b"0", b"1", b"2", b"3", b"4"]


def test_what_is_read_again_after_a_crash_is_passed_over_where_a_copy_waits() -> None:
    world = World([b"a", b"a"], [1, 0])
    world.poll(10)
    world.member.read()
    world.poll(10)
    world.act("crash", 0)
    world.member.read()

    assert world.member.poll(10) == []
    assert world.member.positions[HOME] == 2
    world.finish()
    assert [record.value for record in world.done] == [b"0", b"1"]


def test_what_a_transaction_failed_that_is_open_is_not_passed_over_for_that_may_be_aborted() -> None:
    world = World([b"a", b"a"], [1, 0])
    world.die(1)

    assert world.member.poll(10) == []
    assert world.member.positions[HOME] == 0
    world.abort()
    world.member.read()
    assert [record.value for record in world.member.poll(10)] == [b"0"]


def test_what_a_transaction_failed_is_passed_over_once_that_is_committed() -> None:
    world = World([b"a"], [1])
    world.die(1)
    world.log.end(world.open.pop(), commits=True)
    world.member.read()

    assert world.member.poll(10) == []
    assert world.member.positions[HOME] == 1


def test_what_is_put_behind_an_open_transaction_does_not_come_back_at_once_again_and_again() -> None:
    world = World([b"a", b"a"], [1, 0])
    record = world.home[0]
    world.log.produce([Produced(b"a", b"0", failed_headers(record, "billing", "why", is_dead=False))], producer_id=7)
    world.member.positions[HOME] = 1
    for _ in range(50):
        world.member.pair.end_offset = world.log.end_offset
        world.member.read()
        assert world.poll(10) == 0
        world.log.pass_time(LEVELS_MS[0])

    assert world.log.now_ms < 1_000 + OPEN_PAUSE_MS
    assert len(world.log.records(0)) == 0
    world.log.end(7, commits=True)
    world.log.pass_time(0)
    world.failed[b"0"] = 1
    world.finish()
    assert [each.value for each in world.done] == [b"0", b"1"]


def test_what_is_told_to_be_a_copy_and_has_another_key_is_none() -> None:
    """The topic may have been made anew since: its offsets begin again."""
    world = World([b"a"], [0])
    world.log.produce([Produced(b"b", b"old", [(ORIGIN, b"orders/0/0")])])
    world.member.pair.end_offset = world.log.end_offset
    world.member.read()

    assert [record.value for record in world.member.poll(10)] == [b"0"]


def test_no_more_are_put_behind_others_than_the_bound_says() -> None:
    world = World([b"a"] + [b"a"] * 10 + [b"b"], [1] + [0] * 11, waiting_max=4)
    for _ in range(5):
        world.poll(50)
        world.member.read()
    pending = world.member.pair.pending

    assert pending is not None
    assert len(pending) == 4
    assert world.member.pair.is_full
    world.finish()
    world.check(is_once=True)


def test_partitions_stay_where_it_is_not_known_whether_order_is_asked_for_or_the_other_is_read_elsewhere() -> None:
    order = KeyOrder("billing")
    order.follow([HOME, RETRY], ())

    assert order.unknown == {HOME: RETRY.topic, RETRY: RETRY.topic}
    assert order.judge(polled(None, 0)) is Verdict.STAY
    order.learned(RETRY.topic, Rule(is_by_key=True, waiting_max=1))
    order.follow([HOME], {HOME.topic, RETRY.topic})
    assert order.lonely == {HOME}
    assert order.judge(polled(None, 0)) is Verdict.STAY
    order.learned(RETRY.topic, Rule(is_by_key=False))
    order.follow([HOME], {HOME.topic, RETRY.topic})
    assert order.is_idle
    assert order.judge(polled(None, 0)) is Verdict.GIVE


def test_a_topic_that_comes_to_be_later_is_asked_for_what_it_asks_for() -> None:
    order = KeyOrder("billing")
    order.learned(RETRY.topic, Rule(is_by_key=False, is_there=False))
    order.follow([HOME], {HOME.topic, RETRY.topic})

    assert order.is_idle
    order.follow([HOME, RETRY], {HOME.topic, RETRY.topic})
    assert RETRY in order.unknown


def test_a_pair_that_is_taken_away_is_read_anew_when_it_comes_back() -> None:
    order = KeyOrder("billing")
    order.learned(RETRY.topic, Rule(is_by_key=True, waiting_max=1))
    order.follow([HOME, RETRY], ())
    before = order.pairs[HOME]
    order.follow([HOME, RETRY], ())

    assert order.pairs[HOME] is order.pairs[RETRY] is before
    order.forget([RETRY])
    order.follow([HOME, RETRY], ())
    assert order.pairs[HOME] is not before


def test_a_log_that_is_not_as_it_was_is_read_from_its_beginning_up_to_its_own_end() -> None:
    pair = Pair(HOME, RETRY)
    pair.begin(noted=700, position=None, log=range(5, 900))
    assert pair.pending is not None
    assert (pair.pending.next_offset, pair.end_offset) == (700, 900)

    pair.lost()
    assert not pair.is_known
    pair.begin(noted=700, position=None, log=range(30))
    assert pair.pending is not None
    assert (pair.pending.next_offset, pair.end_offset) == (0, 30)


def test_a_pair_that_comes_back_waits_for_what_was_on_its_way_behind_others_when_it_was_taken_away() -> None:
    world = World([b"a", b"a"], [1, 0])
    world.poll(10)
    world.member.read()
    world.member.poll(10)
    order = world.member.order
    (behind,) = order.take_behind()
    before = world.member.pair
    order.forget([HOME, RETRY])
    order.follow([HOME, RETRY], ())
    pair = world.member.pair
    pair.begin(noted=None, position=None, log=range(world.log.end_offset))
    world.member.read()

    assert pair is not before
    assert not pair.is_known
    assert world.member.poll(10) == []
    order.put(behind, world.log.end_offset + 5)
    assert pair.end_offset == world.log.end_offset + 5
    assert not pair.under_way


def test_what_is_put_behind_says_until_when() -> None:
    """What a copy has of another life is left out: it would have more attempts than it had, or be dead at once."""
    said = (("own", b"1"), (ATTEMPT, b"5"), (DEAD, b"1"), (BEHIND, b"7"))
    record = polled(b"a", 3)._replace(headers=said)
    pair = Pair(HOME, RETRY)

    assert behind_headers(record, pair, 99) == [("own", b"1"), (ORIGIN, b"orders/0/3"), (BEHIND, b"99")]
    given_back = record._replace(topic=RETRY.topic)
    assert behind_headers(given_back, pair, 99) == [*said[:3], (BEHIND, b"99")]


def test_a_note_is_read_and_anybody_elses_metadata_is_none() -> None:
    assert noted(OffsetAndMetadata(5, note_of(17))) == 17
    assert noted(OffsetAndMetadata(5, "mine")) is None
    assert noted(None) is None
