"""The machine of transactions against a naive model: random requests, failing markers, time and reloads.

What must hold, whatever happens: a committed transaction is whole and an aborted one invisible; what is fenced writes
nothing; an id has one open transaction at most; epochs only grow; everything prepared is complete in the end; and a
shard that is loaded is the one that wrote the log.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.kernel.api import CoordinatorResult, ErrorCode, KafkaError, ProducerIdentity, TopicPartition
from odradek.plugins.transactions.metadata import TransactionMetadata, TransactionRecord
from odradek.plugins.transactions.requests import EndRequest, MarkersWanted
from odradek.plugins.transactions.states import PREPARED, PREVIOUS_STATES, TransactionState
from odradek.testing.shard_harness import LoggedRecord

from .driven import DrivenShard

IDS = ("a", "b")
PARTITIONS = tuple(TopicPartition("t", index) for index in range(3))
DICE = st.integers(0, 5)
WHERE = st.sets(st.sampled_from(PARTITIONS), min_size=1)
PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


@attrs.define
class PartitionLog:
    """A partition as naive as can be: batches by producer, and what a read_committed consumer would be given.

    Its own rules are the leader's: an older epoch is refused, a marker of version 2 needs a later one.
    """

    epochs: dict[int, int] = attrs.field(factory=dict)
    open: dict[int, list[str]] = attrs.field(factory=dict)
    committed: list[str] = attrs.field(factory=list)
    aborted: list[str] = attrs.field(factory=list)

    def write(self, producer: ProducerIdentity, batch: str) -> None:
        """Append a batch that was admitted."""
        assert producer.producer_epoch >= self.epochs.get(producer.producer_id, -1), "the fence was passed"
        self.epochs[producer.producer_id] = producer.producer_epoch
        self.open.setdefault(producer.producer_id, []).append(batch)

    def mark(self, metadata: TransactionMetadata) -> ErrorCode:
        """Append a marker."""
        known = self.epochs.get(metadata.producer_id, -1)
        if metadata.producer_epoch < known + (metadata.client_version >= 2 and metadata.producer_id in self.open):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self.epochs[metadata.producer_id] = metadata.producer_epoch
        batches = self.open.pop(metadata.producer_id, [])
        (self.committed if metadata.is_commit else self.aborted).extend(batches)
        return ErrorCode.NONE


@attrs.define
class Client:
    """A producer as it sees itself: who it is, what it wrote in its transaction.

    Attributes:
        is_fenced: Another producer has taken its id over.
        is_late: Its transaction ran out of time. By version 2 it may go on, once it has heard of the abort.
    """

    transactional_id: str
    producer: ProducerIdentity
    version: int
    batches: dict[TopicPartition, list[str]] = attrs.field(factory=dict)
    added: set[TopicPartition] = attrs.field(factory=set)
    is_fenced: bool = False
    is_late: bool = False


class TransactionMachine(RuleBasedStateMachine):
    """Clients, partitions and a shard."""

    @initialize(version=st.sampled_from([0, 2]))
    def start(self, version: int) -> None:
        self.driven = DrivenShard(version=version)
        self.logs = {partition: PartitionLog() for partition in PARTITIONS}
        self.clients: list[Client] = []
        self.batches_count = 0
        self.promised: dict[str, bool] = {}
        self.epochs_seen: dict[int, int] = {}
        self.states: dict[str, TransactionState] = {}
        self.checked_count = 0
        for transactional_id in IDS:
            self._begin(transactional_id, is_new=True)

    # ---------------------------------------------------------------------------------------------------- producers

    @rule(transactional_id=st.sampled_from(IDS), is_new=st.booleans(), dice=DICE)
    def take_over(self, transactional_id: str, is_new: bool, dice: int) -> None:
        """Now and then a new producer takes the id over."""
        if dice == 0:
            self._begin(transactional_id, is_new)

    def _begin(self, transactional_id: str, is_new: bool) -> None:
        waiter = self.driven.init(transactional_id)
        if waiter.error is not None or waiter.response.code:
            code = waiter.error_code if waiter.error is not None else waiter.response.code
            assert code is ErrorCode.CONCURRENT_TRANSACTIONS
            return
        for client in self.clients:
            if client.transactional_id == transactional_id:
                client.is_fenced = True
        version = self.driven.version if is_new else 0
        self.clients.append(Client(transactional_id, waiter.response.producer, version))

    @rule(transactional_id=st.sampled_from(IDS), dice=DICE, where=WHERE)
    def write(self, transactional_id: str, dice: int, where: set[TopicPartition]) -> None:
        """A producer writes a batch in each of some partitions."""
        client = self._client(transactional_id, dice)
        if client is not None:
            self._write_by(client, where)

    @rule(transactional_id=st.sampled_from(IDS), where=WHERE, is_commit=st.booleans(), lost=st.booleans())
    def transact(self, transactional_id: str, where: set[TopicPartition], is_commit: bool, lost: bool) -> None:
        """The newest producer of an id makes a whole transaction."""
        client = self._client(transactional_id, 1)
        if client is None:
            self._begin(transactional_id, is_new=True)
        else:
            self._write_by(client, where)
            self._end_by(client, is_commit=is_commit, answer_is_lost=lost)

    def _write_by(self, client: Client, where: set[TopicPartition]) -> None:
        missing = where - client.added
        if missing and not self._admitted(client, missing):
            return
        for partition in where:
            if not self._verified(client, partition):
                return
            self.batches_count += 1
            batch = f"{client.transactional_id} {self.batches_count}"
            self.logs[partition].write(client.producer, batch)
            client.batches.setdefault(partition, []).append(batch)

    def _admitted(self, client: Client, missing: set[TopicPartition]) -> bool:
        waiter = self.driven.add(client.transactional_id, client.producer, *missing, version=client.version)
        if waiter.error is None:
            may_add = not client.is_fenced and not client.is_late
            assert may_add, "a fenced producer may add nothing"
            client.added |= missing
        return waiter.error is None

    def _verified(self, client: Client, partition: TopicPartition) -> bool:
        waiter = self.driven.verify(client.transactional_id, client.producer, partition)
        may_write: bool = waiter.error is None and waiter.response[partition] is ErrorCode.NONE
        assert not (may_write and (client.is_fenced or client.is_late)), "a fenced producer may write nothing"
        return may_write

    @rule(transactional_id=st.sampled_from(IDS), dice=DICE, is_commit=st.booleans(), lost=st.booleans())
    def end(self, transactional_id: str, dice: int, is_commit: bool, lost: bool) -> None:
        """A producer ends its transaction."""
        client = self._client(transactional_id, dice)
        if client is not None:
            self._end_by(client, is_commit=is_commit, answer_is_lost=lost)

    def _end_by(self, client: Client, *, is_commit: bool, answer_is_lost: bool) -> None:
        """End a transaction; an answer that is lost is asked for again."""
        before = client.producer
        waiter = self._end(client, is_commit=is_commit)
        if waiter.error is not None:
            return
        for batches in client.batches.values():
            self.promised.update(dict.fromkeys(batches, is_commit))
        client.batches.clear()
        client.added.clear()
        answered = waiter.response
        if answer_is_lost:
            client.producer = before
            again = self._end(client, is_commit=is_commit)
            assert again.error is None or again.error_code in (
                ErrorCode.CONCURRENT_TRANSACTIONS,
                ErrorCode.INVALID_TXN_STATE if client.version < 2 else ErrorCode.CONCURRENT_TRANSACTIONS,
            )
            late = self._end(client, is_commit=not is_commit)
            assert late.error is not None, "an end is not taken back"
        if client.version >= 2:
            client.producer = answered.producer
            client.is_late = False

    def _end(self, client: Client, *, is_commit: bool) -> Any:
        waiter = self.driven.end(client.transactional_id, client.producer, is_commit=is_commit, version=client.version)
        if waiter.error is None and client.is_fenced:
            metadata = self.driven.metadata(client.transactional_id)
            assert metadata.producer_epoch == client.producer.producer_epoch + 1, "only its own end is told again"
        return waiter

    def _client(self, transactional_id: str, dice: int) -> Client | None:
        """Return the newest producer of an id, now and then one that it fenced."""
        found = [client for client in self.clients if client.transactional_id == transactional_id]
        if not found:
            return None
        return found[-2] if dice == 0 and len(found) > 1 else found[-1]

    # ------------------------------------------------------------------------------------------------------ the rest

    @precondition(lambda self: self.driven.sent)
    @rule(number=st.integers(0, 9), failing=st.sets(st.sampled_from(PARTITIONS)), code=st.sampled_from(PASSING))
    def write_markers(self, number: int, failing: set[TopicPartition], code: ErrorCode) -> None:
        """Markers arrive, in any order; some partitions cannot take them now, or took them and cannot say so."""
        self._write(self.driven.sent[number % len(self.driven.sent)], failing, code)

    def _write(self, wanted: MarkersWanted, failing: set[TopicPartition], code: ErrorCode) -> None:
        codes = {}
        for partition in wanted.partitions:
            took_it = partition not in failing or code is ErrorCode.REQUEST_TIMED_OUT
            codes[partition] = self.logs[partition].mark(wanted.metadata) if took_it else code
            if partition in failing:
                codes[partition] = code
        self.driven.answered(wanted, codes)

    @rule(duration_ms=st.sampled_from([1, 50, 50, 500, 500, 2_000, 2_000, 10_000, 70_000]))
    def wait(self, duration_ms: int) -> None:
        """Time passes: pauses end, transactions run out of time."""
        self.driven.harness.advance(duration_ms)
        self._note_aborted()

    @rule(loses_answers=st.booleans())
    def reload(self, loses_answers: bool) -> None:
        """The coordinator moves; markers of the old one may still arrive, their answers are ignored."""
        late = list(self.driven.sent)
        self.driven.sent.clear()
        self.driven.harness.reload()
        for wanted in late:
            if loses_answers:
                for partition in wanted.partitions:
                    self.logs[partition].mark(wanted.metadata)
            else:
                self._write(wanted, set(), ErrorCode.NONE)

    @rule(dice=DICE)
    def exhaust_epochs(self, dice: int) -> None:
        """Now and then bring ids to their last epochs."""
        if dice:
            return
        for metadata in list(self.driven.harness.shard.ids.values()):
            if metadata.state is TransactionState.EMPTY and metadata.producer_epoch < 32_765:
                last = attrs.evolve(metadata, producer_epoch=32_765)
                self.driven.harness.run(partial(_overwritten, last))
                for client in self.clients:
                    client.is_fenced = client.is_fenced or client.transactional_id == metadata.transactional_id

    def _note_aborted(self) -> None:
        """Whoever's transaction ran out of time has lost what it wrote."""
        for client in self.clients:
            metadata = self.driven.metadata(client.transactional_id)
            same = (metadata.producer_id, metadata.producer_epoch) == tuple(attrs.astuple(client.producer))
            if not same and client.batches and client.transactional_id == metadata.transactional_id:
                client.batches.clear()
                client.added.clear()
                client.is_late = True

    # ---------------------------------------------------------------------------------------------------- invariants

    @invariant()
    def epochs_only_grow(self) -> None:
        for metadata in self.driven.harness.shard.ids.values():
            seen = self.epochs_seen.get(metadata.producer_id, -1)
            assert metadata.producer_epoch >= seen
            self.epochs_seen[metadata.producer_id] = metadata.producer_epoch

    @invariant()
    def a_log_moves_as_the_table_says(self) -> None:
        log = self.driven.harness.log
        for entry in log[self.checked_count :]:
            assert isinstance(entry, LoggedRecord)
            metadata = entry.record.metadata
            assert metadata is not None
            before = self.states.get(metadata.transactional_id, TransactionState.EMPTY)
            assert before in PREVIOUS_STATES[metadata.state]
            self.states[metadata.transactional_id] = metadata.state
        self.checked_count = len(log)

    @invariant()
    def what_was_promised_is_never_broken(self) -> None:
        for log in self.logs.values():
            assert all(self.promised.get(batch, False) for batch in log.committed), "not promised, yet visible"
            assert not any(self.promised.get(batch, False) for batch in log.aborted), "promised, yet aborted"

    def teardown(self) -> None:
        """In the end everything prepared is complete, and every promise kept."""
        if not hasattr(self, "driven"):
            return
        for _ in range(40):
            for wanted in list(self.driven.sent):
                self._write(wanted, set(), ErrorCode.NONE)
            self.driven.harness.advance(2_000)

        assert not any(metadata.state in PREPARED for metadata in self.driven.harness.shard.ids.values())
        visible = {batch for log in self.logs.values() for batch in log.committed}

        assert {batch for batch, is_commit in self.promised.items() if is_commit} == visible
        self.driven.harness.reload()


