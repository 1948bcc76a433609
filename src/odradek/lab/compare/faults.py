"""Pure core: what is done to the brokers of a cluster while it is compared, to whom, when, and what a client has of it.

The paced records of a workload are due at moments that are the same in every run; so are the fault's begin and end:

    records due   |····|····|····|····|····|····|····|····|····|····|
                          ^ it comes (`BEGINS`)      ^ it ends (`ENDS`)

What is killed is started again at the end, what stands still goes on.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

import attrs

from odradek.kernel.errors import ConfigError

BEGINS: Final = 0.15
"""When it comes, as a share of the time in which the paced records are due."""
ENDS: Final = 0.75
"""When what it did is undone."""

STANDS_S: Final = 0.2
"""How long a slow broker stands still at a time."""
WORKS_S: Final = 0.05
"""How long it works before it stands still again."""


class Blow(Enum):
    """What is done to a broker."""

    KILL = "kill -9; started again at the end"
    PAUSE = "SIGSTOP; SIGCONT at the end"
    SLOW = "stopped for 200 of each 250 ms"


class Struck(Enum):
    """Which of the brokers that have a replica of the first partition are struck."""

    LEADER = "leader"
    FOLLOWER = "follower"
    ALL_BUT_ONE = "all but one"


@attrs.frozen
class Fault:
    """Something that happens to brokers.

    Attributes:
        name: As `--faults` has it.
        text: What it is, in a sentence.
        blow: What is done; None for nothing.
        struck: To whom.
        replicas_min: How many replicas there must be.
    """

    name: str
    text: str
    blow: Blow | None = None
    struck: Struck = Struck.LEADER
    replicas_min: int = 1

    def targets(self, leader: int, replicas: Sequence[int]) -> tuple[int, ...]:
        """Return the brokers that are struck, the leader first.

        Args:
            leader: Who leads.
            replicas: All that have a replica, in the order of the metadata: the last one is spared where all but one
                are struck, and the first one that follows is struck where a follower is.
        """
        if self.blow is None:
            return ()
        ordered = [leader, *(each for each in replicas if each != leader)]
        return tuple({Struck.LEADER: ordered[:1], Struck.FOLLOWER: ordered[1:2]}.get(self.struck, ordered[:-1]))


_ALL: Final = (
    Fault("none", "nothing happens: what the others are to be read against"),
    Fault("leader-killed", "the process of the leader is killed (kill -9)", Blow.KILL, replicas_min=2),
    Fault("follower-killed", "the process of a follower is killed (kill -9)", Blow.KILL, Struck.FOLLOWER, 2),
    Fault("leader-paused", "the leader stands still (SIGSTOP); its connections stay", Blow.PAUSE, replicas_min=2),
    Fault(
        "slow-follower",
        "a follower stands still for 200 of each 250 ms",
        Blow.SLOW,
        Struck.FOLLOWER,
        2,
    ),
    Fault(
        "two-of-three",
        "all brokers with a replica but one are killed (kill -9), the leader among them",
        Blow.KILL,
        Struck.ALL_BUT_ONE,
        3,
    ),
)

BY_NAME: Final = {fault.name: fault for fault in _ALL}
"""By name, in the order in which they are listed."""

NO_FAULT: Final = "none"


@attrs.frozen
class Cluster:
    """Of how many brokers, with how many replicas of the topic.

    Attributes:
        brokers: The brokers; a controller of its own is there besides.
        replicas: Of the topic.
    """

    brokers: int = 3
    replicas: int = 3


def read_faults(text: str | None, cluster: Cluster) -> tuple[str, ...]:
    """Return the names that `--faults` has.

    Args:
        text: Names, with commas between them; None for `NO_FAULT`.
        cluster: What they are to happen to.

    Raises:
        ConfigError: One is unknown (with the nearest that is known), given twice, or needs more replicas.
    """
    names = tuple(name.strip() for name in (text or NO_FAULT).split(","))
    for name in names:
        fault = BY_NAME.get(name)
        where = f"--faults {name}"
        if fault is None:
            nearest = difflib.get_close_matches(name, BY_NAME, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(BY_NAME)}"
            raise ConfigError(f"there is no fault {name!r}", where=where, hint=hint)
        if names.count(name) > 1:
            raise ConfigError("it is given twice", where=where)
        if cluster.replicas < fault.replicas_min:
            raise ConfigError(f"it needs {fault.replicas_min} replicas", where=where, hint="--replicas")
    return names


@attrs.frozen
class Wait:
    """What the sender of one record had of it, all by one clock.

    Attributes:
        partition: Where it was to go.
        due_s: From when on it waited.
        ended_s: When it was acknowledged, or given up.
        is_acknowledged: Which of the two.
    """

    partition: int
    due_s: float
    ended_s: float
    is_acknowledged: bool = True


def longest_silence_s(waits: Iterable[Wait], since_s: float) -> float:
    """Return the longest time, from a moment on, in which records of one partition waited and none was acknowledged.

    Each partition is looked at by itself: others, whose leaders lead on, say nothing of one that is dead. Where no
    record of a partition was due, nothing is known of it.

    Args:
        waits: Of each record, in any order.
        since_s: The moment: when the fault came.
    """
    by_partition: dict[int, list[Wait]] = {}
    for wait in waits:
        if wait.ended_s > since_s:
            by_partition.setdefault(wait.partition, []).append(wait)
    return max((_silence_of_one_s(each, since_s) for each in by_partition.values()), default=0.0)


def _silence_of_one_s(waits: list[Wait], since_s: float) -> float:
    waits.sort(key=lambda wait: wait.ended_s)
    # From when on somebody waited of those that were not served yet when a record was: the end of each silence.
    waited_s = list(itertools.accumulate((wait.due_s for wait in reversed(waits)), min))[::-1]
    longest_s, began, served_s = 0.0, 0, since_s
    for number, wait in enumerate(waits):
        if wait.is_acknowledged or wait is waits[-1]:
            longest_s = max(longest_s, wait.ended_s - max(served_s, waited_s[began]))
            began, served_s = number + 1, wait.ended_s
    return longest_s
