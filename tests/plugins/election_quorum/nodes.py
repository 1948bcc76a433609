"""Toy replicas around quorum elections: a log of values, a file of hard state, a pool of messages. No time, no chance.

What a broker would do around the election is done here as it should be there: hard state is kept before anything is
sent, a leader's records count when they are flushed, a follower flushes what it fetched before it fetches on, logs are
compared by epochs before a fetch counts.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import attrs

from odradek.kernel.api import (
    ZERO_ID,
    ElectionContext,
    EpochEnd,
    ErrorCode,
    FetchEnded,
    KRaftVersionRange,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    Message,
    MetadataChanged,
    PartitionState,
    PeerMessage,
    Ready,
    Role,
    VotersChanged,
    decode,
    encode_bytes,
)
from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.errors import error_code
from odradek.plugins.election_quorum.ballots import State
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.testing.contracts.election import PARTITION

CONFIG = BrokerConfig(Registry.of())


class Entry(NamedTuple):
    """A record of a log."""

    epoch: int
    value: str
    voters: KRaftVoters | None = None


class Fetch(NamedTuple):
    """A fetch, as far as the quorum cares."""

    directory_id: uuid.UUID
    epoch: int
    offset: int
    last_epoch: int


class Fetched(NamedTuple):
    """Its answer."""

    error: ErrorCode
    leader_id: int
    leader_epoch: int
    offset: int = 0
    entries: tuple[Entry, ...] = ()
    high_watermark: int = 0
    diverging: EpochEnd | None = None


@attrs.frozen
class Sent:
    """Something under way."""

    source: int
    target: int
    body: Message | Fetch | Fetched


def directory_of(broker_id: int, life: int = 0) -> uuid.UUID:
    """Return the id of a broker's directory, another one after its disk was replaced."""
    return uuid.UUID(int=1000 * (life + 1) + broker_id)


def voters_of(*broker_ids: int) -> KRaftVoters:
    """Return the record that names brokers as voters, each in its first directory."""
    feature = KRaftVersionRange(min_supported_version=0, max_supported_version=1)
    return KRaftVoters(
        voters=[
            KRaftVoter(voter_id=each, voter_directory_id=directory_of(each), k_raft_version_feature=feature)
            for each in broker_ids
        ]
    )


def over_the_wire(message: Message) -> Message:
    """Return a message as its receiver sees it."""
    version = type(message).__versions__.highest
    return decode(type(message), encode_bytes(message, version), version)


