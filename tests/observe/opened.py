"""Replicas of memory, for what reads their counters and their logs."""

from __future__ import annotations

import random
import uuid

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig, StorageContext
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.partitions.replica import TopicSettings
from odradek.kernel.partitions.replica_manager import ReplicaManager
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.records.validation import ValidationRules
from odradek.plugins.storage_memory.engine import MemoryEngine
from tests.dispatch.hosted import make_manager


def memory_replicas(*topics: str) -> ReplicaManager:
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
    )
    replicas = make_manager(clock, {"memory": MemoryEngine(context)})
    for topic in topics:
        open_topic(replicas, topic)
    return replicas


def open_topic(replicas: ReplicaManager, topic: str) -> None:
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
    replicas.open_topic(topic, uuid.uuid5(uuid.NAMESPACE_DNS, topic), plan, {0: state, 1: state})
