"""Pure core: how who runs elections hears that leaders have answered those who follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..partitions.replica import Replica
    from ..wire.messages.api_01_fetch import PartitionData


class HeardLeader(Protocol):
    """Who asks a leader, and is answered."""

    @property
    def leader_id(self) -> int:
        """Whom it asks."""
        ...

    def voters_heard(self) -> list[Replica]:
        """Return for whom its leader still leads, by its last answer: replicas that vote."""
        ...

    def hears(self, replica: Replica) -> bool:
        """Return whether a replica is among these."""
        ...


class LeadersHeard(Protocol):
    """Who is told how leaders answer for replicas that vote."""

    def heard(self, leader: HeardLeader, named: Iterable[Replica], slow: Iterable[Replica]) -> None:
        """A leader has answered a fetch, and what it answered was taken. Does not raise.

        Args:
            leader: Says for whom.
            named: Those of them that vote and of which it had something to say.
            slow: Those that vote and are asked for now and then: its next answers may not be for them.
        """
        ...

    def unheard(self, replica: Replica) -> None:
        """Of a replica that votes nothing is heard from now on: it is not asked for any more, or was left out.

        Does not raise.
        """
        ...

    def refused(self, leader_id: int, replica: Replica, answer: PartitionData) -> None:
        """A leader has refused a fetch. Does not raise."""
        ...
