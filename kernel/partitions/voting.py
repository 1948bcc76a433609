"""Pure core: what a replica whose election votes needs of its broker; `replication/voting_replicas.py` is who gives it.

Such an election wants things done that take their time, votes above all, which are durable before they are told. So who
holds the replica does not carry out what it decides: it is noted, and a task of the broker does it for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..contracts.election import Election

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..contracts.storage import PartitionLog
    from .replica import Replica


class Votes(NamedTuple):
    """What the former life of a replica's election left.

    Attributes:
        hard_state: What it has had kept last, None where it is the first.
        may_have_lost: Whether the end of the log may have gone with the machine's power.
    """

    hard_state: bytes | None = None
    may_have_lost: bool = False


class CalmElection(Election, Protocol):
    """An election among replicas that says when it may be left alone; any other is told of time all the while."""

    def calm_ms(self) -> int:
        """Return for how long nothing follows from time after whoever it hears was heard last; 0: it may not be left.

        A follower hears its leader (`FetchEnded`), a leader all others that vote (`follower_fetch`). As long as each is
        heard again within this time, and says nothing new, neither that nor time needs to be told. Before any other
        input, and when one was not heard, the last that was is told, with a `tick` at the time of the one before all.
        """
        ...

    @property
    def is_hurried(self) -> bool:
        """Whether it waits for a part of a second, so that time is to be told often: for its turn to stand, say."""
        ...


def is_hurried(election: Election) -> bool:
    """Say whether an election waits for a part of a second; one that does not say so waits for longer."""
    return bool(getattr(election, "is_hurried", False))


class Voting(Protocol):
    """Who carries out what the elections of a broker decide that vote. Owned by the reactor's task."""

    def begin(self, log_dirs: Iterable[str]) -> None:
        """Take note of how the voters in some log directories ended, before a log of one is opened. Blocks at first.

        Raises:
            StorageError: A disk is failing: the log is not to be opened.
        """
        ...

    def votes_of(self, log: PartitionLog, *, is_at_home: bool) -> Votes:
        """Return what a replica's election is to know of its former life. Blocks at first, as an open does.

        Args:
            log: The replica's, as it was opened.
            is_at_home: Whether it lies in the directory in which the metadata has it, so nobody can have replaced that.

        Raises:
            StorageError: It cannot be read, or was forgotten: a vote might be given twice, so the replica is not to be
                opened.
        """
        ...

    def note(self, replica: Replica) -> None:
        """Have carried out soon what a replica's election has decided; what it is no more, the replica is not at once.

        Does not raise.
        """
        ...

    def end(self) -> None:
        """Keep what the next start is to know of voters, just before their logs are closed. Blocks; does not raise."""
        ...
