"""Shell: what elections decide is carried out in rounds, those of a log directory together: one fsync for all of them.

    noted ──> walks (`partitions/election_driver`) ──> votes of all: one fsync ──> roles, records, watermarks, messages

A round takes the walks of whoever has decided something one step at a time, all of them as far as their next wait for
the disk, which is one for all. Each log directory has rounds of its own, and a thread that keeps its votes: a disk that
hangs holds up those whose logs lie on it, and nobody else.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import trio

from ..classes import frozen
from ..errors import StorageError
from ..machine.threads import Workers
from ..machine.turnstile import take_turn
from ..partitions.election_driver import walk
from ..records.control import build_control_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..contracts.disk_work import DiskWork
    from ..contracts.election import IsrChange, PeerMessage, Role
    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..records.control import KRaftControlRecord
    from ..types import TopicIdPartition
    from .vote_log import VoteKey, VoteLogs

WALKS_PER_TURN: Final = 20
"""So many steps of walks before others come: some of them make a leader, which writes a record, or a follower."""
REPLICAS_PER_TURN: Final = 500
"""So many replicas are looked at in which nothing may have to be done."""


@frozen
class RoundParts:
    """What rounds work with.

    Attributes:
        replicas: Those of this broker.
        writes: Their way to the disk.
        votes: What is never forgotten.
        threads: Keep it.
        clock: Both clocks.
    """

    replicas: Replicas
    writes: StagedWrites
    votes: VoteLogs
    threads: Threads
    clock: Clock


class Elections(Protocol):
    """Whose rounds these are: told what they do."""

    def note(self, replica: Replica) -> None:
        """A replica's election has decided more. Does not raise."""
        ...

    def end_what_is_over(self, replica: Replica) -> None:
        """A replica has taken a role: what its election is no more by now it is not to do. Does not raise."""
        ...

    def changed(self, replica: Replica) -> None:
        """A replica's role, leader or epoch is another one, and all that it rests on is durable."""
        ...

    def deliver(self, replica: Replica, messages: Sequence[PeerMessage]) -> None:
        """An election has something to tell others. Does not raise."""
        ...

    def tell_controller(self, replica: Replica, change: IsrChange) -> None:
        """A leader has something to tell the controller of its voters. Does not raise."""
        ...

    def fail(self, replica: Replica, error: Exception) -> None:
        """A replica's disk, or its election, has failed. Does not raise."""
        ...

    def left(self, replica: Replica) -> None:
        """A replica is not served any more, and its election is not carried out. Does not raise."""
        ...


