"""Pure core: the election contract, the machine that decides who leads a partition and what is committed.

An election is a *stepper*: inputs in by `step`, `tick` and the two hot calls, effects out by `ready`; no clock, no
socket, no disk. One object serves one replica; it is owned by the replica, on the reactor's task.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from ..classes import frozen
from ..errors import ErrorCode
from ..types import ZERO_ID

if TYPE_CHECKING:
    import random
    import uuid
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..records.control import KRaftControlRecord, KRaftVoters
    from ..types import TopicIdPartition
    from ..wire.message import Message
    from .log_values import EpochEnd
    from .services import ConfigView


NO_BROKER_EPOCH: Final = -1
"""The epoch of a broker that did not say it."""


class Role(Enum):
    """What a replica is for its partition."""

    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"
    OFFLINE = "offline"


class ElectionReason(Enum):
    """Why the controller asks for a leader."""

    OFFLINE = "offline"
    PREFERRED = "preferred"
    REASSIGNMENT = "reassignment"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    UNCLEAN = "unclean"


@frozen
class PartitionState:
    """A partition as the committed metadata describes it.

    Attributes:
        leader: Broker id, -1 for none.
        leader_epoch: Grows with every change of leader, >= 0.
        partition_epoch: Grows with every change at all.
        replicas: Assigned brokers, the preferred leader first.
        isr: In-sync replicas, a subset.
        adding_replicas: Being added by a reassignment.
        removing_replicas: Being removed by a reassignment.
        eligible_leader_replicas: Out of sync, yet with all that is committed (KIP-966).
        last_known_elr: The last leader, when nobody is in sync or eligible.
        voters: Who votes, where replicas do and not all of them have a vote, not yet or not any more; empty: all.
        former_voters: Who voted before, as long as nobody was told to lead by votes of `voters`; empty: it was told.
        voters_epoch: The partition epoch with which `voters` began, 0 for those that the partition was made with.
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    voters: tuple[int, ...] = ()
    former_voters: tuple[int, ...] = ()
    voters_epoch: int = 0


@frozen
class MetadataChanged:
    """Input: the committed metadata now says this of the partition."""

    state: PartitionState
    min_insync_replicas: int


@frozen
class PeerMessage:
    """Input or effect: a message of the election's own protocol from or to another replica.

    Addresses and the cluster's id are the shell's: it checks them in what comes, and writes them into what goes.

    Attributes:
        broker_id: The other replica's broker; -1 for a client.
        message: As Kafka's quorums send it: Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum, AddRaftVoter,
            RemoveRaftVoter, UpdateRaftVoter, requests and responses.
        correlation_id: Of a request that came, as the shell counts them; its response has the same.
    """

    broker_id: int
    message: Message
    correlation_id: int = 0


@frozen
class FetchEnded:
    """Input: another replica has answered a fetch of this one; its records and high watermark have been taken.

    Attributes:
        broker_id: Who was asked.
        error: Of the partition in its answer.
        leader_id: Who leads according to it, -1 when it did not say.
        leader_epoch: The epoch that goes with it, -1 when it did not say.
    """

    broker_id: int
    error: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1


@frozen
class PeerRefused:
    """Input: another replica's machine refuses connections, so its process is gone. A time-out does not say that."""

    broker_id: int


@frozen
class VotersChanged:
    """Input: the newest voters that this log names are these; they count at once, committed or not (KIP-853).

    Told before anything else where the log names some, and again whenever an append or a truncation changed them; then
    the replicas of the metadata are not who votes.

    Attributes:
        record: The voters.
        offset: Of the record in the log; -1 for what the founding of the cluster left beside it.
        former: The voters before; until `record` is committed, one of them may be needed to bring that about.
    """

    record: KRaftVoters
    offset: int
    former: KRaftVoters | None = None


@frozen
class LeadershipGivenUp:
    """Input: this replica is to lead no more, as its broker stops; where the controller chooses, it is no news."""


@frozen
class IsrChange:
    """Effect: ask the controller to change the in-sync set (AlterPartition); `IsrChangeEnded` tells how it ended.

    Attributes:
        isr: The in-sync set that is to be; of a vote whose record is committed: its voters, and who else has caught up.
        leader_epoch: In which it is asked.
        partition_epoch: Of the state that it is to follow on; of a vote: the `voters_epoch` of its voters.
        broker_epochs: Of the brokers in `isr`, in its order; `NO_BROKER_EPOCH` is not known. Empty says that of all.
    """

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    broker_epochs: tuple[int, ...] = ()


@frozen
class IsrChangeEnded:
    """Input: what became of an `IsrChange`. One whose answer was lost is asked again until it has one.

    Attributes:
        change: What was asked.
        error: NONE when it was accepted.
        isr: The in-sync set as it is now, when it was accepted.
        leader_epoch: The epoch that goes with it.
        partition_epoch: The epoch that goes with it.
    """

    change: IsrChange
    error: ErrorCode = ErrorCode.NONE
    isr: tuple[int, ...] = ()
    leader_epoch: int = -1
    partition_epoch: int = -1


ElectionInput: TypeAlias = (
    MetadataChanged | PeerMessage | IsrChangeEnded | FetchEnded | PeerRefused | VotersChanged | LeadershipGivenUp
)


@frozen
class Ready:
    """What the shell must do now, in the order of the fields; None and empty mean nothing.

    Attributes:
        hard_state: To be made durable before anything below is done.
        role: The replica's new role.
        leader_id: The leader that goes with it, -1 when unknown.
        leader_epoch: The epoch that goes with it, and with `append`.
        append: Control records that who still leads in that epoch appends as one batch; `VotersChanged` follows voters.
        high_watermark: The new high watermark; never smaller than before within an epoch.
        messages: To be sent.
        isr_change: To be asked of the controller.
    """

    hard_state: bytes | None = None
    role: Role | None = None
    leader_id: int = -1
    leader_epoch: int = -1
    append: tuple[KRaftControlRecord, ...] = ()
    high_watermark: int | None = None
    messages: tuple[PeerMessage, ...] = ()
    isr_change: IsrChange | None = None


