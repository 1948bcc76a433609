"""Sequences under random failures, against a model of the leader: records are never doubled, reordered or lost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.accumulator import Accumulator, ProducerBatch
from odradek.client.sequences import EPOCH_MAX, UNKNOWN_FATE, Sequences
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.types import TopicPartition

from .model_partition import ModelPartition

PARTITION = TopicPartition("t", 0)
IN_FLIGHT_MAX = 5
AFTER_THE_APPEND = [
    ErrorCode.REQUEST_TIMED_OUT,  # the in-sync replicas were too slow
    ErrorCode.NOT_LEADER_OR_FOLLOWER,  # another one leads by now
    ErrorCode.KAFKA_STORAGE_ERROR,  # its disk failed while it waited for them
    ErrorCode.UNKNOWN_SERVER_ERROR,  # something else did
]
"""What a leader may answer of a batch that it has appended."""


class Session:
    """A producer's decisions, as the sender takes them, with a leader and a network that fail at random."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.accumulator = Accumulator(120, 0, 10**9, CompressionType.NONE)
        self.sequences = Sequences()
        self.sequences.set_producer_id(7, source.choice([0, EPOCH_MAX - 1]))
        self.leader = ModelPartition()
        self.wire: list[ProducerBatch] = []
        self.zombies: list[bytes] = []
        self.ids_count = 0
        self.next_value = 0
        self.acknowledged: list[int] = []
        self.refused: list[int] = []
        self.given_up: list[int] = []
        self.values: dict[ProducerBatch, list[int]] = {}

    def append(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            taken = self.accumulator.append(PARTITION, None, str(self.next_value).encode(), (), 0, 0, 23)
            assert taken is not None
            self.values.setdefault(taken[0], []).append(self.next_value)
            self.next_value += 1

    def send(self) -> None:
        self.sequences.restart_broken()
        if not self.sequences.has_producer_id:
            # A leader cannot tell that the old id is over: Kafka, too, relies on nothing of it being under way still.
            self.zombies.clear()
            if self.random.random() < 0.5:  # a new one takes some turns
                self.ids_count += 1
                self.sequences.set_producer_id(1_000 + self.ids_count, self.random.choice([0, EPOCH_MAX]))
        self.accumulator.is_flushing = True
        while len(self.wire) < IN_FLIGHT_MAX and self.accumulator.ready(0, lambda _: 1).nodes:
            batches = self.accumulator.drain([PARTITION], 10**6, self.sequences.may_send, self.sequences.assign)
            if not batches:
                return
            assert batches[0].producer_id >= 0, "nothing leaves without a number"
            batches[0].is_on_wire = True
            self.wire.append(batches[0])

    def answer(self) -> None:
        """The leader answers the oldest request, rightly or with an error of its own."""
        if not self.wire:
            return
        batch = self.wire.pop(0)
        batch.is_on_wire = False
        event = self.random.random()
        if event < 0.1:  # it leads no more when it is asked
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif event < 0.15:
            code = ErrorCode.INVALID_RECORD
        else:
            code, _ = self.leader.append(batch.encode())
            if event < 0.35 and code is ErrorCode.NONE:
                code = self.random.choice(AFTER_THE_APPEND)
        self.decide(batch, code)

    def drop_connection(self) -> None:
        """Nobody knows how far the leader came; the rest may still reach it later, over the old connection."""
        reached = self.random.randint(0, len(self.wire))
        for index, batch in enumerate(self.wire):
            if index < reached:
                self.leader.append(batch.encode())
            elif not self.zombies and self.random.random() < 0.3:
                # One at a time: two of them, just after the leader called a later batch a gap, would make that batch a
                # duplicate. No producer of Kafka's can rule that out either.
                self.zombies.append(bytes(batch.encode()))
        dropped, self.wire = self.wire, []
        for batch in dropped:
            batch.is_on_wire = False
            self.decide(batch, ErrorCode.NETWORK_EXCEPTION)

    def let_zombie_arrive(self) -> None:
        if self.zombies:
            self.leader.append(self.zombies.pop(0))

    def decide(self, batch: ProducerBatch, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            self.sequences.acknowledge(batch)
            self.acknowledged += self.values[batch]
            self.accumulator.release(batch)
            return
        batch.is_fate_unknown = batch.is_fate_unknown or code in UNKNOWN_FATE
        if self.sequences.may_retry(batch, code):
            self.accumulator.requeue(batch, 0)
        else:
            self.give_up(batch)

    def expire(self) -> None:
        """The oldest waiting batch is given up, as at its delivery deadline."""
        waiting = [batch for batch in self.accumulator.unfinished if not batch.is_on_wire]
        if waiting:
            oldest = min(waiting, key=lambda batch: batch.ordinal)
            before = {batch: batch.created_ms for batch in waiting}
            oldest.created_ms = -1
            taken = self.accumulator.take_expired(0)
            assert [oldest] == taken, before
            self.give_up(oldest)

    def give_up(self, batch: ProducerBatch) -> None:
        self.sequences.fail(batch, is_fate_known=not batch.is_fate_unknown)
        (self.given_up if batch.is_fate_unknown else self.refused).extend(self.values[batch])
        self.accumulator.release(batch)

    def settle(self) -> None:
        """Everything works again: the rest must get through."""
        for _ in range(1_000):
            if not self.accumulator.has_unfinished:
                return
            self.send()
            while self.wire:
                batch = self.wire.pop(0)
                batch.is_on_wire = False
                self.decide(batch, self.leader.append(batch.encode())[0])
        raise AssertionError(f"stuck: {self.accumulator.unfinished} {self.sequences}")

    def written(self) -> list[int]:
        return [int(value or b"") for value in self.leader.values]


def run(source: random.Random, steps: int) -> Session:
    session = Session(source)
    actions = [session.append, session.send, session.answer, session.answer, session.send, session.append]
    rare = [session.drop_connection, session.expire, session.let_zombie_arrive]
    for _ in range(steps):
        source.choice(rare if source.random() < 0.12 else actions)()
    session.settle()
    return session


def check(session: Session) -> None:
    written = session.written()
    assert written == sorted(set(written)), "never doubled, never out of order"
    assert set(session.acknowledged) <= set(written), "acknowledged is kept"
    assert not set(session.refused) & set(written), "what was refused for certain is not there"
    accounted = sorted(session.acknowledged + session.refused + session.given_up)
    assert accounted == list(range(session.next_value)), "each record has one fate"


@given(st.randoms(use_true_random=False), st.integers(1, 120))
def test_random_failures_never_double_reorder_or_lose_a_record(source: random.Random, steps: int) -> None:
    check(run(source, steps))


@pytest.mark.parametrize("seed", range(60))
def test_long_runs_with_fixed_seeds(seed: int) -> None:
    check(run(random.Random(seed), 400))


@pytest.mark.sweep
def test_many_long_runs() -> None:
    for seed in range(20_000):
        check(run(random.Random(seed), 300))


def test_a_split_batch_keeps_its_place_and_its_sequences() -> None:
    session = Session(random.Random(0))
    session.append()
    session.append()
    session.send()
    batch = next(batch for batch in session.wire if batch.records_count > 1)
    for other in session.wire[: session.wire.index(batch)]:
        session.leader.append(other.encode())
    base = batch.base_sequence
    batch.is_on_wire = False
    batch.is_fate_unknown = True
    parts = session.accumulator.split(batch)
    session.sequences.split(batch, parts)

    assert [base, base + parts[0].records_count] == [part.base_sequence for part in parts]
    assert [part.is_fate_unknown for part in parts] == [True, True], "what became of its attempts they do not know"


def test_a_broken_chain_whose_epochs_are_used_up_waits_for_a_new_producer_id() -> None:
    accumulator, sequences = Accumulator(100, 0, 10**9, CompressionType.NONE), Sequences()
    sequences.set_producer_id(7, EPOCH_MAX)

    def drain() -> list[ProducerBatch]:
        return accumulator.drain([PARTITION], 10**6, sequences.may_send, sequences.assign)

    for value in (b"appended", b"refused", b"behind it"):
        assert accumulator.append(PARTITION, None, value, (), 0, 0, 60)
    sequences.acknowledge(*drain())
    (refused,), (behind,) = drain(), drain()
    sequences.fail(refused, is_fate_known=True)
    accumulator.requeue(behind, 0)
    sequences.restart_broken()
    sequences.restart_broken()  # the sender looks again before the answer is there

    assert not drain()
    sequences.set_producer_id(1_000, 0)
    sequences.restart_broken()
    assert drain() == [behind]
    assert (behind.producer_id, behind.producer_epoch, behind.base_sequence) == (1_000, 0, 0)