def _overwritten(metadata: TransactionMetadata, _shard: object, _now_ms: int) -> Any:
    return CoordinatorResult([TransactionRecord(metadata.transactional_id, metadata)], None)


def live(seed: int, steps_count: int = 300) -> TransactionMachine:
    """Return a machine that has lived a long life: shrinking is for the rules above, density is for this."""
    rng = random.Random(seed)
    machine = TransactionMachine()
    machine.start(version=rng.choice([0, 2]))
    actions: list[tuple[int, Callable[[str, set[TopicPartition], bool], object]]] = [
        (8, lambda name, where, yes: machine.transact(name, where, yes, rng.random() < 0.2)),
        (4, lambda name, where, _: machine.write(name, rng.randint(0, 5), where)),
        (2, lambda name, _, yes: machine.end(name, rng.randint(0, 5), yes, rng.random() < 0.2)),
        (2, lambda name, _, yes: machine.take_over(name, yes, 0)),
        (9, lambda _, where, yes: mark(machine, where if yes else set(), rng)),
        (5, lambda *_: machine.wait(rng.choice([50, 500, 2_000, 10_000]))),
        (2, lambda *_: machine.wait(rng.choice([1, 70_000]))),
        (1, lambda _, __, yes: machine.reload(yes)),
        (1, lambda *_: machine.exhaust_epochs(rng.randint(0, 5))),
    ]
    weights = [weight for weight, _ in actions]
    for _ in range(steps_count):
        [(_, act)] = rng.choices(actions, weights)
        act(rng.choice(IDS), {each for each in PARTITIONS if rng.random() < 0.5} or {PARTITIONS[0]}, rng.random() < 0.6)
        machine.epochs_only_grow()
        machine.a_log_moves_as_the_table_says()
        machine.what_was_promised_is_never_broken()
    machine.teardown()
    return machine


