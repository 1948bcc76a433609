"""The replicas of broker 1 over any storages, as the partitions' room makes them: with the ISR election, no stages."""

import random
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import attrs

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import IsrChange, KnownBroker
from odradek.kernel.contracts.storage import StorageEngine
from odradek.kernel.contracts.tiering import Tier
from odradek.kernel.machine.clock import Clock
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.partitions.delays import Delays, Retries
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.partitions.replica_lifecycle import ReplicaLifecycle
from odradek.kernel.partitions.replica_opener import ReplicaOpener
from odradek.kernel.partitions.replicas import Replicas
from odradek.kernel.partitions.staged_writes import StagedWrites
from odradek.kernel.partitions.tiers import Tiers
from odradek.kernel.types import ZERO_ID, TopicIdPartition
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_quorum.factory import QuorumElectionFactory


@attrs.frozen
class Registered:
    """A broker, as the metadata knows it."""

    broker_epoch: int = 10
    is_fenced: bool = False
    is_live: bool = True


KNOWN_BROKERS = {broker_id: Registered() for broker_id in (1, 2, 3)}


class LocalReplicas(NamedTuple):
    """The table, the life of what is in it, and the way to the disk."""

    replicas: Replicas
    lifecycle: ReplicaLifecycle
    writes: StagedWrites


def nothing(*_told: object) -> None:
    """Listen to nothing."""


def make_replicas(
    clock: Clock,
    engines: Mapping[str, StorageEngine],
    *,
    on_progress: Callable[[Collection[Replica]], None] = nothing,
    on_staged: Callable[[], None] = nothing,
    on_flush_wanted: Callable[[], None] = nothing,
    on_leader_changed: Callable[[TopicIdPartition, int, int], None] = nothing,
    config: Callable[[], BrokerConfig] = lambda: BrokerConfig(Registry.of()),
    producer_id_expiration_ms: int = 86_400_000,
    tier: Tier | None = None,
    broker_id: int = 1,
    broker: Callable[[int], KnownBroker | None] = KNOWN_BROKERS.get,
    ask_isr: Callable[[Replica, IsrChange], None] = nothing,
    delays: Delays | None = None,
    known_directory: Callable[[uuid.UUID, int], uuid.UUID] = lambda _topic_id, _index: ZERO_ID,
) -> LocalReplicas:
    """Make them; `lifecycle.start` and `lifecycle.open_topic` are to follow."""
    replicas = Replicas(engines, on_progress=on_progress)
    opener = ReplicaOpener(
        broker_id=broker_id,
        engines=engines,
        elections={"isr": IsrElectionFactory(), "quorum": QuorumElectionFactory()},
        config=config,
        stages={},
        tiers=Tiers(tier),
        clock=clock,
        random=random.Random(broker_id),
        producer_id_expiration_ms=producer_id_expiration_ms,
        known_directory=known_directory,
        broker=broker,
        workers=Workers(SystemThreads(), 1),
        ask_isr=ask_isr,
        delays=delays or Delays({}, clock.now_ms),
        retries=Retries({}, clock.now_ms, random.Random(broker_id), {}),
    )
    return LocalReplicas(
        replicas,
        ReplicaLifecycle(replicas, opener, on_leader_changed=on_leader_changed),
        StagedWrites(replicas, on_staged=on_staged, on_flush_wanted=on_flush_wanted),
    )