class Node:
    """One replica and its process. What is on the disk: `log` up to `flushed`, `hard_state`."""

    def __init__(
        self,
        broker_id: int,
        founding: KRaftVoters | tuple[int, ...],
        send: Callable[[Sent], None],
        *,
        source: random.Random,
        directory_id: uuid.UUID | None = None,
    ) -> None:
        self.broker_id, self.founding, self._send, self._source = broker_id, founding, send, source
        known = isinstance(founding, KRaftVoters)
        self.directory_id = directory_id or (directory_of(broker_id) if known else ZERO_ID)
        self.log: list[Entry] = []
        self.flushed = 0
        self.hard_state: bytes | None = None
        self.is_alive = False
        self.clock_ms = 0
        self.leader_id = -1
        self.fetch_max = 3
        self.may_have_lost = False
        self.knows_epochs = True
        self.named: PartitionState | None = None
        self.silent_step_ms = 0  # all may stand at once, which is harder
        self.election: QuorumElection

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a process over what is on the disk."""
        del self.log[self.flushed :]
        self.is_alive, self.leader_id = True, -1
        self.election = QuorumElection(
            ElectionContext(
                partition=PARTITION,
                broker_id=self.broker_id,
                directory_id=self.directory_id,
                log_end_offset=len(self.log),
                high_watermark=0,
                log_end=lambda: EpochEnd(self.log[-1].epoch if self.log and self.knows_epochs else -1, len(self.log)),
                hard_state=self.hard_state,
                config=lambda: CONFIG,
                settings={},
                random=self._source,
                broker=lambda _broker_id: None,
                may_have_lost=self.may_have_lost,
            )
        )
        self.election._replica.timeouts.silent_step_ms = self.silent_step_ms
        self.may_have_lost = False
        self._tell_voters()

    def crash(self) -> None:
        """End it: what is not on the disk is gone."""
        self.is_alive = False

    def lose_power(self, kept: int) -> None:
        """End it with its machine, which has not written more of the log than this; what was kept of votes is."""
        self.crash()
        self.flushed = min(self.flushed, kept)
        self.may_have_lost = True

    @property
    def is_doubtful(self) -> bool:
        """Whether it may have lost what it had acknowledged, and does not have it again."""
        return self.may_have_lost or self.election.standing.may_have_lost

    def wipe(self, life: int) -> None:
        """Replace its disk: it is empty, and another directory, and nobody founds anything on it."""
        self.log, self.flushed, self.hard_state = [], 0, None
        self.directory_id, self.founding = directory_of(self.broker_id, life), KRaftVoters(voters=[])

    def _tell_voters(self) -> None:
        """Tell the election who votes, as the log has it, or the founding."""
        if isinstance(self.founding, KRaftVoters):
            named = [(-1, self.founding)] if self.founding.voters else []
            named += [(offset, entry.voters) for offset, entry in enumerate(self.log) if entry.voters is not None]
            if named:
                former = named[-2][1] if len(named) > 1 else None
                self.election.step(VotersChanged(named[-1][1], named[-1][0], former))
            return
        state = PartitionState(-1, 0, 0, replicas=self.founding, isr=self.founding)
        self.election.step(MetadataChanged(self.named or state, 1))

    def name(self, state: PartitionState) -> None:
        """Have the metadata say this of the voters, in this life and the next."""
        self.named = state
        if self.is_alive:
            self._tell_voters()

    # -- effects -------------------------------------------------------------------------------------------------------

    def carry_out(self, crash: str = "") -> None:
        """Do what the election wants, or die on the way: `before` the hard state is kept, or `after` it is."""
        while self.is_alive and (ready := self.election.ready()) is not None:
            if crash == "before":
                self.crash()
                return
            if ready.hard_state is not None:
                self.keep(ready.hard_state)
            if crash == "after":
                self.crash()
                return
            if ready.role is not None:
                self.leader_id = ready.leader_id
            self._append_control(ready)
            for message in ready.messages:
                self._send(Sent(self.broker_id, message.broker_id, over_the_wire(message.message)))
            self.election.advance(ready)

    def keep(self, hard_state: bytes) -> None:
        """Make hard state durable."""
        self.hard_state = hard_state

    def _append_control(self, ready: Ready) -> None:
        if not ready.append or not self.leads_in(ready.leader_epoch):
            return
        for record in ready.append:
            if isinstance(record, KRaftVoters):
                names = ",".join(str(voter.voter_id) for voter in record.voters)
                self.log.append(Entry(ready.leader_epoch, f"voters({names})", record))
                self._tell_voters()
            elif isinstance(record, LeaderChange):
                self.log.append(Entry(ready.leader_epoch, f"leader({record.leader_id})"))
            else:
                self.log.append(Entry(ready.leader_epoch, "version"))
        self.flush()

    def leads_in(self, epoch: int) -> bool:
        """Return whether it leads in an epoch."""
        return self.election.state is State.LEADER and self.election.leader_epoch == epoch

    def append(self, value: str) -> None:
        """Append a record of a client, as the leader; it is not durable yet."""
        self.log.append(Entry(self.election.leader_epoch, value))

    def flush(self) -> None:
        """Make the log durable, and let it count."""
        self.flushed = len(self.log)
        self.election.local_append(self.flushed)

    # -- fetching ------------------------------------------------------------------------------------------------------

    def fetch(self) -> None:
        """Ask the leader for what comes next."""
        if self.election.role is Role.FOLLOWER and self.leader_id >= 0:
            self.fetch_from(self.leader_id)

    def fetch_from(self, broker_id: int) -> None:
        """Ask somebody for what comes next: observers look for the leader so."""
        last_epoch = self.log[-1].epoch if self.log else -1
        request = Fetch(self.directory_id, self.election.leader_epoch, len(self.log), last_epoch)
        self._send(Sent(self.broker_id, broker_id, request))

    def answer_fetch(self, source: int, request: Fetch) -> Fetched:
        """Answer a fetch, and take note of it."""
        election = self.election
        epoch, leader = election.leader_epoch, election.standing.leader_id
        if request.epoch < epoch:
            return Fetched(ErrorCode.FENCED_LEADER_EPOCH, leader, epoch)
        if request.epoch > epoch:
            return Fetched(ErrorCode.UNKNOWN_LEADER_EPOCH, leader, epoch)
        if not self.leads_in(epoch):
            return Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader, epoch)
        end = self.end_of_epoch(request.last_epoch)
        if request.last_epoch >= 0 and (end.leader_epoch < request.last_epoch or end.end_offset < request.offset):
            return Fetched(ErrorCode.NONE, leader, epoch, diverging=end)
        high_watermark = election.follower_fetch(source, -1, request.offset, 0, self.clock_ms, request.directory_id)
        entries = tuple(self.log[request.offset : request.offset + self.fetch_max])
        return Fetched(ErrorCode.NONE, leader, epoch, request.offset, entries, high_watermark)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return the largest epoch up to this one in the log, and where it ends."""
        known = [entry.epoch for entry in self.log if entry.epoch <= epoch]
        return EpochEnd(known[-1] if known else -1, len(known))

    def take_fetched(self, source: int, answer: Fetched) -> None:
        """Append what was fetched, or truncate, where it is the answer of the leader of this epoch."""
        election = self.election
        follows = election.state is State.FOLLOWER and source == election.standing.leader_id
        if answer.error is ErrorCode.NONE and follows and answer.leader_epoch == election.leader_epoch:
            if answer.diverging is not None:
                own = self.end_of_epoch(answer.diverging.leader_epoch)
                self._truncate(min(own.end_offset, answer.diverging.end_offset))
            elif answer.offset == len(self.log):
                self.log += answer.entries
                self.flush()
                if any(entry.voters is not None for entry in answer.entries):
                    self._tell_voters()
                election.leader_high_watermark(answer.high_watermark)
        election.step(FetchEnded(source, answer.error, answer.leader_id, answer.leader_epoch))

    def _truncate(self, offset: int) -> None:
        had_voters = any(entry.voters is not None for entry in self.log[offset:])
        del self.log[offset:]
        self.flush()
        if had_voters:
            self._tell_voters()

    # -- messages ------------------------------------------------------------------------------------------------------

    def receive(self, sent: Sent) -> None:
        """Take what has arrived."""
        if isinstance(sent.body, Fetch):
            self._send(Sent(self.broker_id, sent.source, self.answer_fetch(sent.source, sent.body)))
        elif isinstance(sent.body, Fetched):
            self.take_fetched(sent.source, sent.body)
        else:
            self.election.step(PeerMessage(sent.source, sent.body))

    def tick(self, now_ms: int) -> None:
        """Let time pass."""
        self.clock_ms = now_ms
        self.election.tick(now_ms)


