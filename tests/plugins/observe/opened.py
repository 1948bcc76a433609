"""Replicas of memory, and what a plugin sees of the broker that has them."""

from __future__ import annotations

import random
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import attrs

from odradek.kernel.broker.figures import Figures
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.storage_context import StorageContext
from odradek.kernel.dispatch.fetch_session import FetchSessionCache
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.metadata.cluster_view import ImageView
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.network.statistics import NetworkStatistics
from odradek.kernel.partitions.replica import TopicSettings
from odradek.kernel.partitions.replica_lifecycle import ReplicaLifecycle
from odradek.kernel.partitions.replicas import Replicas
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel
from odradek.kernel.records.validation import ValidationRules
from odradek.plugins.storage_memory.engine import MemoryEngine
from tests.partitions.local_replicas import LocalReplicas, make_replicas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.kernel.api import BrokerHandle, Metric
    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.dispatch.routes import Route
    from odradek.kernel.network.server import NetworkServer

QUIET = NetworkStatistics(
    bytes_in=10,
    bytes_out=20,
    requests_count=3,
    turns_count=2,
    connections_count=1,
    connections_created_count=4,
    connections_closed_count=3,
    connections_refused_count=0,
    connections_idle_closed_count=0,
    connections_by_listener={"PLAINTEXT": 1},
    malformed_count=0,
    failures_count=0,
    accept_failures_count=0,
    block_bytes=0,
    served_s=10.0,
    busy_s=1.0,
)


@attrs.define
class Config:
    """Settings by name."""

    values: Mapping[str, str] = attrs.field(factory=dict)

    def get_text(self, name: str) -> str:
        return self.values.get(name, "")


def watched(
    replicas: Replicas | None = None,
    *,
    image: MetadataImage | None = None,
    routes: Mapping[int, Route] | None = None,
    purgatory: Purgatory | None = None,
    sessions: FetchSessionCache | None = None,
    network: Callable[[], NetworkStatistics | None] = lambda: QUIET,
    is_serving: bool = True,
    metrics: Sequence[Metric] = (),
    settings: Mapping[str, str] | None = None,
) -> BrokerHandle:
    """Return a broker 1 of these parts; its figures are the kernel's own."""
    clock = ManualClock()
    waiting = SimpleNamespace(
        produce=Purgatory("Produce", TimingWheel(now_ms=0), on_error=lambda *_: None),
        fetch=purgatory or Purgatory("Fetch", TimingWheel(now_ms=0), on_error=lambda *_: None),
    )
    parts = SimpleNamespace(
        logs=SimpleNamespace(replicas=replicas or make_replicas(clock, {}).replicas),
        requests=SimpleNamespace(
            router=SimpleNamespace(routes=routes or {}),
            waiting=waiting,
            sessions=sessions or FetchSessionCache(slots=1, random_source=random.Random(0)),
        ),
        machine=SimpleNamespace(clock=clock),
        published=SimpleNamespace(config=SimpleNamespace(get_int=lambda _key: 900_000)),
    )
    figures = Figures(
        cast("BrokerParts", parts), cast("NetworkServer", SimpleNamespace(statistics=network)), lambda: is_serving
    )
    figures.offered = metrics
    config = Config(settings or {})
    cluster = ImageView(lambda: image or MetadataImage())
    return cast(
        "BrokerHandle",
        SimpleNamespace(node_id=1, figures=figures, config=config, cluster=cluster, machine=real_machine()),
    )


def memory_replicas(*topics: str) -> LocalReplicas:
    """Return the replicas of broker 1, which leads both partitions of each of these topics."""
    clock = ManualClock()
    context = StorageContext(
        log_dirs=(),
        node_id=1,
        cluster_id="",
        settings={},
        now_ms=clock.now_ms,
        monotonic_ms=clock.monotonic_ms,
        random=random.Random(0),
        new_id=RandomIds(random.Random(0)).new_id,
        files=OsFiles(),
        threads=SystemThreads(),
    )
    local = make_replicas(clock, {"memory": MemoryEngine(context)})
    for topic in topics:
        open_topic(local.lifecycle, topic)
    return local


def open_topic(lifecycle: ReplicaLifecycle, topic: str) -> None:
    """Open a topic of two partitions; its id follows from its name."""
    plan = TopicPlan(
        storage="memory",
        election="isr",
        stages=(),
        log_config=LogConfig(),
        settings=TopicSettings(rules=ValidationRules(), min_insync_replicas=1),
        values={},
    )
    state = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
    lifecycle.open_topic(topic, uuid.uuid5(uuid.NAMESPACE_DNS, topic), plan, {0: state, 1: state})
