"""Shell: one combination, once: a new broker, the workload, `kill -9`, a second start, and everything measured.

| phase | what is done | what is measured |
| --- | --- | --- |
| start | a broker with an empty folder, the topic | |
| produce | the records of full speed | throughput, processor time |
| pace | the paced records, one by one, a consumer waits | latencies |
| | nothing, until all is seen that was delayed | |
| read | everything, as often as `read_s` allows | throughput, processor time |
| settle | nothing, until log and store have come to rest | bytes on disk and in the store, write amplification |
| check | everything is read and compared | what is there, removed, lost, wrong |
| kill | `kill -9`, files out of the page cache, a second start | time to recover |
| read cold | everything, once | throughput, read amplification |
| check | once more | what was lost by the kill |
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from odradek.kernel.errors import OdradekError

from .broker_process import BrokerFolder, serving_broker
from .figures import ACK_PERCENTILES, END_TO_END_PERCENTILES
from .folders import forget_pages, size_bytes
from .ledger import Allowance, Ledger, Reading
from .load import Load, offset_sent
from .preflight import has_own_store, settings_of_run
from .process_use import ProcessUse, process_use

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from odradek.client import ConsumerRecord

    from .broker_process import ServingBroker
    from .load import Bounds, Flow
    from .record_plan import RecordPlan
    from .samples import Samples
    from .variations import Combination

RUN_S_MAX: Final = 900.0
_LOOK_EVERY_S: Final = 0.1
_BUSY: Final = 0.3
"""The share of a core that somebody uses who works; a broker at rest uses a tenth of that."""
_MICROSECONDS: Final = 1_000_000
_FEW_TIMES: Final = 10
"""What a cold read takes from disk is no tenth of what it has to."""

PHASES: Final = ("start", "produce", "pace", "read", "settle", "check", "restart", "read cold", "check again")


class OnPhase(Protocol):
    """Takes the name of the phase of a run, and what share of it is done."""

    def __call__(self, phase: str, share: float, /) -> None:
        """Take it."""
        ...


@attrs.frozen
class RunResult:
    """What one run came to.

    Attributes:
        figures: By name; None for what is not known.
        notes: What a reader of the figures should know.
    """

    figures: dict[str, float | None]
    notes: tuple[str, ...]


@attrs.define
class OneRun:
    """One run of one combination. Life: `run`, once.

    Attributes:
        combination: What the broker and the topic are set to.
        plan: The records.
        name: One that no other run has.
        folder: Empty; what the broker leaves is in it.
        config: A configuration file that the broker reads first, or None.
        on_phase: Hears how it goes.
    """

    combination: Combination
    plan: RecordPlan
    name: str
    folder: BrokerFolder
    config: Path | None
    on_phase: OnPhase
    figures: dict[str, float | None] = attrs.field(factory=dict, init=False)
    notes: list[str] = attrs.field(factory=list, init=False)
    _checked: Reading = attrs.field(init=False)

    async def run(self) -> RunResult:
        """Do it all.

        Raises:
            OdradekError: The broker or a client failed, or it took longer than `RUN_S_MAX`.

        Cancelled, the broker is killed; its folder stays.
        """
        with trio.move_on_after(RUN_S_MAX):
            self.on_phase("start", 0)
            ledger = Ledger(self.plan)
            async with self._broker() as broker:
                load = Load(self.plan.workload, ledger, broker.bootstrap)
                await self._before(broker, load)
            self.on_phase("restart", 0)
            caches_dropped = await self._forget()
            async with self._broker() as broker:
                load.bootstrap = broker.bootstrap
                self.figures["recovery"] = broker.started_s
                await self._after(broker, load, caches_dropped=caches_dropped)
            return RunResult(self.figures, tuple(dict.fromkeys(self.notes)))
        raise OdradekError(f"a run took longer than {RUN_S_MAX:.0f} s")

    def _broker(self) -> AbstractAsyncContextManager[ServingBroker]:
        settings = settings_of_run(self.combination.broker, str(self.folder.store), self.name)
        return serving_broker(self.folder, settings, self.config)

    async def calibrate(self, seconds: float) -> int:
        """Return how many records this combination takes in so many seconds at full speed."""
        async with self._broker() as broker:
            load = Load(self.plan.workload, Ledger(self.plan), broker.bootstrap)
            await load.create_topic(self.combination.topic)
            return await load.flood_for(seconds)

    # ---------------------------------------------------------------------------------------------- before the kill

    async def _before(self, broker: ServingBroker, load: Load) -> None:
        await load.create_topic(self.combination.topic)
        empty_bytes = size_bytes(self.folder.data)
        before = process_use(broker.process_id)
        flow = await load.flood(lambda share: self.on_phase("produce", share))
        produced = process_use(broker.process_id)
        self.figures["produce_records"] = flow.per_second(flow.records_count)
        self.figures["produce_bytes"] = flow.per_second(flow.size_bytes)
        self.figures["produce_cpu"] = _each(produced.cpu_since(before), flow)
        acknowledged, arrived, paced_bytes = await load.pace(lambda share: self.on_phase("pace", share))
        self._note_latencies(acknowledged, arrived)
        if self.plan.workload.delay_ms:
            await load.wait_until_seen()
        paced = process_use(broker.process_id)
        read = await load.read_for(self.plan.workload.read_s, lambda share: self.on_phase("read", share))
        self.figures["read_bytes"] = read.per_second(read.size_bytes)
        self.figures["read_cpu"] = _each(process_use(broker.process_id).cpu_since(paced), read)
        await self._settle(broker.process_id)
        used = process_use(broker.process_id)
        self._note_use(used, before, flow.size_bytes + paced_bytes, empty_bytes)
        self.on_phase("check", 0)
        reading, bounds = await self._check(load)
        self._checked = reading
        kept = reading.result(self._allowance, bounds.starts)
        self.figures |= {
            "acknowledged": kept.acknowledged,
            "there": kept.there,
            "removed": kept.removed,
            "lost": kept.lost,
            "wrong": kept.wrong,
        }
        if load.ledger.unknown:
            self.notes.append("with acks=0 nobody knows what was taken: nothing can be said of what was lost")

    def _note_latencies(self, acknowledged: Samples, arrived: Samples) -> None:
        for figures, samples in ((ACK_PERCENTILES, acknowledged), (END_TO_END_PERCENTILES, arrived)):
            percents = [float(figure.name.rpartition("p")[2]) for figure in figures]
            values = samples.percentiles(percents) if samples.count else [None] * len(percents)
            self.figures |= {figure.name: value for figure, value in zip(figures, values, strict=True)}

    async def _settle(self, process_id: int) -> None:
        """Wait until nothing changes on disk and in the store and nobody works on it; note how long that took.

        Compaction is done by children of the broker, which think before they write, and begins when what it works on is
        flushed: while there is a child, while a flush lasts, or while the broker is busy, it is not at rest.
        """
        workload = self.plan.workload
        began_s = changed_s = trio.current_time()
        last, last_use, last_s = self._sizes(), process_use(process_id), began_s
        while True:
            await trio.sleep(_LOOK_EVERY_S)
            now_s, sizes, use = trio.current_time(), self._sizes(), process_use(process_id)
            is_busy = (use.cpu_since(last_use) or 0.0) > _BUSY * (now_s - last_s)
            if sizes != last or use.workers_count or use.works_aside or is_busy:
                changed_s = now_s
            last, last_use, last_s = sizes, use, now_s
            if now_s - changed_s >= workload.quiet_s:
                break
            if now_s - began_s >= workload.settle_s:
                self.notes.append(
                    f"it was still at work on its files after {workload.settle_s:g} s: measured as they were then"
                )
                break
            self.on_phase("settle", (now_s - changed_s) / workload.quiet_s)
        self.figures["settled"] = changed_s - began_s

    def _sizes(self) -> tuple[int, int]:
        return size_bytes(self.folder.data), size_bytes(self.folder.store)

    def _note_use(self, used: ProcessUse, before: ProcessUse, produced_bytes: int, empty_bytes: int) -> None:
        written = used.written_since(before)
        disk_bytes = max(size_bytes(self.folder.data) - empty_bytes, 0)
        self.figures |= {
            "cpu": used.cpu_since(before),
            "memory": used.memory_bytes_max,
            "produced": produced_bytes,
            "disk": disk_bytes,
            "store": self._store_bytes(),
            # A file system in memory writes nothing, whatever it takes.
            "write_amplification": None if written is None or disk_bytes > 2 * written else written / produced_bytes,
        }

    def _store_bytes(self) -> float | None:
        """Return what is in the store; None where there is none, or one that cannot be looked into."""
        return size_bytes(self.folder.store) if has_own_store(self.combination.broker) else None

    @property
    def _allowance(self) -> Allowance:
        return Allowance.of(self.combination.topic)

    async def _check(self, load: Load) -> tuple[Reading, Bounds]:
        """Read everything; return what came, and where the logs begin and end."""
        reading = Reading(load.ledger)

        def take(records: Sequence[ConsumerRecord]) -> None:
            for record in records:
                reading.take(record.partition, offset_sent(record), record.key, record.value)

        await load.read(take)
        return reading, await load.bounds()

    # ----------------------------------------------------------------------------------------------- after the kill

    async def _forget(self) -> bool:
        """Have what is on disk read from there; return whether the system does that."""
        return await trio.to_thread.run_sync(forget_pages, self.folder.path)

    async def _after(self, broker: ServingBroker, load: Load, *, caches_dropped: bool) -> None:
        if caches_dropped:
            await self._forget()  # the start has read what it recovered
        before = process_use(broker.process_id)
        self.on_phase("read cold", 0)
        cold = await load.read()
        self.note_cold_read(cold, process_use(broker.process_id).read_since(before), caches_dropped=caches_dropped)
        self.on_phase("check again", 0)
        reading, bounds = await self._check(load)
        kept = reading.result(self._allowance, bounds.starts)
        gone = reading.gone_since(self._checked, self._allowance, bounds.starts, bounds.ends)
        wrong_since = max(kept.wrong - (self.figures["wrong"] or 0), 0)
        self.figures |= {"there_after_kill": kept.there, "lost_by_kill": gone + wrong_since}
        if self.figures["there"] and not kept.there:
            self.notes.append("nothing outlived kill -9: this storage keeps no records through it, whatever the policy")

    def note_cold_read(self, cold: Flow, read_bytes: float | None, *, caches_dropped: bool) -> None:
        """Note how fast it was read cold, and what that took from disk; say so if it was not cold.

        Args:
            cold: What arrived.
            read_bytes: What the broker had read from disk meanwhile; None where the system does not tell.
            caches_dropped: Whether the system says that it can forget files.
        """
        if was_in_memory(read_bytes, cold.size_bytes, size_bytes(self.folder.data)):
            caches_dropped = False
        if not caches_dropped:
            self.notes.append("the system does not drop these files from memory: the cold reads are warm ones")
        is_known = caches_dropped and read_bytes is not None and cold.size_bytes
        self.figures["cold_read_bytes"] = cold.per_second(cold.size_bytes)
        self.figures["read_amplification"] = (read_bytes or 0.0) / cold.size_bytes if is_known else None


def was_in_memory(read_bytes: float | None, arrived_bytes: int, disk_bytes: int) -> bool:
    """Return whether a read took next to nothing from disk though what arrived lies there, as in a tmpfs.

    Args:
        read_bytes: What was read from disk; None where the system does not tell.
        arrived_bytes: Keys and values that came.
        disk_bytes: What the broker's own folder takes, which is less where batches are compressed, or lie in a store.
    """
    return read_bytes is not None and read_bytes * _FEW_TIMES < min(arrived_bytes, disk_bytes)


def _each(cpu_s: float | None, flow: Flow) -> float | None:
    """Return processor time for each record, in microseconds."""
    return None if cpu_s is None or not flow.records_count else cpu_s * _MICROSECONDS / flow.records_count


def empty_folder(path: Path) -> BrokerFolder:
    """Make a folder for one run, or empty it."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    (path / "store").mkdir()
    return BrokerFolder(path)
