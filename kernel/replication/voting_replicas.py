"""Shell: the elections of all replicas of a broker that vote, run by one task.

    a replica's inputs ──> election ──> `note` ─┐                     ┌─> votes of all: one fsync (`vote_log`)
    time, for all of them ──────────────────────┼─> a round of walks ─┼─> roles, records, watermarks, one by one
    Vote and its like, of many partitions ──────┘                     └─> messages, one a broker (`vote_channels`)

A round takes the walks of whoever has decided something (`partitions/election_driver`) one step at a time, all of them
as far as their next wait for the disk, which is one for all. So a thousand partitions that lose their leader together
cost one fsync and one request to each broker, step by step, and not a thousand.

What an election is no more, its replica is not from the same moment on, before anything is durable: who leads no more
acknowledges nothing, and who stands takes nothing more of the leader that it had. What an election becomes, its replica
becomes when all that it rests on is kept.

Heartbeats are the replication's: a fetch that was answered speaks for every partition that was asked for in it, and
the leader counts it so. Of partitions in which nothing happens nothing is sent, and they are looked at four times a
second.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ..classes import frozen
from ..contracts.election import FetchEnded, IsrChange, LeadershipGivenUp, PeerMessage, PeerRefused, Role
from ..errors import ErrorCode, StorageError, error_code
from ..machine.turnstile import take_turn
from ..partitions.election_driver import leads_in, walk
from ..partitions.voting import Votes
from ..records.control import build_control_batch
from .vote_channels import Asked, VoteChannels
from .vote_messages import gathered, parts, response_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..contracts.disk_work import DiskWork
    from ..contracts.election import KnownBroker
    from ..contracts.storage import PartitionLog
    from ..machine.clock import Clock
    from ..machine.threads import Workers
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..records.control import KRaftControlRecord
    from ..types import TopicIdPartition, TopicPartition
    from ..wire.message import Message
    from ..wire.messages.api_01_fetch import PartitionData
    from .fetcher import BrokerRequests
    from .vote_log import VoteKey, VoteLogs
    from .vote_messages import Part

log = logging.getLogger(__name__)

TICK_MS: Final = 25
"""How often time passes where something happens."""
CALM_TICK_MS: Final = 250
"""How often everywhere: a small part of the fetch time-out."""
UNREST_MS: Final = 3000
"""So long after anything it is not calm: longer than an election takes."""
REPLICAS_PER_TURN: Final = 100
FORGOTTEN: Final = (
    "it votes, and of what it has voted there is nothing in its log directory: a voter whose disk was replaced, or "
    "emptied, has no vote any more, for it might vote twice; put back what was there, or create the topic anew"
)
NO_DIRECTORY: Final = "it votes, and its storage has no log directory in which votes could be kept"


@frozen
class VotingParts:
    """What elections of a broker work with.

    Attributes:
        replicas: Those of this broker.
        writes: Their way to the disk.
        votes: What is never forgotten.
        worker: The thread that keeps votes; nobody's else, for elections wait for it.
        brokers: The way to other brokers.
        broker: Returns a broker as the metadata knows it now.
        clock: Both clocks.
        cluster_id: Returns the cluster's id.
        timeout_ms: Returns how long another broker's answer may take.
        role_changed: Told of a replica whose role, leader or epoch has changed, when it has.
        forget: Has a partition fetched from nobody until its role changes. Does not raise.
        tell_controller: Tells the controller that a replica leads. Does not raise.
    """

    replicas: Replicas
    writes: StagedWrites
    votes: VoteLogs
    worker: Workers
    brokers: BrokerRequests
    broker: Callable[[int], KnownBroker | None]
    clock: Clock
    cluster_id: Callable[[], str]
    timeout_ms: Callable[[], int]
    role_changed: Callable[[Replica], None]
    forget: Callable[[TopicPartition], None]
    tell_controller: Callable[[Replica, IsrChange], None]


class VotingReplicas:
    """Life: made, `note` as replicas have inputs, `run` as a service. Owned by the broker; any task may call.

    Effects wait for `run`. It is `partitions.voting.Voting`, and `fetcher.LeadersHeard`.
    """

    def __init__(self, parts: VotingParts) -> None:
        """Make it without a replica."""
        self._parts = parts
        self._channels = VoteChannels(
            parts.brokers, cluster_id=parts.cluster_id, timeout_ms=parts.timeout_ms, on_answer=self._take_answer
        )
        self._voting: dict[Replica, None] = {}
        self._restless_ms: dict[Replica, int] = {}
        self._dirty: dict[Replica, None] = {}
        self._states: dict[Replica, bytes] = {}
        self._doubted: set[VoteKey] = set()
        self._later: dict[str, dict[VoteKey, bytes | None]] = {}
        self._changed: set[Replica] = set()
        self._progressed: set[Replica] = set()
        self._asked: dict[int, Asked] = {}
        self._correlation_id = 0
        self._calm_due_ms = 0
        self._woken = trio.Event()

    def __repr__(self) -> str:
        return f"<VotingReplicas: {len(self._voting)}, {len(self._restless_ms)} of them restless>"

    # --------------------------------------------------------------------------------------------- what replicas tell

    def begin(self, log_dirs: Iterable[str]) -> None:
        """See `Voting.begin`."""
        for log_dir in log_dirs:
            self._parts.votes.begin(log_dir)

    def votes_of(self, log: PartitionLog, *, is_at_home: bool) -> Votes:
        """See `Voting.votes_of`."""
        if not log.log_dir:
            raise StorageError(NO_DIRECTORY)
        logs, key = self._parts.votes, _key(log.partition)
        kept = logs.of(log.log_dir).kept(*key)
        if kept is None:
            if log.log_end_offset or not is_at_home:
                raise StorageError(FORGOTTEN)
            return Votes()
        if logs.is_of_this_boot(kept):
            return Votes(kept.state)
        is_whole = log.was_clean and log.log_end_offset  # one of which nothing is left is as clean as a new one
        if key in self._doubted or not is_whole or not logs.has_ended_well(log.log_dir, kept):
            self._doubted.add(key)
            return Votes(kept.state, may_have_lost=True)
        self._keep_later(log.log_dir, key, kept.state)  # from now on this boot's page cache has it
        return Votes(kept.state)

    def _keep_later(self, log_dir: str, key: VoteKey, state: bytes | None) -> None:
        self._later.setdefault(log_dir, {})[key] = state
        self._woken.set()

    def end(self) -> None:
        """See `Voting.end`."""
        self._parts.votes.end(self._later)

    def note(self, replica: Replica) -> None:
        """See `Voting.note`."""
        self._end_what_is_over(replica)
        if replica.offline_reason is not None and not replica.is_paused:
            return  # it takes no part any more
        self._voting[replica] = None
        self._restless_ms[replica] = self._parts.clock.monotonic_ms()
        self._dirty[replica] = None
        self._woken.set()

    def _end_what_is_over(self, replica: Replica) -> None:
        election = replica.election
        if replica.is_leader:
            if not leads_in(election, replica.leader_epoch):
                replica.is_leader = False
                self._parts.replicas.progressed((replica,))
        elif election.role is not Role.FOLLOWER or election.leader_epoch != replica.leader_epoch:
            self._parts.forget(replica.topic_partition)

    def heard(self, leader_id: int, replicas: Iterable[Replica]) -> None:
        """See `LeadersHeard.heard`."""
        event = FetchEnded(leader_id)
        for replica in replicas:
            self._step_fetch(replica, event)

    def refused(self, leader_id: int, replica: Replica, answer: PartitionData) -> None:
        """See `LeadersHeard.refused`."""
        leader = answer.current_leader
        known = (leader.leader_id, leader.leader_epoch) if leader is not None else (-1, -1)
        self._step_fetch(replica, FetchEnded(leader_id, error_code(answer.error_code), *known))

    def _step_fetch(self, replica: Replica, event: FetchEnded) -> None:
        try:
            replica.election.step(event)
            if replica.election.ready() is not None:
                self.note(replica)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self._parts.replicas.fail(replica, error)

    def peer_refused(self, broker_id: int) -> None:
        """Take note that a broker's machine refuses connections: its process is gone, whoever it leads need not wait.

        Does not raise.
        """
        event = PeerRefused(broker_id)
        for replica in list(self._voting):
            if replica.leader_id == broker_id or replica.election.role is Role.CANDIDATE:
                self._step_input(replica, event)

    # ------------------------------------------------------------------------------------------- what other brokers ask

    async def answer(self, request: Message) -> Message:
        """Answer Vote, BeginQuorumEpoch or EndQuorumEpoch of many partitions, once all that it rests on is durable.

        Partitions that have no answer in time are left out. Cancelled: what the request changed is changed.
        """
        asked = Asked()
        first = self._correlation_id + 1
        for part in parts(request):
            replica = self._voter(part)
            if replica is None:
                asked.answers.append((part.topic_id, part.refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
                continue
            self._correlation_id += 1
            self._asked[self._correlation_id] = asked
            asked.open_count += 1
            self._step_message(replica, part.asking, part.alone(replica.partition), self._correlation_id)
        last = self._correlation_id
        try:
            with trio.move_on_after(self._parts.timeout_ms() / 1000):
                await asked.wait()
        finally:
            for correlation_id in range(first, last + 1):
                self._asked.pop(correlation_id, None)
        return gathered(asked.answers) if asked.answers else response_to(request, ErrorCode.INVALID_REQUEST)

    def _take_answer(self, broker_id: int, answer: Message) -> None:
        for part in parts(answer):
            replica = self._voter(part)
            if replica is not None:
                self._step_message(replica, broker_id, part.alone(replica.partition), 0)

    def _step_message(self, replica: Replica, broker_id: int, message: Message, correlation_id: int) -> None:
        self._step_input(replica, PeerMessage(broker_id, message, correlation_id))

    def _step_input(self, replica: Replica, event: PeerMessage | PeerRefused) -> None:
        try:
            replica.step(event)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self._parts.replicas.fail(replica, error)

    def _voter(self, part: Part) -> Replica | None:
        """Return the replica that a part of a message is for, if it has a vote and a log."""
        topic = None if part.topic_id is None else self._parts.replicas.topics_by_id.get(part.topic_id)
        replica = None if topic is None else topic.partitions.get(part.number)
        if replica is None or replica.voting is None or replica.offline_reason is not None:
            return None
        return replica

    # ----------------------------------------------------------------------------------------------------------- rounds

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run all elections until cancelled; what is being kept then is kept."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._channels.run)
            task_status.started()
            while True:
                self._woken = trio.Event()
                await self._let_time_pass()
                await self._round()
                with trio.move_on_after(self._pause_s()):
                    await self._woken.wait()

    def _pause_s(self) -> float:
        """Return how long nothing need be done but for what is noted; for ever where nobody votes."""
        if not self._voting:
            return math.inf
        return (TICK_MS if self._restless_ms else CALM_TICK_MS) / 1000

    async def _let_time_pass(self) -> None:
        now_ms = self._parts.clock.monotonic_ms()
        if now_ms >= self._calm_due_ms:
            self._calm_due_ms = now_ms + CALM_TICK_MS
            await self._look_at_all(now_ms)
        else:
            for replica in list(self._restless_ms):
                self._tick(replica, now_ms)
        for replica, restless_ms in list(self._restless_ms.items()):
            if now_ms - restless_ms >= UNREST_MS:
                del self._restless_ms[replica]

    async def _look_at_all(self, now_ms: int) -> None:
        """Let time pass for all, leave out who is gone, and tell the controller again what it does not say."""
        for number, replica in enumerate(list(self._voting), 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            if replica.is_paused or self._parts.replicas.is_served(replica):
                self._tick(replica, now_ms)
                self._tell_controller(replica)
            else:
                self._leave_out(replica)

    def _leave_out(self, replica: Replica) -> None:
        del self._voting[replica]
        self._restless_ms.pop(replica, None)
        self._dirty.pop(replica, None)
        partition = replica.partition
        if partition.topic_id not in self._parts.replicas.topics_by_id:
            self._keep_later(replica.log.log_dir, _key(partition), None)

    def _tick(self, replica: Replica, now_ms: int) -> None:
        try:
            replica.election.tick(now_ms)
            if replica in self._dirty:
                self._end_what_is_over(replica)
            elif replica.election.ready() is not None:
                self.note(replica)
        except Exception as error:  # a plugin's: its partition pays, nobody else
            self._parts.replicas.fail(replica, error)

    def _tell_controller(self, replica: Replica) -> None:
        """Tell the controller that a replica leads, while the metadata says something else; it may be on its way.

        A leader whose broker is about to stop, as the metadata has it, has others elect another one instead.
        """
        state = replica.state
        if not replica.is_leader or state is None or replica.leader_id not in state.replicas:
            return
        known = self._parts.broker(replica.leader_id)
        if known is not None and not known.is_live and not known.is_fenced:
            replica.step(LeadershipGivenUp())
        elif (state.leader, state.leader_epoch) != (replica.leader_id, replica.leader_epoch):
            change = IsrChange(state.replicas, replica.leader_epoch, state.partition_epoch)
            self._parts.tell_controller(replica, change)

    async def _round(self) -> None:
        """Carry out what is decided, and what follows from that at once; the rest in the next round."""
        dirty, self._dirty = self._dirty, {}
        walks: dict[Replica, Iterator[DiskWork]] = {}
        for replica in dirty:
            if replica.is_paused:
                self._dirty[replica] = None  # its log is not there: later
            elif self._parts.replicas.is_served(replica):
                ready = replica.election.ready()
                if ready is not None:
                    step = _Step(self, replica)
                    send = partial(self._deliver, replica)
                    walks[replica] = walk(ready, replica.election, step, keeper=step, send=send)
        while walks:
            await self._step(walks)
            if self._states:
                await self._keep(walks)
        if self._later:
            await self._keep(walks)

    async def _step(self, walks: dict[Replica, Iterator[DiskWork]]) -> None:
        """Bring walks to where they wait for the disk next, or to their end."""
        for number, (replica, steps) in enumerate(list(walks.items()), 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            if not replica.is_paused and not self._parts.replicas.is_served(replica):
                del walks[replica]  # another one may have been opened in its place, which knows nothing of this
                continue
            try:
                is_over = next(steps, None) is None
                self._tell(replica)
            except Exception as error:  # a disk's, or a plugin's: its partition pays, nobody else
                self._parts.replicas.fail(replica, error)
                is_over = True
            if is_over:
                del walks[replica]
                if replica.offline_reason is None and replica.election.ready() is not None:
                    self.note(replica)

    def _tell(self, replica: Replica) -> None:
        """Tell what the step of a walk has changed."""
        has_changed, has_progressed = replica in self._changed, replica in self._progressed
        self._changed.discard(replica)
        self._progressed.discard(replica)
        if has_changed or has_progressed:
            self._parts.replicas.changed.note((replica,))
            self._parts.replicas.progressed((replica,))
        if has_changed:
            self._parts.role_changed(replica)
            self._tell_controller(replica)

    async def _keep(self, walks: dict[Replica, Iterator[DiskWork]]) -> None:
        """Make durable what walks wait for, of all of them at once; those for which it fails end."""
        states, self._states = self._states, {}
        by_directory, self._later = self._later, {}
        for replica, state in states.items():
            by_directory.setdefault(replica.log.log_dir, {})[_key(replica.partition)] = state
        for log_dir, kept in by_directory.items():
            try:
                await self._parts.worker.do(self._parts.votes.of(log_dir).begin_keep(kept))
            except StorageError as error:
                for replica in [each for each in states if each.log.log_dir == log_dir]:
                    walks.pop(replica, None)
                    self._parts.replicas.fail(replica, error)

    def _deliver(self, replica: Replica, messages: Sequence[PeerMessage]) -> None:
        """Give answers to who asked, and have the rest sent; an answer that nobody waits for any more is dropped."""
        for message in messages:
            if not message.correlation_id:
                self._channels.send(message.broker_id, replica.partition, message.message)
            elif (asked := self._asked.pop(message.correlation_id, None)) is not None:
                asked.take(replica.partition, message.message)

    # ------------------------------------------------------------------------------------------- what a walk may change

    def keep(self, replica: Replica, hard_state: bytes) -> None:
        """Have a state kept with those of others, before the walk goes on."""
        self._states[replica] = hard_state

    def append(self, replica: Replica, records: Sequence[KRaftControlRecord], leader_epoch: int) -> None:
        """Append control records to a leader's log, and write them, as a turn writes what clients bring.

        Raises:
            StorageError: The disk is full or failing.
        """
        now_ms, partition_log = self._parts.clock.now_ms(), replica.log
        base_offset = partition_log.log_end_offset
        batch = build_control_batch(
            records, timestamp=now_ms, base_offset=base_offset, partition_leader_epoch=leader_epoch
        )
        partition_log.append(memoryview(batch), base_offset, base_offset + len(records) - 1, now_ms)
        self._parts.writes.stage(replica)
        self._parts.writes.write_now((replica,))

    def take_role(self, replica: Replica, role: Role, leader_id: int, leader_epoch: int) -> None:
        """Have a replica be what was decided, but for what is over by now."""
        replica.take_role(role, leader_id, leader_epoch)
        self._end_what_is_over(replica)
        self._changed.add(replica)

    def raise_high_watermark(self, replica: Replica, offset: int) -> None:
        """Have a replica show what is committed."""
        before = replica.high_watermark
        replica.raise_high_watermark(offset)
        if replica.high_watermark != before:
            self._progressed.add(replica)


def _key(partition: TopicIdPartition) -> VoteKey:
    return partition.topic_id, partition.partition


@frozen
class _Step:
    """What one replica's walk is given: `ElectedReplica` and `Keeper`."""

    voting: VotingReplicas
    replica: Replica

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        """See `ElectedReplica.take_role`."""
        self.voting.take_role(self.replica, role, leader_id, leader_epoch)

    def raise_high_watermark(self, offset: int) -> None:
        """See `ElectedReplica.raise_high_watermark`."""
        self.voting.raise_high_watermark(self.replica, offset)

    @property
    def flushed_offset(self) -> int:
        """See `Keeper.flushed_offset`: up to where the log is as its topic's settings want it."""
        return self.replica.appended_offset

    def begin_keep(self, hard_state: bytes) -> DiskWork:
        """See `Keeper.begin_keep`; the round does it."""
        self.voting.keep(self.replica, hard_state)
        return _DONE

    def begin_append(self, records: Sequence[KRaftControlRecord], leader_epoch: int) -> DiskWork:
        """See `Keeper.begin_append`; a flush that the topic wants is asked for, and counts when it is done."""
        self.voting.append(self.replica, records, leader_epoch)
        return _DONE


class _Done:
    """Work that somebody else does."""

    def run(self) -> None:
        """See `DiskWork.run`."""

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""


_DONE: Final = _Done()
