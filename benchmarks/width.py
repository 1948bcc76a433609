"""What width costs beside Apache Kafka: `python -m benchmarks.scale --beside`.

Both brokers run at once, each with its own default settings, and take turns. Topics have 50 partitions.

| case | what |
|---|---|
| `create` | one CreateTopics of everything, until Metadata tells all leaders and ListOffsets answers for all |
| `idle, empty`, `idle` | nothing, for some seconds: as created, and with a record in each partition; % of a core |
| `metadata` | Metadata of everything, the median of twenty |
| `list offsets` | ListOffsets of everything, the median of ten |
| `one each` | one record of 100 bytes to each partition, one request each, one after the other |
| `drain` | SIGTERM to the end of the process |

The ratio counts, not the figure: other work on the machine hits both.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.broker import batch_of
from benchmarks.rivals import Rival, Wire, rivals, row
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.kernel.wire.message import Message

PARTITIONS_EACH = 50
LATEST = -1
SETTLE_SECONDS = 12.0
"""So long a broker has for what it does after a change: checkpoints, removals."""
DRAIN_SECONDS_MAX = 300.0


def measure_beside(counts: Sequence[int], idle_seconds: float) -> None:
    """Print what each number of partitions costs both brokers."""
    for count in counts:
        topics = max(1, count // PARTITIONS_EACH)
        print(f"{topics} x {PARTITIONS_EACH} partitions", flush=True)
        with contextlib.suppress(ChildProcessError, RuntimeError), rivals({}) as found:
            _measure(found, topics, idle_seconds)


def _measure(found: Sequence[Rival], topics: int, idle_seconds: float) -> None:
    wires = {rival.name: rival.connect() for rival in found}
    seconds = ("{:9.3f} s", "{:7.2f} CPU s")
    millis = ("{:9.2f} ms", "{:7.2f} CPU ms")

    def each(case: str, columns: Sequence[str], measure: Callable[[Rival, Wire], tuple[float, ...]]) -> None:
        row(case, {rival.name: [measure(rival, wires[rival.name])] for rival in found}, columns)

    def idle(rival: Rival, _wire: Wire) -> tuple[float]:
        before = rival.cpu_seconds()
        time.sleep(idle_seconds)
        return ((rival.cpu_seconds() - before) / idle_seconds * 100,)

    each("create", seconds, lambda rival, wire: _timed(rival, lambda: _create(wire, topics)))
    time.sleep(SETTLE_SECONDS)
    each("idle, empty", ("{:9.2f} % of a core",), idle)
    each("metadata", millis, lambda rival, wire: _repeated(rival, wire, MetadataRequest(topics=None), 12, 20))
    each("list offsets", millis, lambda rival, wire: _repeated(rival, wire, list_offsets(topics), 7, 10))
    each("one each", seconds, lambda rival, wire: _timed(rival, lambda: _produce(wire, topics)))
    time.sleep(SETTLE_SECONDS)
    each("idle", ("{:9.2f} % of a core",), idle)
    each("drain", ("{:9.3f} s",), lambda rival, _wire: (_drain(rival),))


def _timed(rival: Rival, work: Callable[[], None]) -> tuple[float, float]:
    before, begin = rival.cpu_seconds(), time.perf_counter()
    work()
    return time.perf_counter() - begin, rival.cpu_seconds() - before


def _repeated(rival: Rival, wire: Wire, request: Message, version: int, times: int) -> tuple[float, float]:
    wire.ask(request, version)
    before, taken = rival.cpu_seconds(), []
    for _ in range(times):
        begin = time.perf_counter()
        wire.send(request, version)
        wire.receive_bytes()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1e3, (rival.cpu_seconds() - before) / times * 1e3


def list_offsets(topics: int) -> ListOffsetsRequest:
    """Return the request for the end of every partition."""
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(PARTITIONS_EACH)]
    asked = [ListOffsetsTopic(name=f"t{number}", partitions=partitions) for number in range(topics)]
    return ListOffsetsRequest(replica_id=-1, topics=asked)


def _create(wire: Wire, topics: int) -> None:
    wanted = [
        CreatableTopic(name=f"t{number}", num_partitions=PARTITIONS_EACH, replication_factor=1)
        for number in range(topics)
    ]
    created = wire.ask(CreateTopicsRequest(topics=wanted, timeout_ms=120_000), 5)
    if any(topic.error_code for topic in created.topics):
        raise SystemExit("the topics were not created")
    while not _all_led(wire.ask(MetadataRequest(topics=None), 12), topics):
        time.sleep(0.005)
    while not _all_answered(wire.ask(list_offsets(topics), 7)):
        time.sleep(0.005)


def _all_led(answer: Any, topics: int) -> bool:
    led = [part.leader_id >= 0 and not part.error_code for topic in answer.topics for part in topic.partitions]
    return len(led) >= topics * PARTITIONS_EACH and all(led)


def _all_answered(answer: Any) -> bool:
    return not any(part.error_code for topic in answer.topics for part in topic.partitions)


def _produce(wire: Wire, topics: int) -> None:
    batch = batch_of(100)
    for number in range(topics):
        for index in range(PARTITIONS_EACH):
            data = TopicProduceData(
                name=f"t{number}", partition_data=[PartitionProduceData(index=index, records=batch)]
            )
            answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), 9)
            assert not answer.responses[0].partition_responses[0].error_code, "everything is served by now"


def _drain(rival: Rival) -> float:
    """Ask a broker to end; return how long it took."""
    begin = time.perf_counter()
    for pid in rival.pids:
        os.kill(pid, signal.SIGTERM)
    while any(map(_is_alive, rival.pids)) and time.perf_counter() - begin < DRAIN_SECONDS_MAX:
        time.sleep(0.005)
    return time.perf_counter() - begin


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