class Rounds:
    """Life: made, `note` by any task of the run, `run` as a task. Owned by `VotingReplicas`.

    Attributes:
        later: What is kept with the next votes: states for which nobody waits, None forgets one.
    """

    def __init__(self, log_dir: str, parts: RoundParts, elections: Elections) -> None:
        """Make them with nothing to do.

        Args:
            log_dir: Where the replicas' logs lie, and their votes.
            parts: What they work with.
            elections: Whose they are.
        """
        self._log_dir, self._parts, self._elections = log_dir, parts, elections
        self._worker = Workers(parts.threads, 1)  # nobody else's, for elections wait for it
        self._dirty: dict[Replica, None] = {}
        self._states: dict[Replica, bytes] = {}
        self.later: dict[VoteKey, bytes | None] = {}
        self._changed: set[Replica] = set()
        self._progressed: set[Replica] = set()
        self._woken = trio.Event()

    def __repr__(self) -> str:
        return f"<Rounds of {self._log_dir}: {len(self._dirty)} noted>"

    def note(self, replica: Replica) -> None:
        """Have carried out soon what a replica's election has decided."""
        self._dirty[replica] = None
        self._woken.set()

    def is_noted(self, replica: Replica) -> bool:
        """Return whether a replica's election is looked at in the next round anyway."""
        return replica in self._dirty

    def keep_later(self, key: VoteKey, state: bytes | None) -> None:
        """Have a state kept for which nobody waits; None forgets one."""
        self.later[key] = state
        self._woken.set()

    async def run(self) -> None:
        """Carry out until cancelled; what is being kept then is kept."""
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            await self._round()

    async def _round(self) -> None:
        """Carry out what is decided, and what follows from that at once; the rest in the next round."""
        walks = await self._begun()
        while walks:
            await self._step(walks)
            if self._states:
                await self._keep(walks)
        if self.later:
            await self._keep(walks)

    async def _begun(self) -> dict[Replica, Iterator[DiskWork]]:
        """Return walks for whoever has decided something; one whose log is not there is noted again when it is."""
        dirty, self._dirty = self._dirty, {}
        walks: dict[Replica, Iterator[DiskWork]] = {}
        for number, replica in enumerate(dirty, 1):
            if number % REPLICAS_PER_TURN == 0:
                await take_turn()
            if self._parts.replicas.is_served(replica):
                ready = replica.election.ready()
                if ready is not None:
                    step = _Step(self, replica)
                    send = partial(self._elections.deliver, replica)
                    ask = partial(self._elections.tell_controller, replica)
                    walks[replica] = walk(ready, replica.election, step, ask, keeper=step, send=send)
            elif not replica.is_paused:
                self._elections.left(replica)
        return walks

    async def _step(self, walks: dict[Replica, Iterator[DiskWork]]) -> None:
        """Bring walks to where they wait for the disk next, or to their end."""
        for number, (replica, steps) in enumerate(list(walks.items()), 1):
            if number % WALKS_PER_TURN == 0:
                await take_turn()
            if not replica.is_paused and not self._parts.replicas.is_served(replica):
                del walks[replica]  # another one may have been opened in its place, which knows nothing of this
                self._elections.left(replica)
                continue
            try:
                is_over = next(steps, None) is None
                self._tell(replica)
            except Exception as error:  # a disk's, or a plugin's: its partition pays, nobody else
                self._elections.fail(replica, error)
                is_over = True
            if is_over:
                del walks[replica]
                if replica.offline_reason is None and replica.election.ready() is not None:
                    self._elections.note(replica)

    def _tell(self, replica: Replica) -> None:
        """Tell what the step of a walk has changed."""
        has_changed, has_progressed = replica in self._changed, replica in self._progressed
        self._changed.discard(replica)
        self._progressed.discard(replica)
        if has_changed or has_progressed:
            self._parts.replicas.changed.note((replica,))
            self._parts.replicas.progressed((replica,))
        if has_changed:
            self._elections.changed(replica)

    async def _keep(self, walks: dict[Replica, Iterator[DiskWork]]) -> None:
        """Make durable what walks wait for, of all of them at once; if it fails they end."""
        states, self._states = self._states, {}
        later, self.later = self.later, {}
        kept = {**later, **{key_of(replica.partition): state for replica, state in states.items()}}
        try:
            await self._worker.do(self._parts.votes.of(self._log_dir).begin_keep(kept))
        except StorageError as error:
            self.later = {**later, **self.later}  # with the next that is kept
            for replica in states:
                walks.pop(replica, None)
                self._elections.fail(replica, error)

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
        self._elections.end_what_is_over(replica)
        self._changed.add(replica)

    def raise_high_watermark(self, replica: Replica, offset: int) -> None:
        """Have a replica show what is committed."""
        before = replica.high_watermark
        replica.raise_high_watermark(offset)
        if replica.high_watermark != before:
            self._progressed.add(replica)


def key_of(partition: TopicIdPartition) -> VoteKey:
    """Return under which key a partition's votes are kept."""
    return partition.topic_id, partition.partition


@frozen
class _Step:
    """What one replica's walk is given: `ElectedReplica` and `Keeper`."""

    rounds: Rounds
    replica: Replica

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        """See `ElectedReplica.take_role`."""
        self.rounds.take_role(self.replica, role, leader_id, leader_epoch)

    def raise_high_watermark(self, offset: int) -> None:
        """See `ElectedReplica.raise_high_watermark`."""
        self.rounds.raise_high_watermark(self.replica, offset)

    @property
    def flushed_offset(self) -> int:
        """See `Keeper.flushed_offset`: up to where the log is as its topic's settings want it."""
        return self.replica.appended_offset

    def begin_keep(self, hard_state: bytes) -> DiskWork:
        """See `Keeper.begin_keep`; the round does it."""
        self.rounds.keep(self.replica, hard_state)
        return _DONE

    def begin_append(self, records: Sequence[KRaftControlRecord], leader_epoch: int) -> DiskWork:
        """See `Keeper.begin_append`; a flush that the topic wants is asked for, and counts when it is done."""
        self.rounds.append(self.replica, records, leader_epoch)
        return _DONE


class _Done:
    """Work that somebody else does."""

    def run(self) -> None:
        """See `DiskWork.run`."""

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""


_DONE: Final = _Done()
