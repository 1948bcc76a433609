"""Shell: what the elections of a broker work with whose replicas vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contracts.election import IsrChange, KnownBroker
    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..types import TopicPartition
    from .fetcher import BrokerRequests
    from .vote_log import VoteLogs


@frozen
class VotingParts:
    """What elections of a broker work with.

    Attributes:
        replicas: Those of this broker.
        writes: Their way to the disk.
        votes: What is never forgotten.
        threads: Keep it.
        brokers: The way to other brokers.
        broker_id: This broker.
        broker: Returns a broker as the metadata knows it now.
        clock: Both clocks.
        cluster_id: Returns the cluster's id.
        timeout_ms: Returns how long another broker's answer may take.
        fetch_timeout_ms: Returns how long a voter waits for its leader.
        role_changed: Told of a replica whose role, leader or epoch has changed, when it has.
        forget: Has a partition fetched from nobody until its role changes. Does not raise.
        tell_controller: Tells the controller that a replica leads, or by whom it was elected. Does not raise.
    """

    replicas: Replicas
    writes: StagedWrites
    votes: VoteLogs
    threads: Threads
    brokers: BrokerRequests
    broker_id: int
    broker: Callable[[int], KnownBroker | None]
    clock: Clock
    cluster_id: Callable[[], str]
    timeout_ms: Callable[[], int]
    fetch_timeout_ms: Callable[[], int]
    role_changed: Callable[[Replica], None]
    forget: Callable[[TopicPartition], None]
    tell_controller: Callable[[Replica, IsrChange], None]