class Election(Protocol):
    """The state machine of one replica. Life: made, `step(MetadataChanged)`, then any input in any order."""

    @property
    def role(self) -> Role:
        """What the replica is now."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The epoch of the current leader, -1 before the first."""
        ...

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        ...

    @property
    def isr(self) -> Collection[int]:
        """Replicas that count for commitment: the in-sync set, or the voters."""
        ...

    def local_append(self, log_end_offset: int) -> int:
        """Take note that this replica's log now ends at `log_end_offset` and return the high watermark. Hot.

        A truncation is told in the same way. It has no effect but what it returns: nobody looks at `ready` after it.
        Where an append counts only when it is durable, as in the metadata log, it is told then.
        """
        ...

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        """Take note that a follower has everything below `fetch_offset` and return the high watermark. Hot.

        Told only of a fetch in this leader's epoch that agrees with its log: not of one that diverges. Nothing is taken
        from an incarnation of the broker that is not its current one, nor for a voter from another directory than its
        own. Other effects, as an in-sync set that is to grow, stand in `ready`.

        Of one in sync that says again that it has all, the last fetch is told, before time passes or the log grows.

        Args:
            broker_id: Who fetches.
            broker_epoch: Of its registration, `NO_BROKER_EPOCH` when it did not say.
            fetch_offset: Where its log ends.
            log_start_offset: Where its log starts, -1 when it did not say.
            now_ms: The monotonic clock.
            directory_id: In which its replica lies, `ZERO_ID` when it did not say.
        """
        ...

    def leader_high_watermark(self, offset: int) -> int:
        """Take note of what the leader says is committed and return the high watermark: of this log no more. Hot."""
        ...

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the offset below which no live replica has records any more, -1 while that of one is not known.

        Args:
            log_start_offset: Of this replica's log.
        """
        ...

    def can_acknowledge(self) -> bool:
        """Whether a record with acks=all may be taken now (`min.insync.replicas`). Hot."""
        ...

    def step(self, event: ElectionInput) -> None:
        """Take an input; what follows from it stands in the next `ready`."""
        ...

    def tick(self, now_ms: int) -> None:
        """Let time pass; `now_ms` is the monotonic clock. Who has `calm_ms` is spared it: `partitions.voting`."""
        ...

    def ready(self) -> Ready | None:
        """Return the effects that have gathered, None when there are none; they stay until `advance`.

        A high watermark that `local_append` or `follower_fetch` returned need not stand here too.
        """
        ...

    def advance(self, ready: Ready) -> None:
        """Take note that all of `ready` is done."""
        ...


class KnownBroker(Protocol):
    """A broker, as the newest committed metadata has it."""

    @property
    def broker_epoch(self) -> int:
        """Of its current incarnation's registration."""
        ...

    @property
    def is_fenced(self) -> bool:
        """Whether it counts as dead."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether it may be in an in-sync set: not fenced, nor about to stop."""
        ...


@frozen
class ElectionContext:
    """What the kernel hands to an election factory, for one replica.

    Attributes:
        partition: Whose.
        broker_id: This broker.
        directory_id: In which its replica lies, `ZERO_ID` where that has no name.
        log_end_offset: Of the local log.
        high_watermark: From the last checkpoint, at most the log end offset.
        log_end: Returns the largest epoch in the local log as it is now, -1 when there is none, and where it ends,
            durable or not: what votes are compared by.
        hard_state: What the last `Ready.hard_state` was, None when there was none.
        may_have_lost: Whether the end of the log may be lost: the machine began anew, and the log was not closed then.
        config: Returns the broker's configuration as it is now: its own keys, as `replica.lag.time.max.ms`.
        settings: The topic keys that plugins registered, by name: what they say for the topic when its log is opened;
            for the metadata log, what the broker says of topics that set nothing.
        random: For randomised time-outs.
        broker: Returns a broker as it is known now, None for one that is not registered.
    """

    partition: TopicIdPartition
    broker_id: int
    directory_id: uuid.UUID
    log_end_offset: int
    high_watermark: int
    log_end: Callable[[], EpochEnd]
    hard_state: bytes | None
    config: Callable[[], ConfigView]
    settings: Mapping[str, object]
    random: random.Random
    broker: Callable[[int], KnownBroker | None]
    may_have_lost: bool = False


class ElectionFactory(Protocol):
    """What `odradek_elections` offers; `changes_voters = True` where the controller may change who votes."""

    def new_election(self, context: ElectionContext) -> Election:
        """Make the state machine of one replica."""
        ...

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        """Return the state with the new leader and in-sync set, None when nobody may lead. Pure; the controller asks.

        For `ElectionReason.PREFERRED`, None says that the preferred replica may not lead; others are not asked for.
        When nobody is in sync, one of `eligible_leader_replicas` may lead; when there is none either, `last_known_elr`.

        `leader_epoch` and `partition_epoch` are raised by the controller. An election whose replicas choose among
        themselves returns None always.
        """
        ...

    def initial_state(self, replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
        """Return the state of a new partition (leader epoch 0); at least one replica is alive.

        An election whose replicas choose among themselves names no leader.
        """
        ...


def is_among_replicas(factory: ElectionFactory) -> bool:
    """Return whether leaders are chosen by replicas among themselves, and not by the controller."""
    return factory.initial_state((1,), (1,)).leader < 0
