"""Shell: the demo's first half: a data set goes into a topic, comes back, lies on disk, and is asked by time."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import io
import time
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from odradek.client.partitioners import partition_for_key

from ..output import plural, size_text
from ..running import run_interruptible
from . import client_work
from .data import checksum, first_at_or_after, record_of, segments_of
from .scene import PARTITIONS, TOPIC
from .zones import all_transitions, moment_text

if TYPE_CHECKING:
    from pathlib import Path

    from .scene import Scene
    from .zones import Transition

CONFIGS: Final = {
    "segment.bytes": str(1 << 20),
    # Segments are rolled, and removed, by the age of their records: these are older than any default allows.
    "segment.ms": str(2**63 - 1),
    "retention.ms": "-1",
}
SAMPLE_ZONE: Final = b"America/New_York"
QUESTION_AT: Final = 1173594600  # 2007-03-11T06:30:00Z, half an hour before clocks in New York were changed
MILLISECONDS: Final = 1000


def read_changes(now_s: int) -> list[Transition]:
    """Return the data set, as the package `tzdata` carries it, up to a moment in seconds since the Unix epoch."""
    zones = importlib.resources.files("tzdata")
    files = {name: (zones / "zoneinfo" / name).read_bytes() for name in (zones / "zones").read_text("utf-8").split()}
    return all_transitions(files, now_s)


def changes_of(year: int) -> tuple[list[Transition], range]:
    """Return what the data set has of a year, and the seconds of the Unix epoch that the year has."""
    first_s, next_s = (int(datetime(each, 1, 1, tzinfo=UTC).timestamp()) for each in (year, year + 1))
    return [change for change in read_changes(next_s) if change.at >= first_s], range(first_s, next_s)


def load(scene: Scene) -> None:
    """Show the data set."""
    stage = scene.stage
    stage.step("A real data set")
    transitions = read_changes(scene.now_s)
    scene.records = [record_of(transition) for transition in transitions]
    homes = {key: partition_for_key(key, PARTITIONS) for key in {record.key for record in scene.records}}
    for record in scene.records:
        scene.by_partition.setdefault(homes[record.key], []).append(record)
    scene.checksums = {number: checksum(records) for number, records in scene.by_partition.items()}
    version = importlib.metadata.version("tzdata")
    stage.say(
        f"The [bold]IANA time zone database[/], as the PyPI package tzdata {version} ships it: every time that the "
        f"clocks of a place were changed, {len(transitions):,} times in {len(homes)} zones, from "
        f"{moment_text(transitions[0].at)[:10]} to {moment_text(transitions[-1].at)[:10]}. Each change is a "
        "record; its key is the zone, its value is JSON. This is the day when New York had two noons:"
    )
    stage.show(next(record for record in scene.records if record.key == SAMPLE_ZONE).value.decode())


def start(scene: Scene) -> None:
    """Start a broker, and create the topic."""
    scene.stage.step("A broker")
    took_s = scene.start_broker()
    scene.stage.say(
        f"In a process of its own (pid {scene.broker.process_id}), serving on [bold]{scene.bootstrap}[/] after "
        f"{took_s:.2f} s, its data in {scene.data_dir}. With it goes a topic, {TOPIC}, of {PARTITIONS} partitions."
    )
    run_interruptible(client_work.create_topic, scene.bootstrap, TOPIC, PARTITIONS, CONFIGS)


def produce(scene: Scene) -> None:
    """Send the data set."""
    stage = scene.stage
    stage.step("Produce")
    stage.say(
        "Over TCP, with our own client: idempotent, in batches, acknowledged by all in-sync replicas. The hash of "
        "the key chooses the partition, so a zone's history stays together and in order."
    )
    began = time.perf_counter()
    with stage.progress("producing", len(scene.records)) as on_progress:
        counts = run_interruptible(client_work.produce, scene.bootstrap, TOPIC, scene.records, on_progress)
    took_s = time.perf_counter() - began
    offsets = run_interruptible(client_work.offsets, scene.bootstrap, TOPIC)
    stage.table(
        ("partition", "zones", "records", "first offset", "next offset"),
        [
            (
                partition.partition,
                len({record.key for record in scene.by_partition[partition.partition]}),
                counts.get(partition.partition, 0),
                found.start,
                found.end,
            )
            for partition, found in sorted(offsets.items())
        ],
    )
    size_bytes = sum(len(record.key) + len(record.value) for record in scene.records)
    stage.say(f"{len(scene.records):,} records, {size_text(size_bytes)}, in {took_s:.2f} s.")
    stage.check(
        "every record was acknowledged, in the partition that its key says",
        holds=counts == {number: len(records) for number, records in scene.by_partition.items()},
        detail=f"acknowledged: {counts}",
    )


def consume(scene: Scene) -> None:
    """Read it back."""
    scene.stage.step("Consume")
    scene.stage.say("From the beginning, all partitions side by side.")
    scene.read_and_check("read back")


def look_at_disk(scene: Scene) -> None:
    """Show the segments, with the command that everybody has."""
    stage = scene.stage
    stage.step("On disk")
    stage.say(
        "Kafka's own format, byte for byte. A log is a chain of segments, each named by its first offset. Beside "
        "each stand two sparse indexes, an entry about every 4 kB: from offset to byte, from time to offset. "
        "Their entries are counted here."
    )
    rows, problems, records_count = [], [], 0
    sample = ""
    for number in range(PARTITIONS):
        segments, damaged = segments_of(dump(scene.data_dir / f"{TOPIC}-{number}"))
        problems += damaged
        for segment in segments:
            records_count += segment.records_count
            rows.append(
                (
                    number,
                    segment.name,
                    segment.records_count,
                    size_text(segment.size_bytes),
                    len(segment.entries),
                    len(segment.time_entries),
                )
            )
            if segment.entries and not sample:
                offset, position = segment.entries[len(segment.entries) // 2]
                sample = (
                    f"in partition {number}, the batch that ends with offset {offset:,} begins at byte {position:,}"
                )
    stage.table(("partition", "segment", "records", "size", "index", "time index"), rows)
    stage.say(f"One entry of an index: {sample}. With --keep the files stay, and `odradek log dump` shows all.")
    stage.check(
        "`odradek log dump` finds every record in the segments, and nothing damaged",
        holds=not problems and records_count == len(scene.records),
        detail=f"{records_count:,} records, {len(problems)} problems {problems[:1]}",
    )


def dump(directory: Path) -> list[str]:
    """Return the lines of `odradek log dump --json`, a command that the storage plugin brings."""
    from .. import main

    said = io.StringIO()
    with redirect_stdout(said):
        main(["log", "dump", "--json", str(directory)])
    return said.getvalue().splitlines()


def ask_by_time(scene: Scene) -> None:
    """Look records up by time."""
    stage = scene.stage
    stage.step("A question of time")
    stage.say(
        "In 2007, the United States began summer time three weeks earlier than before. Which clocks were changed "
        f"first, from {moment_text(QUESTION_AT)} on? The broker finds the offset for a time by its time index; "
        "then one record of each partition is enough:"
    )
    found = run_interruptible(client_work.look_up, scene.bootstrap, TOPIC, QUESTION_AT * MILLISECONDS)
    rows = []
    for number, (offset, record) in found.items():
        change = record.change
        clocks = f"{change['before']} to {change['after']}"
        rows.append((number, offset, change["at"][11:], change["zone"], clocks))
    stage.table(("partition", "offset", moment_text(QUESTION_AT)[:10], "zone", "clocks"), rows)
    got = first_at_or_after([record for _offset, record in found.values()], QUESTION_AT * MILLISECONDS)
    expected = first_at_or_after(scene.records, QUESTION_AT * MILLISECONDS)
    if got is not None:
        others = sum(record.timestamp == got.timestamp for record in scene.records) - 1
        stage.say(
            f"The first: [bold]{got.change['zone']}[/], at {got.change['at']}, {got.change['before']} to "
            f"{got.change['after']}, and {plural(others, 'zone')} more at the same moment."
        )
    stage.check(
        "the data set, searched from one end to the other, names the same moment",
        holds=got is not None and expected is not None and got.timestamp == expected.timestamp,
        detail=f"{got} and {expected}",
    )
