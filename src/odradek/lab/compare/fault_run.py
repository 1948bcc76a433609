"""Shell: one combination and one fault, once: a new cluster, the workload, the fault, and everything measured.

| phase | what is done | what is measured |
| --- | --- | --- |
| start | a cluster with empty folders, the topic, all its replicas in sync | |
| produce | the records of full speed; nothing is done to anybody | throughput, processor time |
| pace | the paced records, each when it is due; the fault comes and ends meanwhile | latencies, time without service |
| settle | until everybody is back and has everything | |
| check | everything is read and compared | what is lost, doubled, wrong; bytes on all disks |
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import Admin
from odradek.kernel.errors import OdradekError

from .cluster_processes import serving_cluster
from .deliveries import Deliveries
from .faults import BEGINS, BY_NAME, ENDS, Blow, Wait, longest_silence_s
from .figures import FAULT_PERCENTILES, UNAVAILABLE
from .ledger import Ledger
from .load import TOPIC, Load
from .one_run import RunResult
from .preflight import settings_of_run
from .samples import Samples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from odradek.client import ClientError, ConsumerRecord, PartitionInfo, Producer, RecordMetadata

    from .broker_process import BrokerFolder
    from .cluster_processes import ClusterProcesses
    from .faults import Cluster
    from .load import OnProgress
    from .one_run import OnPhase
    from .record_plan import RecordPlan
    from .variations import Combination
    from .workload import Workload

BESIDE_S_MAX: Final = 240.0
"""How long all that is not paced may take together."""
_SYNC_S_MAX: Final = 60.0
_LOOK_EVERY_S: Final = 0.1
_MILLISECONDS: Final = 1_000
_MICROSECONDS: Final = 1_000_000
_PERCENTS: Final = (50.0, 99.0, 99.9)


def run_s_max(workload: Workload) -> float:
    """Return after how many seconds a run is given up."""
    return paced_s(workload) + BESIDE_S_MAX


def paced_s(workload: Workload) -> float:
    """Return over how many seconds the paced records are due."""
    return workload.paced_records / workload.paced_rate


@attrs.define
class FaultRun:
    """One run of one combination under its fault. Life: `run`, once; or `calibrate`.

    Attributes:
        combination: What the brokers and the topic are set to, and what happens to them.
        cluster: How many brokers there are, and replicas.
        plan: The records.
        name: One that no other run has.
        folder: Empty; what the brokers leave is in it.
        config: A configuration file that the brokers read first, or None.
        on_phase: Hears how it goes.
    """

    combination: Combination
    cluster: Cluster
    plan: RecordPlan
    name: str
    folder: BrokerFolder
    config: Path | None
    on_phase: OnPhase
    figures: dict[str, float | None] = attrs.field(factory=dict, init=False)
    notes: list[str] = attrs.field(factory=list, init=False)

    async def run(self) -> RunResult:
        """Do it all.

        Raises:
            OdradekError: A broker or a client failed that nothing was done to, or it took longer than `run_s_max`.

        Cancelled, the brokers are killed; their folders stay.
        """
        limit_s = run_s_max(self.plan.workload)
        with trio.move_on_after(limit_s):
            self.on_phase("start", 0)
            async with self._cluster() as cluster:
                await self._measure(cluster, Load(self.plan.workload, Ledger(self.plan), cluster.bootstrap))
            return RunResult(self.figures, tuple(dict.fromkeys(self.notes)))
        raise OdradekError(f"a run took longer than {limit_s:.0f} s")

    async def calibrate(self, seconds: float) -> int:
        """Return how many records this combination takes in so many seconds at full speed, with no fault."""
        async with self._cluster() as cluster:
            load = Load(self.plan.workload, Ledger(self.plan), cluster.bootstrap)
            await self._create_topic(load)
            return await load.flood_for(seconds)

    def _cluster(self) -> AbstractAsyncContextManager[ClusterProcesses]:
        settings = settings_of_run(self.combination.broker, str(self.folder.store), self.name)
        return serving_cluster(self.folder.path, settings, self.config, self.cluster.brokers)

    async def _create_topic(self, load: Load) -> None:
        await load.create_topic(self.combination.topic, replicas=self.cluster.replicas)
        if not await self._are_in_sync(load.bootstrap):
            raise OdradekError(f"not all replicas of a new topic were in sync within {_SYNC_S_MAX:.0f} s")

    async def _measure(self, cluster: ClusterProcesses, load: Load) -> None:
        await self._create_topic(load)
        empty_bytes, idle_cpu_s = cluster.data_bytes, cluster.cpu_s
        flow = await load.flood(lambda share: self.on_phase("produce", share))
        used_s = None if idle_cpu_s is None else (cluster.cpu_s or 0.0) - idle_cpu_s
        self.figures["produce_records"] = flow.per_second(flow.records_count)
        self.figures["produce_bytes"] = flow.per_second(flow.size_bytes)
        self.figures["produce_cpu"] = None if used_s is None else used_s * _MICROSECONDS / flow.records_count
        await self._pace(cluster, load)
        self.on_phase("settle", 0)
        if not await self._are_in_sync(load.bootstrap):
            self.notes.append(f"not all replicas were in sync again {_SYNC_S_MAX:.0f} s after the last record")
        self.on_phase("check", 0)
        found = await self._check(load)
        grown_bytes = cluster.data_bytes - empty_bytes
        self.figures |= {
            "bytes_per_record": grown_bytes / found.acknowledged if found.acknowledged else None,
            "acknowledged": found.acknowledged,
            "there": found.there,
            "lost": found.lost,
            "doubled": found.doubled,
            "wrong": found.wrong,
        }

    async def _check(self, load: Load) -> Deliveries:
        found = Deliveries(load.ledger)

        def take(records: Sequence[ConsumerRecord]) -> None:
            for record in records:
                found.take(record.partition, record.offset, record.key, record.value)

        await load.read(take)
        return found

    # ------------------------------------------------------------------------------------------------------ the fault

    async def _pace(self, cluster: ClusterProcesses, load: Load) -> None:
        fault, whole_s = BY_NAME[self.combination.fault], paced_s(self.plan.workload)
        first = (await _partitions(load.bootstrap))[0]
        struck = fault.targets(first.leader_id, first.replicas)
        pacer = _Pacer(load, lambda share: self.on_phase("pace", share))
        async with load.new_producer(linger_ms="0") as producer, trio.open_nursery() as nursery:
            await producer.partitions_for(TOPIC)
            began_s, began_at = trio.current_time(), time.perf_counter()
            if fault.blow is not None:
                nursery.start_soon(_strike, cluster, fault.blow, struck, began_s, whole_s)
            await pacer.run(producer, began_s, began_at)
        acknowledged = pacer.latencies
        told = acknowledged.percentiles(_PERCENTS) if acknowledged.count else [None] * len(_PERCENTS)
        self.figures |= {figure.name: value for figure, value in zip(FAULT_PERCENTILES, told, strict=True)}
        self.figures["given_up"] = pacer.given_up
        self.figures[UNAVAILABLE.name] = longest_silence_s(pacer.waits, began_at + BEGINS * whole_s)
        if pacer.given_up:
            self.notes.append("latencies are those of acknowledged records; the producer gave others up")

    async def _are_in_sync(self, bootstrap: str) -> bool:
        """Wait until every partition has a leader and all its replicas are in sync; return whether they came to be."""
        with trio.move_on_after(_SYNC_S_MAX):
            while True:
                partitions = await _partitions(bootstrap)
                if all(each.has_leader and len(each.isr) == len(each.replicas) for each in partitions):
                    return True
                await trio.sleep(_LOOK_EVERY_S)
        return False


async def _partitions(bootstrap: str) -> Sequence[PartitionInfo]:
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        return list((await admin.describe_topic(TOPIC)).partitions.values())


async def _strike(cluster: ClusterProcesses, blow: Blow, struck: Sequence[int], began_s: float, whole_s: float) -> None:
    """Do what the fault does when it comes, and undo it when it ends."""
    nodes = [cluster.brokers[each] for each in struck]
    await trio.sleep_until(began_s + BEGINS * whole_s)
    async with trio.open_nursery() as nursery:
        for node in nodes:
            if blow is Blow.KILL:
                nursery.start_soon(node.kill)
            elif blow is Blow.PAUSE:
                node.pause()
            else:
                nursery.start_soon(node.stutter)
        await trio.sleep_until(began_s + ENDS * whole_s)
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:  # at the same moment, however long a start takes
        for node in nodes:
            if blow is Blow.KILL:
                nursery.start_soon(node.start, cluster.nursery)
            else:
                node.resume()


class _Pacer:
    """Sends each record when it is due, whatever became of those before it, and notes when it was acknowledged.

    A latency counts from the moment when the record was due, so that one that had to wait for others before it could be
    sent at all is as late as its user would find it.
    """

    def __init__(self, load: Load, on_progress: OnProgress) -> None:
        self.latencies = Samples()
        self.waits: list[Wait] = []
        self.given_up = 0
        self._load = load
        self._on_progress = on_progress

    async def run(self, producer: Producer, began_s: float, began_at: float) -> None:
        workload = self._load.workload
        for number in range(workload.paced_records):
            after_s = number / workload.paced_rate
            await trio.sleep_until(began_s + after_s)
            index = workload.records + number
            partition, key, value = self._load.ledger.plan.record(index)
            told = functools.partial(self._note, index, began_at + after_s)
            await producer.enqueue(TOPIC, value, key=key, partition=partition, on_delivery=told)
            self._on_progress(number / workload.paced_records)
        await producer.flush()

    def _note(self, index: int, due_at: float, metadata: RecordMetadata | None, error: ClientError | None) -> None:
        now_at = time.perf_counter()
        if error is not None:
            self.given_up += 1
        elif metadata is not None:
            self.latencies.add((now_at - due_at) * _MILLISECONDS)
            self._load.ledger.acknowledge(index, metadata.partition, metadata.offset)
        partition = self._load.ledger.plan.record(index).partition
        self.waits.append(Wait(partition, due_at, now_at, is_acknowledged=error is None))
