"""Pure core: one replica around an election under test: its log, its process, its fetches, what its disk keeps.

What a broker does around an election is done here as the kernel does it: hard state is kept before anything follows
from it, records are appended without waiting for the disk, a fetch counts for a leader of the same epoch whose log
agrees with the follower's, and a follower truncates where they part (KIP-101). A follower has one fetch under way: an
answer to an earlier one, which it has given up, is no answer.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import attrs

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import (
    ElectionContext,
    FetchEnded,
    IsrChange,
    MetadataChanged,
    PeerMessage,
    Role,
)
from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import ZERO_ID

from .election_base import PARTITION

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from odradek.kernel.contracts.election import Election, ElectionFactory, Ready
    from odradek.kernel.wire.message import Message

    from .election_controller import Image

FETCH_MAX = 3
"""How many records a fetch brings."""
PATIENCE = 4
"""After so many times that it could have asked again, a follower gives up a fetch."""
_CONFIG = BrokerConfig(Registry.of())


class Entry(NamedTuple):
    """A record of a log."""

    epoch: int
    value: str


class Fetch(NamedTuple):
    """A fetch of a follower."""

    number: int
    broker_epoch: int
    epoch: int
    offset: int
    last_epoch: int


class Fetched(NamedTuple):
    """Its answer, with the fetch's number."""

    number: int
    error: ErrorCode
    leader_id: int
    leader_epoch: int
    offset: int = 0
    entries: tuple[Entry, ...] = ()
    high_watermark: int = 0
    diverging: EpochEnd | None = None


Body: TypeAlias = "Message | Fetch | Fetched"


@attrs.frozen
class Sent:
    """Something under way between two replicas."""

    source: int
    target: int
    body: Body


