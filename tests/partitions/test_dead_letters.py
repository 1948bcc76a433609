"""Dead letters are taken once each: over crashes, failovers, truncations, purges, and whoever leads the retry topic."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.config.delay_checks import BreakerSettings
from odradek.kernel.contracts.storage import LogRead
from odradek.kernel.errors import StorageError
from odradek.kernel.machine.turnstile import take_turn
from odradek.kernel.partitions.dead_letter_batches import LETTERS_MAX
from odradek.kernel.partitions.dead_letter_taking import BATCHES_PER_TURN, SourceRead, Wanted
from odradek.kernel.partitions.dead_letters import DeadLetters
from odradek.kernel.partitions.delay_recovery import keep_delays
from odradek.kernel.partitions.following import append_as_follower, rebuild_after_cut, truncate
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.records.batch import read_header
from odradek.kernel.retry.breaker import Breaker
from odradek.kernel.retry.dead_reader import AbortedRange
from odradek.kernel.retry.headers import DEAD_FROM
from odradek.kernel.types import TopicPartition

from ..retry.failed_batches import Failed, FailedLog
from .delayed_partition import DelayedPartition

RETRY = "t.g.retry"
SOURCE = TopicPartition(RETRY, 0)
OTHER = 2
STEPS = 150
A_WHILE_S = 3.0


class Source:
    """The retry topic, which another broker leads; an `OtherLeaders`."""

    def __init__(self) -> None:
        self.log = FailedLog()
        self.topic_id = uuid.UUID(int=1)
        self.batches_max = 100
        self.start_offset = 0
        self.aborted: list[AbortedRange] = []
        self.is_gone = self.is_slow = False
        self.node_id = OTHER
        self.asked: list[int] = []
        self.late = trio.Event()

    def leader(self, partition: TopicPartition) -> tuple[int, uuid.UUID] | None:
        return (self.node_id, self.topic_id) if partition == SOURCE else None

    def begin_anew(self) -> None:
        """Be deleted, and made again."""
        self.log, self.topic_id = FailedLog(), uuid.UUID(int=self.topic_id.int + 1)

    async def read(self, node_id: int, wanted: Sequence[Wanted]) -> Mapping[TopicPartition, SourceRead]:
        assert node_id in (OTHER, self.node_id)
        self.asked += [each.offset for each in wanted]
        if self.is_slow:
            with trio.CancelScope(shield=True):
                await self.late.wait()
            return {SOURCE: SourceRead(moved_to=0)}
        if self.is_gone:
            raise ConnectionError("nobody is there")
        ((partition, topic_id, offset, _),) = wanted
        assert topic_id == self.topic_id
        if not self.start_offset <= offset <= self.log.end_offset:
            return {partition: SourceRead(moved_to=min(max(offset, self.start_offset), self.log.end_offset))}
        batches = [batch for batch in self.log.batches if read_header(batch).next_offset > offset]
        is_cut = len(batches) > self.batches_max
        batches = batches[: self.batches_max]
        return {partition: SourceRead(batches, sum(map(len, batches)), self.aborted, is_cut=is_cut)}


class DeadPartition(DelayedPartition):
    """A partition of a dead-letter topic."""

    def __init__(self, directory: Path, source: Source, *, leader: int = 1) -> None:
        self.source = source
        super().__init__(directory, leader=leader, dead_letters_of=RETRY)

    def begin(self) -> None:
        super().begin()
        hosted = self.hosted
        self.letters = DeadLetters(1, hosted.replicas, hosted.writes, hosted.clock, self.source.leader)
        self.letters.others = self.source
        self.letters.watch(self.replica)

    def take(self) -> None:
        """Take all that there is."""

        async def take() -> None:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.letters.run)
                await trio.sleep(A_WHILE_S)
                nursery.cancel_scope.cancel()

        trio.run(take, clock=trio.testing.MockClock(autojump_threshold=0))
        self.hosted.writes.write_staged()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def dead(tmp_path: Path, source: Source) -> Iterator[DeadPartition]:
    partition = DeadPartition(tmp_path, source)
    yield partition
    partition.close()


def died(*values: bytes) -> list[Failed]:
    return [Failed(value, is_dead=True) for value in values]


def test_what_died_is_taken_and_what_waits_is_not(dead: DeadPartition, source: Source) -> None:
    source.log.fail([Failed(b"waits"), *died(b"a"), Failed(b"waits, too")])
    base_offset = source.log.fail(died(b"b"))
    dead.take()

    assert dead.values() == [b"a", b"b"]
    assert dict(dead.seen()[1].headers)[DEAD_FROM] == b"0:%d" % base_offset
    assert dead.letters.taken_count == 2


@pytest.mark.parametrize("end", ["restart", "kill", "lead"])
def test_it_goes_on_where_the_log_says(dead: DeadPartition, source: Source, end: str) -> None:
    source.log.fail(died(b"a"))
    dead.take()
    getattr(dead, end)()
    source.log.fail(died(b"b"))
    dead.take()

    assert dead.values() == [b"a", b"b"]


def test_a_note_without_its_letters_does_not_count(dead: DeadPartition, source: Source) -> None:
    source.log.fail(died(b"a"))
    dead.take()
    (note, *_) = dead.replica.log.batches(0)
    end = read_header(note).next_offset
    dead.leader, dead.epoch = OTHER, 1
    dead.take_state()
    truncate(dead.replica, end)
    trio.run(rebuild_after_cut, dead.hosted.lifecycle, dead.replica, dead.now_ms)
    dead.lead()
    dead.take()

    assert dead.values() == [b"a"]


def test_much_that_died_at_once_is_appended_in_parts(dead: DeadPartition, source: Source) -> None:
    large = [b"%d" % number * 200_000 for number in range(10)]
    source.log.fail(died(*large))
    dead.take()
    dead.kill()
    dead.take()

    assert dead.values() == large
    assert sum(1 for batch in dead.batches() if not read_header(batch).is_control) > 2


def test_a_companion_and_its_batch_that_come_one_by_one_are_waited_for(dead: DeadPartition, source: Source) -> None:
    source.log.fail(died(b"a"))
    source.batches_max = 1
    dead.take()
    assert dead.values() == []

    source.batches_max = 2
    dead.take()
    assert dead.values() == [b"a"]


def test_a_broker_that_is_gone_is_asked_again(dead: DeadPartition, source: Source) -> None:
    source.log.fail(died(b"a"))
    source.is_gone = True
    dead.take()
    source.is_gone = False
    dead.take()

    assert dead.values() == [b"a"]


def test_a_retry_topic_that_was_made_anew_is_read_from_its_begin(dead: DeadPartition, source: Source) -> None:
    source.log.fail(died(b"a"))
    dead.take()
    source.begin_anew()
    source.log.fail(died(b"b"))
    dead.take()

    assert dead.values() == [b"a", b"b"]


def test_what_the_retry_topic_has_no_more_is_passed_over(dead: DeadPartition, source: Source) -> None:
    source.log.fail(died(b"a"))
    source.start_offset = source.log.end_offset
    source.log.fail(died(b"b"))
    dead.take()

    assert dead.values() == [b"b"]


@pytest.mark.parametrize("takes", [True, False])
def test_the_position_outlives_a_purge(dead: DeadPartition, source: Source, *, takes: bool) -> None:
    source.log.fail(died(b"a"))
    dead.take()
    replica = dead.replica
    replica.settings = attrs.evolve(replica.settings, takes_dead_letters=takes)
    replica.log.advance_log_start(replica.log.log_end_offset)
    dead.take()
    (note,) = (batch for batch in dead.batches() if read_header(batch).base_offset >= replica.log.log_start_offset)

    follower = DeadPartition(Path(dead.hosted.dirs[0]).parent / "follower", source, leader=OTHER)
    truncate(follower.replica, 0)
    follower.replica.log.truncate_fully(replica.log.log_start_offset)
    append_as_follower(follower.replica, note)
    follower.replica.write()
    follower.lead()
    follower.take()

    assert follower.values() == []
    follower.close()


def test_where_none_are_taken_at_the_moment_they_stay_and_are_taken_later(dead: DeadPartition, source: Source) -> None:
    replica = dead.replica
    replica.settings = attrs.evolve(replica.settings, takes_dead_letters=False)
    source.log.fail(died(b"a"))
    dead.take()
    assert dead.values() == []
    assert source.asked == []

    replica.settings = attrs.evolve(replica.settings, takes_dead_letters=True)
    dead.take()
    assert dead.values() == [b"a"]


def test_breakers_are_told_of_while_their_partitions_are_here(dead: DeadPartition) -> None:
    here = dead.replica.partition
    deleted = here._replace(topic_id=uuid.UUID(int=77))
    for partition in (here, deleted):
        breaker = dead.letters.breakers[partition] = Breaker(BreakerSettings(0.5, 60_000, 1))
        breaker.spare_ms(dead.hosted.clock.now_ms())

    assert dead.letters.paused_by_topic() == {(here.topic,): 1}
    assert dead.letters.spared_by_topic() == {(here.topic,): 1}


def test_what_is_kept_beside_the_log_has_the_position(dead: DeadPartition, source: Source) -> None:
    source.log.fail(died(b"a"))
    dead.take()
    ledger = dead.replica.delays
    assert ledger is not None
    keep_delays(dead.replica.log, ledger)
    known = ledger.last_delivery, ledger.last_delivery_offset
    dead.kill()

    assert dead.replica.delays is not None
    assert (dead.replica.delays.last_delivery, dead.replica.delays.last_delivery_offset) == known


def test_a_partition_that_was_paused_for_a_moment_is_taken_from_as_before(dead: DeadPartition, source: Source) -> None:
    source.log.fail(died(b"a"))
    dead.replica.pause("its log moves")
    dead.take()
    dead.replica.is_paused = False
    dead.replica.end_pause()
    dead.take()

    assert dead.values() == [b"a"]


def led_here(dead: DeadPartition, source: Source) -> Replica:
    """Have the retry topic led by the same broker."""
    dead.hosted.open(RETRY)
    replica = dead.hosted.replicas.get(RETRY, 0)
    source.node_id, source.topic_id = 1, replica.partition.topic_id
    return replica


def test_a_source_that_cannot_be_read_costs_nobody_else(
    dead: DeadPartition, source: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_where: int, at_least_one: bool) -> LogRead:
        raise StorageError("the disk is failing")

    replica = led_here(dead, source)
    source.log.fail(died(b"a"))
    copy(source, replica)
    with monkeypatch.context() as broken:
        broken.setattr(replica.log, "read", refuse)
        dead.take()
    assert caplog.messages == [f"dead letters: {SOURCE} cannot be read: the disk is failing"]
    assert (dead.values(), replica.offline_reason, dead.replica.offline_reason) == ([], None, None)

    dead.take()
    assert dead.values() == [b"a"]


def copy(source: Source, replica: Replica) -> None:
    """Have a replica of the retry topic hold what the other broker has."""
    for batch in source.log.batches:
        replica.log.append(memoryview(bytearray(batch)), *offsets_of(batch), 0)
    replica.write()
    replica.note_appended(replica.log.log_end_offset)
    assert replica.last_stable_offset == source.log.end_offset


def offsets_of(batch: bytes) -> tuple[int, int]:
    header = read_header(batch)
    return header.base_offset, header.last_offset


def test_a_namesake_that_is_not_heard_of_yet_is_not_read(dead: DeadPartition, source: Source) -> None:
    replica = led_here(dead, source)
    source.topic_id = uuid.UUID(int=99)
    source.log.fail(died(b"of another topic"))
    copy(source, replica)
    dead.take()

    assert dead.values() == []


def test_what_cannot_be_read_is_passed_over_and_nobody_goes_offline(
    dead: DeadPartition, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    source.log.fail(died(b"a"))
    source.log.fail_unreadably(died(b"lost"))
    source.log.fail(died(b"b"))
    dead.take()

    assert dead.values() == [b"a", b"b"]
    assert dead.replica.offline_reason is None
    (told,) = caplog.messages
    assert "passed over" in told


def test_where_nothing_dies_the_position_is_noted_all_the_same(
    dead: DeadPartition, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.kernel.partitions.dead_letter_taking.NOTE_BYTES", 1_000)
    for number in range(20):
        source.log.fail([Failed(b"waits" * number)])
    dead.take()
    dead.kill()
    source.asked.clear()
    dead.take()

    assert source.asked[0] == source.log.end_offset


def test_an_answer_that_comes_late_is_of_no_use(dead: DeadPartition, source: Source) -> None:
    """Another leader was asked meanwhile, and has brought more: the first one says where its own log begins."""
    source.log.fail(died(b"a"))
    dead.take()
    source.log.fail(died(b"b"))

    async def overtaken() -> None:
        async with trio.open_nursery() as nursery:
            source.is_slow = True
            await nursery.start(dead.letters.run)
            await trio.sleep(1)
            source.node_id, source.is_slow = OTHER + 1, False
            await trio.sleep(3)
            source.late.set()
            await trio.sleep(A_WHILE_S)
            nursery.cancel_scope.cancel()

    trio.run(overtaken, clock=trio.testing.MockClock(autojump_threshold=0))
    dead.hosted.writes.write_staged()
    dead.lead()
    dead.take()

    assert dead.values() == [b"a", b"b"]


MANY: Final = 3 * LETTERS_MAX
"""Dead letters that are appended in three parts."""


def before_turns(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Have something happen whenever others come first."""

    async def act_first() -> None:
        act()
        await take_turn()

    monkeypatch.setattr("odradek.kernel.partitions.dead_letter_taking.take_turn", act_first)


