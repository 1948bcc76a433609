"""Pure core: what a replica whose election votes needs of its broker; `replication/voting_replicas.py` is who gives it.

Such an election wants things done that take their time, votes above all, which are durable before they are told. So who
holds the replica does not carry out what it decides: it is noted, and a task of the broker does it for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..types import TopicIdPartition
    from .replica import Replica


class Voting(Protocol):
    """Who carries out what the elections of a broker decide that vote. Owned by the reactor's task."""

    def state_of(self, partition: TopicIdPartition) -> bytes | None:
        """Return what a replica's election has had kept last, None for nothing. Blocks at first, as an open does.

        Raises:
            StorageError: That cannot be read: a vote might be given twice, so the replica is not to be opened.
        """
        ...

    def note(self, replica: Replica) -> None:
        """Have carried out soon what a replica's election has decided; what it is no more, the replica is not at once.

        Does not raise.
        """
        ...