@attrs.define(repr=False)
class KitReplica:
    """One replica, its process and its disk. Life: `start`, then `end`, as often as you like.

    Attributes:
        broker_id: Whose.
        image: The metadata, as it knows it.
        log: What is in its log; what a process leaves its next one finds.
        hard_state: What its disk keeps of its votes.
        checkpoint: What its disk keeps of its high watermark.
        has_lost: Whether its machine lost its power since it last began.
        is_alive: Whether it has a process.
        role: What its election has made of it.
        leader_id: Whom it takes for the leader, -1 for nobody.
        epoch: Of its registration.
        election: Under test, of the process that it has.
    """

    broker_id: int
    image: Image
    _factory: ElectionFactory
    _settings: Mapping[str, object]
    _source: random.Random
    _send: Callable[[Sent], None]
    _ask: Callable[[int, IsrChange], None]
    log: list[Entry] = attrs.field(factory=list, init=False)
    hard_state: bytes | None = attrs.field(default=None, init=False)
    checkpoint: int = attrs.field(default=0, init=False)
    has_lost: bool = attrs.field(default=False, init=False)
    is_alive: bool = attrs.field(default=False, init=False)
    role: Role = attrs.field(default=Role.OFFLINE, init=False)
    leader_id: int = attrs.field(default=-1, init=False)
    epoch: int = attrs.field(default=0, init=False)
    election: Election = attrs.field(init=False)
    _fetches: int = attrs.field(default=0, init=False)
    _awaited: int = attrs.field(default=0, init=False)
    _patience: int = attrs.field(default=0, init=False)

    # ----------------------------------------------------------------------------------------------------------- life

    def start(self, broker_epoch: int, image: Image, min_isr: int) -> None:
        """Begin a process over what is on the disk.

        Args:
            broker_epoch: Of its registration.
            image: The metadata as it is now: a broker has it before it serves.
            min_isr: Of the topic.
        """
        self.is_alive, self.leader_id, self.role, self.epoch = True, -1, Role.OFFLINE, broker_epoch
        self._awaited = 0
        self.image = image
        self.election = self._factory.new_election(
            ElectionContext(
                partition=PARTITION,
                broker_id=self.broker_id,
                directory_id=ZERO_ID,
                log_end_offset=len(self.log),
                high_watermark=min(self.checkpoint, len(self.log)),
                log_end=self.log_end,
                hard_state=self.hard_state,
                config=lambda: _CONFIG,
                settings=self._settings,
                random=self._source,
                broker=lambda broker_id: self.image.brokers.get(broker_id),
                may_have_lost=self.has_lost,
            )
        )
        self.has_lost = False
        self.learn(image, min_isr)

    def learn(self, image: Image, min_isr: int) -> None:
        """Take the newest metadata."""
        self.image = image
        self.election.step(MetadataChanged(image.state, min_isr))

    def end(self) -> None:
        """Have its process killed: what the system has in memory stays."""
        self.is_alive, self.role = False, Role.OFFLINE

    def lose_power(self, kept: int) -> None:
        """Have its machine lose its power, and with it all of the log but so many records."""
        self.end()
        del self.log[kept:]
        self.checkpoint = min(self.checkpoint, kept)
        self.has_lost = True

    def log_end(self) -> EpochEnd:
        """Return the epoch that its log ends with, and where it ends."""
        return EpochEnd(self.log[-1].epoch if self.log else -1, len(self.log))

    def leads_in(self, epoch: int) -> bool:
        """Whether it leads in an epoch."""
        return self.is_alive and self.election.role is Role.LEADER and self.election.leader_epoch == epoch

    def __repr__(self) -> str:
        log = " ".join(f"{entry.epoch}:{entry.value}" for entry in self.log)
        return f"<replica {self.broker_id}{'' if self.is_alive else ' (dead)'}: {self.election!r}, log {log}>"

    # -------------------------------------------------------------------------------------------------------- effects

    def carry_out(self, *, dies: str = "") -> None:
        """Do what the election wants; or die on the way: `before` hard state is kept, or `after` it is."""
        for _ in range(100):
            ready = self.election.ready()
            if ready is None:
                return
            if dies == "before":
                self.end()
                return
            self.hard_state = self.hard_state if ready.hard_state is None else ready.hard_state
            if dies:
                self.end()
                return
            self._do(ready)
            self.election.advance(ready)
        raise AssertionError("effects never end")

    def _do(self, ready: Ready) -> None:
        if ready.role is not None:
            self.role, self.leader_id = ready.role, ready.leader_id
        if ready.append and self.leads_in(ready.leader_epoch):
            self.log += [Entry(ready.leader_epoch, f"{type(each).__name__} {self.broker_id}") for each in ready.append]
            self.election.local_append(len(self.log))
        for message in ready.messages:
            self._send(Sent(self.broker_id, message.broker_id, message.message))
        if ready.isr_change is not None:
            self._ask(self.broker_id, ready.isr_change)

    # -------------------------------------------------------------------------------------------------------- records

    def append(self, value: str) -> bool:
        """Take a record of a producer that waits for all; return whether it was taken."""
        epoch = self.election.leader_epoch
        if self.role is not Role.LEADER or not self.leads_in(epoch) or not self.election.can_acknowledge():
            return False
        self.log.append(Entry(epoch, value))
        self.election.local_append(len(self.log))
        return True

    def fetch(self) -> None:
        """Ask the leader for what comes next, if no answer is under way, or for too long."""
        self._patience -= 1
        if self._awaited and self._patience > 0:
            return
        if self.role is Role.FOLLOWER and self.election.role is Role.FOLLOWER and self.leader_id >= 0:
            end = self.log_end()
            self._fetches += 1
            self._awaited, self._patience = self._fetches, PATIENCE
            request = Fetch(self._awaited, self.epoch, self.election.leader_epoch, end.end_offset, end.leader_epoch)
            self._send(Sent(self.broker_id, self.leader_id, request))

    def answer_fetch(self, source: int, request: Fetch, now_ms: int) -> Fetched:
        """Answer a fetch, and take note of it where its log agrees."""
        election, leader = self.election, self.leader_id
        epoch = election.leader_epoch
        if request.epoch != epoch:
            is_old = request.epoch < epoch
            error = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            return Fetched(request.number, error, leader, epoch)
        if self.role is not Role.LEADER or not self.leads_in(epoch):
            return Fetched(request.number, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader, epoch)
        end = self._end_of_epoch(request.last_epoch)
        if request.last_epoch >= 0 and (end.leader_epoch < request.last_epoch or end.end_offset < request.offset):
            return Fetched(request.number, ErrorCode.NONE, leader, epoch, diverging=end)
        committed = election.follower_fetch(source, request.broker_epoch, request.offset, 0, now_ms)
        entries = tuple(self.log[request.offset : request.offset + FETCH_MAX])
        return Fetched(request.number, ErrorCode.NONE, leader, epoch, request.offset, entries, committed)

    def take_fetched(self, source: int, answer: Fetched) -> None:
        """Append what was fetched, or truncate, where it is the answer of the leader that is followed."""
        if answer.number != self._awaited:
            return
        election, self._awaited = self.election, 0
        follows = self.role is Role.FOLLOWER is election.role and source == self.leader_id
        if answer.error is ErrorCode.NONE and follows and answer.leader_epoch == election.leader_epoch:
            if answer.diverging is not None:
                own = self._end_of_epoch(answer.diverging.leader_epoch)
                del self.log[min(own.end_offset, answer.diverging.end_offset) :]
                election.local_append(len(self.log))
            elif answer.offset == len(self.log):
                self.log += answer.entries
                election.local_append(len(self.log))
                election.leader_high_watermark(answer.high_watermark)
        election.step(FetchEnded(source, answer.error, answer.leader_id, answer.leader_epoch))

    def _end_of_epoch(self, epoch: int) -> EpochEnd:
        known = [entry.epoch for entry in self.log if entry.epoch <= epoch]
        return EpochEnd(known[-1] if known else -1, len(known))

    def receive(self, sent: Sent, now_ms: int) -> None:
        """Take what has arrived."""
        if isinstance(sent.body, Fetch):
            self._send(Sent(self.broker_id, sent.source, self.answer_fetch(sent.source, sent.body, now_ms)))
        elif isinstance(sent.body, Fetched):
            self.take_fetched(sent.source, sent.body)
        else:
            self.election.step(PeerMessage(sent.source, sent.body))
