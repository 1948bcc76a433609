"""Pure core: carries out what an election has decided, for every replica that has one.

    metadata, appends, fetches, peers ──> election ──> `ready` ──> `walk` ──> its replica, its disk, its peers
                                             ^                       │
                                             └────── `advance` ──────┘

An election only says what is to be done; who holds the replica does it. This is the one walk over `Ready`, in the order
of its fields: what was promised is durable before a role follows from it, and what a leader begins its epoch with
before anybody hears of it. The walk stops where a disk is to be waited for: whoever walks at once waits there
(`carry_out`), a task has a worker thread do the work, and inputs come meanwhile (`replication/election_service.py`).

What nobody does for a replica is refused: partitions have nothing that keeps, appends or sends for an election yet,
and the metadata log has nobody to ask for an in-sync set. A replica that is offline is better than a vote that is
forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..contracts.disk_work import do_now
from ..contracts.election import Role
from ..errors import PluginError
from ..plugin_system.offers import plugin_of_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..contracts.disk_work import DiskWork
    from ..contracts.election import Election, IsrChange, PeerMessage, Ready
    from ..records.control import KRaftControlRecord

EFFECTS_MAX: Final = 100
"""So often one input may give effects: far more than any election has roles to go through."""


class ElectedReplica(Protocol):
    """What becomes of a replica by its election."""

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        """Be what the election says, under this leader (-1 when unknown) in this epoch."""
        ...

    def raise_high_watermark(self, offset: int) -> None:
        """Take note that everything below `offset` is committed."""
        ...


class Keeper(Protocol):
    """What an election among voters wants of a disk."""

    @property
    def flushed_offset(self) -> int:
        """Up to where the log is durable."""
        ...

    def begin_keep(self, hard_state: bytes) -> DiskWork:
        """Begin to make hard state durable: it is when the work is finished."""
        ...

    def begin_append(self, records: Sequence[KRaftControlRecord], leader_epoch: int) -> DiskWork:
        """Append records as one batch, and begin to make it durable."""
        ...


def carry_out(
    election: Election,
    replica: ElectedReplica,
    ask: Callable[[IsrChange], object] | None = None,
    *,
    keeper: Keeper | None = None,
) -> None:
    """Have a replica do what its election has decided, until nothing is left. Blocks where something is to be kept.

    Args:
        election: Which has decided.
        replica: Which does it.
        ask: Brings a change of the in-sync set before the controller; None where there is none to ask.
        keeper: Keeps and appends; None where nothing does.

    Raises:
        PluginError: The election wants what cannot be done, or its effects never end.
        StorageError: A disk refused what is to be kept.
    """
    for _ in range(EFFECTS_MAX):
        ready = election.ready()
        if ready is None:
            return
        for work in walk(ready, election, replica, ask, keeper=keeper):
            do_now(work)
    raise endless(election)


def walk(
    ready: Ready,
    election: Election,
    replica: ElectedReplica,
    ask: Callable[[IsrChange], object] | None = None,
    *,
    keeper: Keeper | None = None,
    send: Callable[[Sequence[PeerMessage]], object] | None = None,
) -> Iterator[DiskWork]:
    """Do what stands in one `Ready`; what is yielded is to be run and finished before the next step.

    Between two steps the election may take inputs: what follows from them stands in the next `Ready`. Who begins a walk
    brings it to its end before the next, or gives up the replica.

    Args:
        ready: What the election has decided.
        election: Which has.
        replica: Which does it.
        ask: Brings a change of the in-sync set before the controller; None where there is none to ask.
        keeper: Keeps and appends; None where nothing does.
        send: Sends messages, and does not wait for that; None where nothing does.

    Raises:
        PluginError: Something is to be done that nobody does here; nothing of it was done.
        StorageError: A disk refused.
    """
    if _wants_too_much(ready, ask, keeper, send):
        raise _failed(election, "needs a cluster: hard state, messages or a change of the in-sync set")
    if ready.hard_state is not None and keeper is not None:
        yield keeper.begin_keep(ready.hard_state)
    if ready.role is not None:
        replica.take_role(ready.role, ready.leader_id, ready.leader_epoch)
    if ready.append and keeper is not None and leads_in(election, ready.leader_epoch):
        yield keeper.begin_append(ready.append, ready.leader_epoch)
        replica.raise_high_watermark(election.local_append(keeper.flushed_offset))
    if ready.high_watermark is not None:
        replica.raise_high_watermark(ready.high_watermark)
    if ready.messages and send is not None:
        send(ready.messages)
    if ready.isr_change is not None and ask is not None:
        ask(ready.isr_change)
    election.advance(ready)


def leads_in(election: Election, leader_epoch: int) -> bool:
    """Return whether a replica leads in an epoch, by what its election knows at this moment."""
    return election.role is Role.LEADER and election.leader_epoch == leader_epoch


def endless(election: Election) -> PluginError:
    """Return the error that an election's effects never end."""
    return _failed(election, "has effects that never end")


def _wants_too_much(ready: Ready, ask: object, keeper: object, send: object) -> bool:
    """Return whether something is to be done that nobody does here."""
    wants_to_keep = ready.hard_state is not None or bool(ready.append)
    return (
        (bool(ready.messages) and send is None)
        or (wants_to_keep and keeper is None)
        or (ready.isr_change is not None and ask is None)
    )


def _failed(election: Election, reason: str) -> PluginError:
    return PluginError(plugin_of_object(election), f"the election {type(election).__name__} {reason}")
