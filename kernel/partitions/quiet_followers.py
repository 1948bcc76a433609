"""Pure core: followers that ask again for what they have: their leader's election is told of that when it counts.

    a fetch within a session that repeats what it said ──> one stamp for all partitions of the session
    time passes, or the log is about to grow ──────────> `tell_heard`: the elections concerned hear of the last of them

A follower of a partition in which nothing happens fetches twice a second, and each time says the same of it: that it
has all there is. Of its fetch the election learns nothing but the time; so that costs one number for a thousand
partitions, and is told before anything that looks at it: a tick, an end of the log that moves, a newer fetch.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ..classes import frozen

if TYPE_CHECKING:
    from .replica import Replica


class FollowerFetch(NamedTuple):
    """What a fetch tells of its follower: what `Election.follower_fetch` takes, in this order."""

    broker_id: int
    broker_epoch: int
    fetch_offset: int
    log_start_offset: int
    now_ms: int


class Stamp:
    """When a session was heard last. Owned by the session.

    Attributes:
        heard_ms: By the monotonic clock.
        ended_count: For how many partitions it counts no more.
    """

    __slots__ = ("ended_count", "heard_ms")

    def __init__(self, heard_ms: int) -> None:
        """Make one that was heard then."""
        self.heard_ms = heard_ms
        self.ended_count = 0


class QuietFollower:
    """A follower that has all of a log, as its last fetch that said something new has told the election.

    Life: made by `begin_quiet` when the election was told; `end` when a fetch of the session says something else of the
    partition, or nothing any more. It is the newest that is known of the follower until another one takes its place, or
    the replica leads no more in this epoch.

    Attributes:
        replica: That leads.
        told: The last fetch that the election was told of.
        stamp: When it was heard last: the session's own, as long as its fetches repeat this one.
    """

    __slots__ = ("_leader_epoch", "_state", "replica", "stamp", "told")

    def __init__(self, replica: Replica, told: FollowerFetch, stamp: Stamp) -> None:
        """Take what the election was told."""
        self.replica = replica
        self._state = replica.state
        self._leader_epoch = replica.leader_epoch
        self.told = told
        self.stamp = stamp

    @property
    def heard_ms(self) -> int:
        """When it was heard last."""
        return max(self.told.now_ms, self.stamp.heard_ms)

    def is_repeated(self, stamp: Stamp, broker_epoch: int) -> bool:
        """Return whether a fetch of a session that says nothing new of the partition would tell the election nothing.

        Hot: it is asked for every partition of a follower's session.
        """
        replica = self.replica
        return (
            self.stamp is stamp
            and replica.is_leader
            and replica.log.log_end_offset == self.told.fetch_offset
            and replica.state is self._state
            and replica.leader_epoch == self._leader_epoch
            and broker_epoch == self.told.broker_epoch
        )

    def end(self) -> None:
        """Be heard no more; what was heard stays to be told."""
        self.stamp.ended_count += 1
        self.stamp = Stamp(self.stamp.heard_ms)

    def tell(self) -> None:
        """Tell the election of the last fetch that was heard, if it was not told of it."""
        heard_ms = self.stamp.heard_ms
        if heard_ms > self.told.now_ms:
            self.told = self.told._replace(now_ms=heard_ms)
            replica = self.replica
            replica.raise_high_watermark(replica.election.follower_fetch(*self.told))


def begin_quiet(replica: Replica, told: FollowerFetch, stamp: Stamp) -> QuietFollower | None:
    """Take note of a fetch of a session that the election was just told of; None where the next is told, too.

    That is so where the follower lacks something, and where it is out of sync: then its fetches ask for it to be taken
    in, until it is.
    """
    state = replica.state
    if told.fetch_offset != replica.log.log_end_offset or state is None or told.broker_id not in state.isr:
        return None
    quiet = QuietFollower(replica, told, stamp)
    if replica.quiet is None:
        replica.quiet = {}
    replica.quiet[told.broker_id] = quiet
    return quiet


_HEARD_MS = attrgetter("stamp.heard_ms")


def tell_heard(replica: Replica) -> None:
    """Tell the election of a replica that leads of fetches that were heard and not told, in their order.

    May raise what the election raises; what it wants done stands in its `ready`.
    """
    quiet = replica.quiet
    if quiet:
        for each in sorted(quiet.values(), key=_HEARD_MS):
            each.tell()


@frozen
class FollowersHeard:
    """Sessions by which all followers of a leader are heard, of one partition or of many.

    Attributes:
        stamps: When each was heard.
        ended_count: Of them all, when this was made.
    """

    stamps: tuple[Stamp, ...]
    ended_count: int

    def heard_ms(self) -> int | None:
        """Return when the one was heard that was heard longest ago; None once one counts no more for some partition."""
        if sum([stamp.ended_count for stamp in self.stamps]) != self.ended_count:
            return None
        return min([stamp.heard_ms for stamp in self.stamps])


def followers_heard(replica: Replica) -> tuple[int, FollowersHeard] | None:
    """Return when the follower was heard that was heard longest ago, and by which sessions all are.

    None where one is not quiet, or there is none.
    """
    quiet, state = replica.quiet, replica.state
    if not quiet or state is None:
        return None
    try:
        found = [quiet[each] for each in state.replicas if each != replica.leader_id]
    except KeyError:
        return None
    if not found:
        return None
    stamps = tuple([each.stamp for each in found])
    return min([each.heard_ms for each in found]), FollowersHeard(stamps, sum([each.ended_count for each in stamps]))