@pytest.mark.parametrize("is_led_here", [True, False])
def test_others_come_between_the_parts_of_much_that_died(
    dead: DeadPartition, source: Source, monkeypatch: pytest.MonkeyPatch, is_led_here: bool
) -> None:
    values = [b"%d" % number for number in range(MANY)]
    source.log.fail(died(*values))
    if is_led_here:
        copy(source, led_here(dead, source))
    appended: list[int] = []
    before_turns(monkeypatch, lambda: appended.append(dead.letters.taken_count))
    dead.take()

    assert dead.values() == values
    assert {LETTERS_MAX, 2 * LETTERS_MAX} <= set(appended)


def test_much_in_which_nothing_died_is_looked_at_in_parts(
    dead: DeadPartition, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    for _ in range(2 * BATCHES_PER_TURN):
        source.log.fail([Failed(b"waits")])
    source.batches_max = len(source.log.batches)
    before_turns(monkeypatch, lambda: turns.append(1))
    dead.take()

    assert len(turns) >= 4


def test_who_leads_no_more_stops_between_two_parts(
    dead: DeadPartition, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [b"%d" % number for number in range(MANY)]
    source.log.fail(died(*values))

    def depose() -> None:
        if dead.letters.taken_count == LETTERS_MAX:
            dead.leader, dead.epoch = OTHER, dead.epoch + 1
            dead.take_state()

    with monkeypatch.context() as patched:
        before_turns(patched, depose)
        dead.take()
    assert dead.values() == values[:LETTERS_MAX]

    dead.lead()
    dead.take()
    assert dead.values() == values


def test_of_two_who_bring_the_same_one_gives_way(
    dead: DeadPartition, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another broker brought is still appended, part by part, when this one begins to lead the retry topic."""
    values = [b"%d" % number for number in range(MANY)]
    source.log.fail(died(*values))
    copy(source, led_here(dead, source))
    source.node_id = OTHER

    def move() -> None:
        if dead.letters.taken_count == LETTERS_MAX:
            source.node_id = 1
            dead.letters.watch(dead.replica)

    before_turns(monkeypatch, move)
    dead.take()

    assert dead.values() == values


def test_a_bug_in_what_asks_others_is_told_with_the_partitions(
    dead: DeadPartition, source: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_node_id: int, _wanted: Sequence[Wanted]) -> Mapping[TopicPartition, SourceRead]:
        raise TypeError("a bug")

    source.log.fail(died(b"a"))
    with monkeypatch.context() as broken:
        broken.setattr(source, "read", fail)
        dead.take()
    told = caplog.records[0]
    assert told.levelname == "ERROR"
    assert told.exc_info
    assert str(SOURCE) in told.getMessage()

    dead.take()
    assert dead.values() == [b"a"]


class Pair:
    """Two replicas of a dead-letter partition: one leads, and they change places by chance."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.source = Source()
        self.leader = DeadPartition(directory / "a", self.source)
        self.follower = DeadPartition(directory / "b", self.source, leader=OTHER)
        self.died: list[bytes] = []

    def fail(self) -> None:
        values = [b"%d.%d" % (len(self.died), number) for number in range(self.random.randint(1, 4))]
        self.source.log.fail([Failed(b"waits"), *died(*values)])
        self.died += values

    def take(self) -> None:
        self.source.batches_max = self.random.randint(2, 6)
        self.leader.take()

    def replicate(self) -> None:
        end = self.follower.replica.log.log_end_offset
        ahead = [batch for batch in self.leader.batches() if read_header(batch).base_offset >= end]
        for batch in ahead[: self.random.randint(1, 4)]:
            append_as_follower(self.follower.replica, batch)
        self.follower.replica.write()

    def fail_over(self) -> None:
        """The follower leads; the leader comes back, gives up what the other lacks, and follows."""
        old, new = self.leader, self.follower
        new.leader, new.epoch = 1, old.epoch + 1
        new.take_state()
        self.leader, self.follower = new, old
        old.leader, old.epoch = OTHER, new.epoch
        old.kill() if self.random.random() < 0.5 else old.take_state()
        end = new.replica.log.log_end_offset
        if old.replica.log.log_end_offset > end:
            truncate(old.replica, end)
            trio.run(rebuild_after_cut, old.hosted.lifecycle, old.replica, old.now_ms)
            assert old.replica.offline_reason is None

    def step(self) -> None:
        often = [self.fail, self.take, self.replicate]
        self.random.choice([*often, *often, self.fail_over, self.leader.kill])()


@pytest.mark.parametrize("seed", range(6))
def test_each_dead_letter_is_there_once_whoever_leads(tmp_path: Path, seed: int) -> None:
    pair = Pair(tmp_path, seed)
    for _ in range(STEPS):
        pair.step()
        assert max(Counter(pair.leader.values()).values(), default=1) == 1
    pair.source.batches_max = 1000
    pair.leader.take()

    assert pair.leader.values() == pair.died
    pair.leader.close()
    pair.follower.close()
