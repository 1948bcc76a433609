"""Shell: the chapters about a cluster: its controller is killed under load and comes back, another one is drained."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Final

from ..running import run_interruptible
from . import client_work, cluster_work
from .cluster_scene import BROKERS, PARTITIONS, TOPIC
from .data import keys_out_of_order, record_of
from .log_chapters import CONFIGS, read_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from odradek.client.cluster import PartitionInfo

    from .cluster_scene import ClusterScene
    from .cluster_work import LoadRun

COLUMNS: Final = ("partition", "leader", "then", "records", "longest pause")
MIN_IN_SYNC: Final = {"min.insync.replicas": "2"}


def start(scene: ClusterScene) -> None:
    """Start three brokers, and create the topic."""
    stage = scene.stage
    stage.step("Three brokers")
    records = [record_of(transition) for transition in read_changes(scene.now_s)]
    size = -(-len(records) // 3)
    scene.thirds = tuple(records[begin : begin + size] for begin in range(0, len(records), size))
    began = time.perf_counter()
    scene.addresses = scene.brokers.start()
    took_s = time.perf_counter() - began
    run_interruptible(
        cluster_work.create_topic, scene.bootstrap, TOPIC, PARTITIONS, BROKERS, {**CONFIGS, **MIN_IN_SYNC}
    )
    found = run_interruptible(cluster_work.partitions_of, scene.bootstrap, TOPIC)
    scene.killed = run_interruptible(cluster_work.controller_of, scene.bootstrap)
    stage.say(
        f"Each is a process of its own; after {took_s:.2f} s all serve. They keep the metadata together, and voted "
        f"for broker {scene.killed} to be the controller. With them goes a topic, {TOPIC}, of {PARTITIONS} partitions: "
        "every record is kept by three brokers, and acknowledged when two have it at least."
    )
    stage.table(
        ("broker", "address", "process", "leads partitions"),
        [
            (f"{node_id}", scene.addresses[node_id], f"pid {broker.process_id}", _led_by(found, node_id))
            for node_id, broker in scene.brokers.by_id.items()
        ],
    )


def produce(scene: ClusterScene) -> None:
    """Send the first third, undisturbed."""
    stage = scene.stage
    stage.step("A third of the data, in peace")
    first = scene.thirds[0]
    with stage.progress("producing", len(first)) as on_progress:
        run = run_interruptible(cluster_work.produce, scene.bootstrap, TOPIC, first, on_progress, None)
    scene.acknowledged.update(run.acknowledged)
    total = sum(map(len, scene.thirds))
    stage.say(
        f"The history of the world's clocks, {total:,} records, of which the first {len(first):,} in "
        f"{run.lasted_s:.2f} s: idempotent, with acks=all."
    )
    _check_all_acknowledged(scene, run, len(first))


def kill(scene: ClusterScene) -> None:
    """Kill the controller, which leads partitions, too, in the midst of the second third."""
    stage, killed = scene.stage, scene.killed
    stage.step("kill -9 of the controller")
    broker = scene.brokers.by_id[killed]
    pid = broker.process_id
    stage.say(
        f"In the midst of the second third broker {killed} (pid {pid}) is killed where it stands. The others see that "
        "its connections have ended and its port refuses, and vote for one of them; that one has others lead what "
        "was led there, and the client is told who. The longest pause between two acknowledgements, with each "
        "partition's leaders:"
    )
    run, before, after = _load(scene, 1, broker.kill)
    pause_s = run.longest_pause_s(_partitions_of(before, killed))
    stage.say(
        f"[bold]{pause_s * 1000:.0f} ms[/] after the kill each partition that it led had its next acknowledged record."
    )
    _check_all_acknowledged(scene, run, len(scene.thirds[1]))
    stage.check(
        f"broker {killed} leads nothing any more",
        holds=not _partitions_of(after, killed) and all(each.has_leader for each in after),
        detail=f"{[each.leader_id for each in after]}",
    )
    controller = run_interruptible(cluster_work.controller_of, scene.bootstrap)
    stage.check(f"broker {controller} is the controller now", holds=controller not in (-1, killed), detail="nobody is")


def bring_back(scene: ClusterScene) -> None:
    """Start the killed broker again."""
    scene.stage.step("It comes back")
    _start_again(scene, scene.killed, "recovers its logs, cuts off what the others never had, fetches what it missed")


def drain(scene: ClusterScene) -> None:
    """Stop another broker in the midst of the last third."""
    stage, drained = scene.stage, scene.drained
    stage.step("Another one is drained")
    broker = scene.brokers.by_id[drained]
    stage.say(
        f"In the midst of the last third broker {drained} (pid {broker.process_id}) gets SIGTERM, as for "
        "an update. It hands over what it leads before it ends, so hardly anybody waits:"
    )
    run, before, _after = _load(scene, 2, broker.tell_to_end)
    broker.stop()
    after = run_interruptible(cluster_work.partitions_of, scene.bootstrap, TOPIC)
    pause_s = run.longest_pause_s(_partitions_of(before, drained))
    stage.say(f"Of no partition that it led the client waited longer than [bold]{pause_s * 1000:.0f} ms[/].")
    _check_all_acknowledged(scene, run, len(scene.thirds[2]))
    stage.check(
        f"broker {drained} leads nothing any more",
        holds=not _partitions_of(after, drained) and all(each.has_leader for each in after),
        detail=f"{[each.leader_id for each in after]}",
    )
    _start_again(scene, drained, "fetches what it missed")


def look(scene: ClusterScene) -> None:
    """Read everything, and compare the copies."""
    stage = scene.stage
    stage.step("What is left of it all")
    began = time.perf_counter()
    with stage.progress("consuming", len(scene.acknowledged)) as on_progress:
        read = run_interruptible(client_work.consume, scene.bootstrap, TOPIC, on_progress)
    took_s = time.perf_counter() - began
    found = {(number, offset): each for number, records in read.items() for offset, each in enumerate(records)}
    wrong = [place for place, record in scene.acknowledged.items() if found.get(place) != record]
    stage.check(
        f"{len(scene.acknowledged):,} acknowledged records read back in {took_s:.2f} s: each where its acknowledgement "
        "said, none lost",
        holds=not wrong,
        detail=f"not so at {sorted(wrong)[:5]}",
    )
    stage.check("none is there twice", holds=len(found) == len(scene.acknowledged), detail=f"{len(found):,} were read")
    out_of_order = keys_out_of_order(read)
    stage.check("every zone's history is in order", holds=not out_of_order, detail=", ".join(out_of_order))
    copies = {node_id: _digest_of_logs(scene.data_dir / str(node_id)) for node_id in scene.brokers.by_id}
    stage.check(
        f"the three copies on disk are the same, byte for byte (SHA-256 {min(copies.values())[:10]}...)",
        holds=len(set(copies.values())) == 1,
        detail=f"{copies}",
    )


def _load(
    scene: ClusterScene, which: int, accident: Callable[[], None]
) -> tuple[LoadRun, Sequence[PartitionInfo], Sequence[PartitionInfo]]:
    """Send a third with an accident in it, show what became of it, and return who led before and after."""
    stage = scene.stage
    records = scene.thirds[which]
    before = run_interruptible(cluster_work.partitions_of, scene.bootstrap, TOPIC)
    with stage.progress("producing", len(records)) as on_progress:
        run = run_interruptible(cluster_work.produce, scene.bootstrap, TOPIC, records, on_progress, accident)
    scene.acknowledged.update(run.acknowledged)
    after = run_interruptible(cluster_work.partitions_of, scene.bootstrap, TOPIC)
    stage.table(COLUMNS, [_row(run, was, now) for was, now in zip(before, after, strict=True)])
    return run, before, after


def _row(run: LoadRun, was: PartitionInfo, now: PartitionInfo) -> tuple[object, ...]:
    number = was.partition
    return (
        number,
        was.leader_id,
        f"{now.leader_id}" if now.leader_id != was.leader_id else "",
        len(run.times.get(number, ())),
        f"{run.longest_pause_s([number]) * 1000:.0f} ms",
    )


def _start_again(scene: ClusterScene, node_id: int, what: str) -> None:
    stage = scene.stage
    began = time.perf_counter()
    broker = scene.brokers.by_id[node_id]
    broker.start()
    ready_s = time.perf_counter() - began
    is_in_sync = run_interruptible(cluster_work.wait_until_in_sync, scene.bootstrap, TOPIC)
    took_s = time.perf_counter() - began
    stage.say(
        f"Broker {node_id} is started again (pid {broker.process_id}): it {what}, serves after {ready_s:.2f} s, and is "
        f"in sync with the others after {took_s:.2f} s."
    )
    stage.check("all three replicas of each partition are in sync", holds=is_in_sync)


def _check_all_acknowledged(scene: ClusterScene, run: LoadRun, count: int) -> None:
    scene.stage.check(
        f"all {count:,} records were acknowledged, none failed",
        holds=len(run.acknowledged) == count and not run.failures,
        detail=f"{len(run.acknowledged):,} were, {len(run.failures):,} failed: {run.failures[:1]}",
    )


def _partitions_of(partitions: Sequence[PartitionInfo], leader: int) -> list[int]:
    return [each.partition for each in partitions if each.leader_id == leader]


def _led_by(partitions: Sequence[PartitionInfo], leader: int) -> str:
    return ", ".join(map(str, _partitions_of(partitions, leader)))


def _digest_of_logs(directory: Path) -> str:
    """Return a digest of all bytes of the topic's logs below a broker's directory."""
    digest = hashlib.sha256()
    for number in range(PARTITIONS):
        for file in sorted((directory / f"{TOPIC}-{number}").glob("*.log")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
