"""Shell: what the demo tells, step by step; each step does something, shows it, and checks it."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import io
import shutil
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek import __version__

from ...client.partitioners import partition_of_key
from ..output import plural, size_text
from ..running import run_interruptible
from . import client_work
from .broker_process import BrokerProcess
from .data import checksum, first_at_or_after, keys_out_of_order, record_of, segments_of
from .zones import all_transitions, moment_text

if TYPE_CHECKING:
    from .data import DemoRecord
    from .stage import Stage

TOPIC: Final = "clock-changes"
PARTITIONS: Final = 4
CONFIGS: Final = {
    "segment.bytes": str(1 << 20),
    # Segments are rolled, and removed, by the age of their records: these are older than any default allows.
    "segment.ms": str(2**63 - 1),
    "retention.ms": "-1",
}
SAMPLE_ZONE: Final = b"America/New_York"
QUESTION_AT: Final = 1173594600  # 2007-03-11T06:30:00Z, half an hour before clocks in New York were changed
MILLISECONDS: Final = 1000


class Story:
    """One run of the demo. Life: made, `tell`."""

    def __init__(self, stage: Stage, folder: Path, now_s: int) -> None:
        self._stage = stage
        self._broker = BrokerProcess(folder / "data", folder / "broker.log", {})
        self._data_dir = folder / "data"
        self._now_s = now_s
        self._bootstrap = ""
        self._records: list[DemoRecord] = []
        self._by_partition: dict[int, list[DemoRecord]] = {}
        self._checksums: dict[int, str] = {}

    def tell(self) -> None:
        """Tell the whole story; the stage knows afterwards which checks failed."""
        started = time.perf_counter()
        self._stage.open(
            f"Odradek {__version__}",
            "An event-streaming broker that speaks Kafka's protocol, in Python. In the next few seconds it starts, "
            "takes a real data set over TCP, gives it back, is killed, and gives it back again.",
        )
        try:
            for step in (
                self._load,
                self._start,
                self._produce,
                self._consume,
                self._look_at_disk,
                self._ask_by_time,
                self._kill,
            ):
                step()
        finally:
            self._broker.stop()
        self._end(time.perf_counter() - started)

    def _load(self) -> None:
        stage = self._stage
        stage.step("A real data set")
        zones = importlib.resources.files("tzdata")
        files = {
            name: (zones / "zoneinfo" / name).read_bytes() for name in (zones / "zones").read_text("utf-8").split()
        }
        transitions = all_transitions(files, self._now_s)
        self._records = [record_of(transition) for transition in transitions]
        homes = {key: partition_of_key(key, PARTITIONS) for key in {record.key for record in self._records}}
        for record in self._records:
            self._by_partition.setdefault(homes[record.key], []).append(record)
        self._checksums = {number: checksum(records) for number, records in self._by_partition.items()}
        version = importlib.metadata.version("tzdata")
        stage.say(
            f"The [bold]IANA time zone database[/], as the PyPI package tzdata {version} ships it: every time that the "
            f"clocks of a place were changed, {len(transitions):,} times in {len(homes)} zones, from "
            f"{moment_text(transitions[0].at)[:10]} to {moment_text(transitions[-1].at)[:10]}. Each change is a "
            "record; its key is the zone, its value is JSON. This is the day when New York had two noons:"
        )
        stage.show(next(record for record in self._records if record.key == SAMPLE_ZONE).value.decode())

    def _start(self) -> None:
        self._stage.step("A broker")
        began = time.perf_counter()
        self._bootstrap = self._broker.start()
        took_s = time.perf_counter() - began
        self._stage.say(
            f"In a process of its own (pid {self._broker.process_id}), serving on [bold]{self._bootstrap}[/] after "
            f"{took_s:.2f} s, its data in {self._data_dir}. With it goes a topic, {TOPIC}, of {PARTITIONS} partitions."
        )
        run_interruptible(client_work.create_topic, self._bootstrap, TOPIC, PARTITIONS, CONFIGS)

    def _produce(self) -> None:
        stage = self._stage
        stage.step("Produce")
        stage.say(
            "Over TCP, with our own client: idempotent, in batches, acknowledged by all in-sync replicas. The hash of "
            "the key chooses the partition, so a zone's history stays together and in order."
        )
        began = time.perf_counter()
        with stage.progress("producing", len(self._records)) as on_progress:
            counts = run_interruptible(client_work.produce, self._bootstrap, TOPIC, self._records, on_progress)
        took_s = time.perf_counter() - began
        offsets = run_interruptible(client_work.offsets, self._bootstrap, TOPIC)
        stage.table(
            ("partition", "zones", "records", "first offset", "next offset"),
            [
                (
                    partition.partition,
                    len({record.key for record in self._by_partition[partition.partition]}),
                    counts.get(partition.partition, 0),
                    found.start,
                    found.end,
                )
                for partition, found in sorted(offsets.items())
            ],
        )
        size_bytes = sum(len(record.key) + len(record.value) for record in self._records)
        stage.say(f"{len(self._records):,} records, {size_text(size_bytes)}, in {took_s:.2f} s.")
        stage.check(
            "every record was acknowledged, in the partition that its key says",
            holds=counts == {number: len(records) for number, records in self._by_partition.items()},
            detail=f"acknowledged: {counts}",
        )

    def _consume(self) -> None:
        self._stage.step("Consume")
        self._stage.say("From the beginning, all partitions side by side.")
        self._read_and_check("read back")

    def _read_and_check(self, what: str) -> None:
        stage = self._stage
        began = time.perf_counter()
        with stage.progress("consuming", len(self._records)) as on_progress:
            read = run_interruptible(client_work.consume, self._bootstrap, TOPIC, on_progress)
        took_s = time.perf_counter() - began
        count = sum(map(len, read.values()))
        stage.check(
            f"{count:,} records {what} in {took_s:.2f} s: none lost, none twice",
            holds=count == len(self._records),
            detail=f"{len(self._records):,} were produced",
        )
        wrong = keys_out_of_order(read)
        stage.check("every zone's history is in one partition and in order", holds=not wrong, detail=", ".join(wrong))
        checksums = {number: checksum(records) for number, records in read.items()}
        stage.check(
            f"what came back has the SHA-256 of what was sent ({checksums[0][:10]}... for partition 0)",
            holds=checksums == self._checksums,
            detail=f"{checksums} and not {self._checksums}",
        )

    def _look_at_disk(self) -> None:
        stage = self._stage
        stage.step("On disk")
        stage.say(
            "Kafka's own format, byte for byte. A log is a chain of segments, each named by its first offset. Beside "
            "each stand two sparse indexes, an entry about every 4 kB: from offset to byte, from time to offset. "
            "Their entries are counted here."
        )
        rows, problems, records_count = [], [], 0
        sample = ""
        for number in range(PARTITIONS):
            lines = self._dump(self._data_dir / f"{TOPIC}-{number}")
            segments, damaged = segments_of(lines)
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
        columns = ("partition", "segment", "records", "size", "index", "time index")
        stage.table(columns, rows)
        stage.say(f"One entry of an index: {sample}. With --keep the files stay, and `odradek log dump` shows all.")
        stage.check(
            "`odradek log dump` finds every record in the segments, and nothing damaged",
            holds=not problems and records_count == len(self._records),
            detail=f"{records_count:,} records, {len(problems)} problems {problems[:1]}",
        )

    def _dump(self, directory: Path) -> list[str]:
        """Return the lines of `odradek log dump --json`, a command that the storage plugin brings."""
        from .. import main

        said = io.StringIO()
        with redirect_stdout(said):
            main(["log", "dump", "--json", str(directory)])
        return said.getvalue().splitlines()

    def _ask_by_time(self) -> None:
        stage = self._stage
        stage.step("A question of time")
        stage.say(
            "In 2007, the United States began summer time three weeks earlier than before. Which clocks were changed "
            f"first, from {moment_text(QUESTION_AT)} on? The broker finds the offset for a time by its time index; "
            "then one record of each partition is enough:"
        )
        found = run_interruptible(client_work.look_up, self._bootstrap, TOPIC, QUESTION_AT * MILLISECONDS)
        rows = []
        for number, (offset, record) in found.items():
            change = record.change
            clocks = f"{change['before']} to {change['after']}"
            rows.append((number, offset, change["at"][11:], change["zone"], clocks))
        stage.table(("partition", "offset", moment_text(QUESTION_AT)[:10], "zone", "clocks"), rows)
        got = first_at_or_after([record for _offset, record in found.values()], QUESTION_AT * MILLISECONDS)
        expected = first_at_or_after(self._records, QUESTION_AT * MILLISECONDS)
        if got is not None:
            others = sum(record.timestamp == got.timestamp for record in self._records) - 1
            stage.say(
                f"The first: [bold]{got.change['zone']}[/], at {got.change['at']}, {got.change['before']} to "
                f"{got.change['after']}, and {plural(others, 'zone')} more at the same moment."
            )
        stage.check(
            "the data set, searched from one end to the other, names the same moment",
            holds=got is not None and expected is not None and got.timestamp == expected.timestamp,
            detail=f"{got} and {expected}",
        )

    def _kill(self) -> None:
        stage = self._stage
        stage.step("kill -9")
        killed = self._broker.process_id
        self._broker.kill()
        began = time.perf_counter()
        self._bootstrap = self._broker.start()
        took_s = time.perf_counter() - began
        stage.say(
            f"The broker (pid {killed}) was killed where it stood. A new one took the directory, checked what was "
            f"there, and serves on {self._bootstrap} after {took_s:.2f} s. What was acknowledged must still be there:"
        )
        self._read_and_check("read back after the crash")

    def _end(self, took_s: float) -> None:
        stage = self._stage
        failed = stage.failed_checks
        if failed:
            stage.close(f"[bold]{len(failed)} of {stage.checks_count} checks failed[/] after {took_s:.1f} s.")
            return
        stage.close(
            f"[bold]All {stage.checks_count} checks hold[/], after {took_s:.1f} s. What now?\n\n"
            "  odradek serve             a broker for any Kafka client\n"
            "  odradek topics --help     and produce, consume, configs, perf, log\n"
            "  odradek config describe   every setting, explained"
        )


def run_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
    """Run the demo in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
    """
    folder = Path(tempfile.mkdtemp(prefix="odradek-demo-"))
    try:
        Story(stage, folder, now_s).tell()
    finally:
        if keeps_files:
            stage.say(f"The files stay in {folder}.")
        else:
            shutil.rmtree(folder, ignore_errors=True)