def told(body: Any) -> str:
    """Return a message in a few words."""
    if isinstance(body, Fetch):
        return f"fetch in epoch {body.epoch} from {body.offset}"
    if isinstance(body, Fetched):
        return " ".join(_told_fetched(body))
    name = type(body).__name__
    topics = getattr(body, "topics", ())
    part = topics[0].partitions[0] if topics else body
    return " ".join(_told_words(name, body, part))


def _told_fetched(answer: Fetched) -> Iterator[str]:
    yield f"fetched in epoch {answer.leader_epoch}"
    if answer.error is not ErrorCode.NONE:
        yield answer.error.name
    elif answer.diverging is not None:
        yield f"diverges: epoch {answer.diverging.leader_epoch} ends at {answer.diverging.end_offset}"
    else:
        yield f"{len(answer.entries)} from {answer.offset}, high watermark {answer.high_watermark}"


def _told_words(name: str, body: Any, part: Any) -> Iterator[str]:
    if name == "VoteRequest":
        kind = "pre-vote" if part.pre_vote else "vote"
        yield f"{kind} in epoch {part.replica_epoch} for a log to {part.last_offset} of epoch {part.last_offset_epoch}"
        return
    yield {"VoteResponse": "voted", "BeginQuorumEpochRequest": "begin", "EndQuorumEpochRequest": "end"}.get(name, name)
    if hasattr(part, "leader_epoch"):
        yield f"in epoch {part.leader_epoch}"
    if name == "VoteResponse" and not part.error_code:
        yield "yes" if part.vote_granted else f"no, leader {part.leader_id}"
    if name == "EndQuorumEpochRequest":
        yield "successors " + ",".join(str(each.candidate_id) for each in part.preferred_candidates)
    code = getattr(part, "error_code", 0) or getattr(body, "error_code", 0)
    if code:
        yield error_code(code).name
    if getattr(body, "error_message", None):
        yield f"({body.error_message})"
