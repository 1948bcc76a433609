"""Pure core: carries out what an election has decided, for every replica that has one.

    metadata, appends, fetches ──> election ──> `ready` ──> here ──> its replica
                                      ^                       │
                                      └────── `advance` ──────┘

An election only says what is to be done; who holds the replica does it. Partitions and the metadata log alike have it
done here, in the order of `Ready`'s fields. What nobody does for a replica is refused: there is no way to send anything
yet, for partitions none to keep or to append for an election, and for the metadata log none to ask. A replica that is
offline is better than a vote that is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..errors import PluginError
from ..plugin_system.offers import plugin_of_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.election import Election, IsrChange, Ready, Role
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

    def keep(self, hard_state: bytes) -> None:
        """Make hard state durable: it is when this returns."""
        ...

    def append(self, records: Sequence[KRaftControlRecord], leader_epoch: int) -> int:
        """Append records as one batch, make it durable, and return where the log ends."""
        ...


def carry_out(
    election: Election,
    replica: ElectedReplica,
    ask: Callable[[IsrChange], object] | None = None,
    *,
    keeper: Keeper | None = None,
) -> None:
    """Have a replica do what its election has decided, until nothing is left.

    Args:
        election: Which has decided.
        replica: Which does it.
        ask: Brings a change of the in-sync set before the controller; None where there is none to ask.
        keeper: Keeps and appends; None where nothing does.

    Raises:
        PluginError: The election wants what cannot be done, or its effects never end.
    """
    for _ in range(EFFECTS_MAX):
        ready = election.ready()
        if ready is None:
            return
        if _wants_too_much(ready, ask, keeper):
            raise _failed(election, "needs a cluster: hard state, messages or a change of the in-sync set")
        if ready.hard_state is not None and keeper is not None:
            keeper.keep(ready.hard_state)
        if ready.role is not None:
            replica.take_role(ready.role, ready.leader_id, ready.leader_epoch)
        if ready.append and keeper is not None:
            replica.raise_high_watermark(election.local_append(keeper.append(ready.append, ready.leader_epoch)))
        if ready.high_watermark is not None:
            replica.raise_high_watermark(ready.high_watermark)
        if ready.isr_change is not None and ask is not None:
            ask(ready.isr_change)
        election.advance(ready)
    raise _failed(election, "has effects that never end")


def _wants_too_much(ready: Ready, ask: object, keeper: object) -> bool:
    """Return whether something is to be done that nobody does here."""
    wants_to_keep = ready.hard_state is not None or bool(ready.append)
    return bool(ready.messages) or (wants_to_keep and keeper is None) or (ready.isr_change is not None and ask is None)


def _failed(election: Election, reason: str) -> PluginError:
    return PluginError(plugin_of_object(election), f"the election {type(election).__name__} {reason}")