def mark(machine: TransactionMachine, failing: set[TopicPartition], rng: random.Random) -> None:
    if machine.driven.sent:
        machine.write_markers(rng.randint(0, 9), failing, rng.choice(PASSING))


@pytest.mark.parametrize("seed", range(20))
def test_a_long_life_keeps_every_promise(seed: int) -> None:
    machine = live(seed)

    assert machine.promised


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_long_lives_keep_every_promise(seed: int) -> None:
    live(seed, steps_count=600)


def test_lives_meet_everything() -> None:
    counters = [live(seed).driven.counters for seed in range(100, 120)]
    met = {field.name: sum(getattr(each, field.name) for each in counters) for field in attrs.fields(type(counters[0]))}
    met.pop("expired_count")

    assert min(met.values()) > 10, met


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_a_refused_request_writes_nothing() -> None:
    driven = DrivenShard()
    nobody = ProducerIdentity(1, 1)
    driven.add("a", nobody, PARTITIONS[0])
    driven.end("a", nobody, is_commit=True)
    driven.init("a", timeout_ms=0)
    driven.producer_ids = 0
    waiter = driven.init("a")

    assert isinstance(waiter.error, KafkaError)
    assert driven.harness.log == []


def test_an_end_whose_record_was_refused_was_never_decided() -> None:
    driven = DrivenShard()
    producer = driven.init("a").response.producer
    driven.add("a", producer, PARTITIONS[0])
    shard = driven.harness.shard
    refused = shard.end(EndRequest("a", producer, is_commit=True, client_version=2), driven.harness.now_ms)
    [(_, wanted)] = refused.answers
    driven.answered(wanted, {})
    driven.harness.advance(10_000)

    assert driven.sent == []
    driven.end("a", producer, is_commit=False)
    driven.write_all()

    assert driven.metadata("a").state is TransactionState.COMPLETE_ABORT


def test_a_completion_whose_record_was_refused_is_written_later() -> None:
    driven = DrivenShard()
    producer = driven.init("a").response.producer
    driven.add("a", producer, PARTITIONS[0])
    driven.end("a", producer, is_commit=True)
    wanted = driven.sent.pop()
    driven.harness.shard.markers_answered(wanted, {PARTITIONS[0]: ErrorCode.NONE}, driven.harness.now_ms)

    assert driven.metadata("a").state is TransactionState.PREPARE_COMMIT
    driven.harness.advance(10_000)

    assert driven.metadata("a").state is TransactionState.COMPLETE_COMMIT
    assert not [key for key in driven.harness.armed if key[0] == "markers"]
