"""What metadata of 100,000 partitions costs its controllers, while 100 brokers send heartbeats.

    python -m benchmarks.metadata [--topics 1000] [--partitions 100] [--brokers 100]

Three controllers vote in the simulator: elections, logs, disks and messages are real, time is the world's, and
computing takes none of it. So of what is done two things are told: how much of the world's time it took, and how much
processor time, of all three together but without what is done on worker threads; and how long the longest step was,
between two points at which clients are served. Each partition has three replicas. Python's collector is off.

| row | what |
|---|---|
| `create` | all topics are made, a thousand partitions by a request |
| `snapshot` | its size, what writing and reading it takes (on a worker thread), what the image of it fills |
| `heartbeats` | a minute of them; no other work |
| `elect` | the active controller dies: until each broker's heartbeat is answered by the next one |
| `restart` | it begins again: until it has all that is committed |
| `fence` | one broker is silent: from the end of its session until all controllers know that others lead |
| `fence many` | the same of a tenth of all at once |
| `drain` | a broker wants to stop: until it may |
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import trio

from benchmarks.processes import pss_mib
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.controller.snapshots import SnapshotId, decode_snapshot, encode_snapshot
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest
from tests.controller.controller_requests import create_topics, topic
from tests.quorum.term_nodes import register
from tests.quorum.term_world import TermSettings, in_terms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from odradek.kernel.metadata.image import MetadataImage
    from tests.quorum.term_world import TermController, TermQuorum

HEARTBEAT_S: Final = 2
SESSION_S: Final = 9
MINUTE_S: Final = 60
PARTITIONS_A_REQUEST: Final = 1000
SETTINGS: Final = TermSettings(
    snapshot_bytes=20 << 20,  # as by default
    session_ms=SESSION_S * 1000,
    log_config=LogConfig(segment_bytes=1 << 30, segment_index_bytes=10 << 20),
)


class Steps(trio.abc.Instrument):
    """Times each step of each task but the benchmark's own."""

    def __init__(self) -> None:
        self.longest_s = self.all_s = self._since_s = 0.0
        self.task = ""
        self._own = trio.lowlevel.current_task()

    def begin(self) -> None:
        """Forget what was."""
        gc.collect()
        self.longest_s, self.all_s, self.task = 0.0, 0.0, ""

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Begin one."""
        del task
        self._since_s = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """End it."""
        if task is self._own:
            return
        took_s = time.thread_time() - self._since_s
        self.all_s += took_s
        if took_s > self.longest_s:
            self.longest_s, self.task = took_s, task.name


class Brokers:
    """The brokers, as far as their controller knows them: by heartbeats."""

    def __init__(self, quorum: TermQuorum, epochs: dict[int, int]) -> None:
        """Take registered brokers, by their epochs."""
        self._quorum, self._epochs = quorum, epochs
        self.silent: set[int] = set()
        self.answered_count = 0
        self.answered_s = dict.fromkeys(epochs, 0.0)

    async def beat(self, broker_id: int, *, stop: bool = False) -> Any:
        """Send one heartbeat, to whoever is the controller."""
        offset = max(image.offset for image in self._quorum.images.values())
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self._epochs[broker_id],
            current_metadata_offset=offset,
            want_shut_down=stop,
        )
        answer, _failures = await self._quorum.ask(request)
        self.answered_count += 1
        self.answered_s[broker_id] = trio.current_time()
        return answer

    async def live(self, broker_id: int) -> None:
        """Send them for ever, but while it is to be silent."""
        await trio.sleep(HEARTBEAT_S * broker_id / len(self._epochs))
        while True:
            if broker_id not in self.silent:
                await self.beat(broker_id)
            await trio.sleep(HEARTBEAT_S)


async def active(quorum: TermQuorum) -> TermController:
    """Wait for the active controller."""
    while True:
        for controller in quorum.controllers.values():
            if controller.log is not None and controller.terms is not None and controller.terms.is_active:
                return controller
        await trio.sleep(0.001)


async def measured(name: str, steps: Steps, work: Callable[[], Awaitable[object]]) -> None:
    """Do something, and print what it took."""
    steps.begin()
    began_s = trio.current_time()
    said = await work()
    took_s = trio.current_time() - began_s
    longest = f"longest step {steps.longest_s * 1000:6.2f} ms ({'.'.join(steps.task.split('.')[-2:])})"
    print(f"{name:12} {took_s:8.3f} s of the world   {steps.all_s:7.2f} CPU s   {longest}   {said or ''}", flush=True)


def measure_snapshot(image: MetadataImage) -> None:
    """Print what a snapshot of an image takes, and what the image takes in memory."""
    begun_s = time.thread_time()
    data = encode_snapshot(image, 0)
    written_s = time.thread_time() - begun_s
    before_mib = pss_mib(os.getpid())
    begun_s = time.thread_time()
    loaded = decode_snapshot(data, "a snapshot", SnapshotId(image.offset + 1, image.epoch))
    read_s = time.thread_time() - begun_s
    gc.collect()
    print(
        f"{'snapshot':12} {len(data) / 2**20:8.1f} MiB, written in {written_s:.2f} CPU s, read in {read_s:.2f} CPU s; "
        f"the image fills {pss_mib(os.getpid()) - before_mib:.0f} MiB",
        flush=True,
    )
    del loaded


async def fenced(quorum: TermQuorum, broker_ids: Iterable[int]) -> None:
    """Wait until all controllers know that brokers are fenced."""
    wanted = [*broker_ids]
    await quorum.until(
        lambda: all(image.brokers[each].is_fenced for image in quorum.images.values() for each in wanted)
    )


class Run:
    """The rows, one after the other, over one world."""

    def __init__(self, quorum: TermQuorum, steps: Steps, asked: argparse.Namespace) -> None:
        """Begin with an empty cluster."""
        self._quorum, self._steps, self._asked = quorum, steps, asked
        self._brokers: Brokers

    async def main(self) -> None:
        """Print all rows."""
        quorum, steps = self._quorum, self._steps
        controller = await active(quorum)
        assert controller.terms is not None
        assert controller.terms.active is not None
        ids = range(1, self._asked.brokers + 1)
        await register(controller.terms.active, *ids)
        image = controller.terms.active.image
        self._brokers = Brokers(quorum, {each: image.brokers[each].broker_epoch for each in ids})
        async with trio.open_nursery() as nursery:
            for broker_id in ids:
                nursery.start_soon(self._brokers.live, broker_id)
            await measured("create", steps, self.create)
            measure_snapshot(await quorum.agreed())
            await measured("heartbeats", steps, self.heartbeats)
            await measured("elect", steps, self.elect)
            await measured("restart", steps, self.restart)
            await measured("fence", steps, lambda: self.fence(ids[-1:]))
            await measured("fence many", steps, lambda: self.fence(ids[-1 - len(ids) // 10 : -1]))
            await measured("drain", steps, lambda: self.drain(ids[0]))
            nursery.cancel_scope.cancel()

    async def create(self) -> None:
        """Make all topics."""
        count = max(PARTITIONS_A_REQUEST // self._asked.partitions, 1)
        for first in range(0, self._asked.topics, count):
            numbers = range(first, min(first + count, self._asked.topics))
            topics = [topic(f"topic-{number}", self._asked.partitions, 3) for number in numbers]
            await self._quorum.ask(create_topics(*topics))
        await self._quorum.agreed()

    async def heartbeats(self) -> str:
        """Let a minute pass."""
        before = self._brokers.answered_count
        await trio.sleep(MINUTE_S)
        return f"{self._brokers.answered_count - before} heartbeats"

    async def elect(self) -> str:
        """Kill the active controller, and wait until each broker has heard of the next."""
        began_s = trio.current_time()
        (await active(self._quorum)).crash()
        await active(self._quorum)
        took_s = trio.current_time() - began_s
        now_s = trio.current_time()
        await self._quorum.until(lambda: min(self._brokers.answered_s.values()) > now_s)
        return f"the next one is active after {took_s:.3f} s"

    async def restart(self) -> None:
        """Have it begin again."""
        next(each for each in self._quorum.controllers.values() if each.log is None).start()
        await self._quorum.agreed()

    async def fence(self, broker_ids: Iterable[int]) -> str:
        """Let brokers be silent until they are fenced; what is told begins with the end of their sessions."""
        wanted = [*broker_ids]
        self._brokers.silent.update(wanted)
        await trio.sleep(SESSION_S - HEARTBEAT_S)
        over_s = SESSION_S + max(self._brokers.answered_s[each] for each in wanted)
        before = max(image.offset for image in self._quorum.images.values())
        self._steps.begin()
        await fenced(self._quorum, wanted)
        records_count = max(image.offset for image in self._quorum.images.values()) - before
        return f"{trio.current_time() - over_s:.3f} s after their sessions, {records_count} records"

    async def drain(self, broker_id: int) -> str:
        """Have a broker stop in good order, which asks again every ten milliseconds."""
        self._brokers.silent.add(broker_id)
        count = 1
        while not (await self._brokers.beat(broker_id, stop=True)).should_shut_down:
            await trio.sleep(0.01)
            count += 1
        return f"{count} heartbeats"


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=100, help="of each topic")
    parser.add_argument("--brokers", type=int, default=100)
    asked = parser.parse_args()
    print(f"{asked.topics} topics x {asked.partitions} partitions, 3 replicas of each, {asked.brokers} brokers")

    async def run(quorum: TermQuorum) -> None:
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        await Run(quorum, steps, asked).main()

    gc.disable()
    in_terms(run, settings=SETTINGS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
