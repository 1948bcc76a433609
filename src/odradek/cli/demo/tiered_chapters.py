"""Shell: the chapters about tiered storage: segments move, are read where they are, compacted, and deleted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ..output import plural, size_text
from ..running import run_interruptible
from . import client_work, tiered_work
from .data import DemoRecord, checksum, record_of
from .log_chapters import CONFIGS, MILLISECONDS, QUESTION_AT, read_changes
from .zones import moment_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tiered_scene import PlacedSegment, TieredScene

TOPIC: Final = "clock-changes"
COMPACTED_TOPIC: Final = "clocks-now"
LAST_KEY: Final = b"the end of the list"
ONLY_NEWEST_LOCAL: Final = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
COLUMNS: Final = ("from offset", "records", "size", "where")
LATE_COUNT: Final = 3_000
"""How many records come while the others move."""
POLLS_MAX: Final = 600


def start(scene: TieredScene) -> None:
    """Start a broker that knows a store."""
    stage = scene.stage
    stage.step("A broker with an object store")
    scene.records = [record_of(transition) for transition in read_changes(scene.now_s)]
    took_s = scene.start_broker()
    is_folder = scene.store_url.startswith("file:")
    stage.say(
        f"It serves on [bold]{scene.bootstrap}[/] after {took_s:.2f} s, its data in {scene.data_dir}. Its object "
        f"store is {scene.store_url}"
        + (", a folder that stands for a bucket; `--store s3://bucket/prefix` takes a real one." if is_folder else ".")
    )


def produce(scene: TieredScene) -> None:
    """Fill a topic that is not tiered yet."""
    stage = scene.stage
    stage.step("Before: everything on disk")
    run_interruptible(client_work.create_topic, scene.bootstrap, TOPIC, 1, CONFIGS)
    first = scene.records[:-LATE_COUNT]
    with stage.progress("producing", len(first)) as on_progress:
        run_interruptible(client_work.produce, scene.bootstrap, TOPIC, first, on_progress)
    stage.say(
        f"Of all changes of the world's clocks, {len(scene.records):,} records, the first {len(first):,}, in a topic "
        "of one partition. Its log is a chain of segments; the last one grows:"
    )
    _show_segments(scene, scene.local_segments(TOPIC))


def move(scene: TieredScene) -> None:
    """Make the living topic a tiered one."""
    stage = scene.stage
    stage.step("After: only the newest segment on disk")
    stage.say(
        "Now the topic, while it is served, gets [bold]remote.storage.enable=true[/] and "
        f"[bold]local.retention.bytes=1[/], and the other {LATE_COUNT:,} records, which begin a new segment. Closed "
        "ones are sent to the store, read back and compared; once a manifest there names them, they leave this disk:"
    )
    before = scene.local_segments(TOPIC)
    began = time.perf_counter()
    run_interruptible(tiered_work.alter_topic, scene.bootstrap, TOPIC, ONLY_NEWEST_LOCAL)
    late = scene.records[-LATE_COUNT:]
    run_interruptible(client_work.produce, scene.bootstrap, TOPIC, late, lambda _count: None)
    active = len(scene.records) - LATE_COUNT
    with stage.progress("moving", active) as on_progress:
        is_moved = run_interruptible(tiered_work.wait_until_local, scene.bootstrap, TOPIC, active, on_progress)
    took_s = time.perf_counter() - began
    remote, local = _counted(scene.remote_segments(TOPIC), before), scene.local_segments(TOPIC)
    _show_segments(scene, [*remote, *local])
    first_local, last_remote = run_interruptible(tiered_work.border, scene.bootstrap, TOPIC)
    stage.say(
        f"After {took_s:.2f} s the broker tells clients (ListOffsets, as Kafka does): earliest-local {first_local:,}, "
        f"latest-tiered {last_remote:,}. A few small files stay beside the log, so that a start asks no store."
    )
    stage.check(
        f"{plural(len(before), 'segment')} moved, each as long as it was",
        holds=is_moved and [each[:2] for each in remote] == [each[:2] for each in before],
        detail=f"from {_bases(before)} to {_bases(remote)}",
    )
    stage.check("only the newest is on this disk", holds=_bases(local) == [active], detail=f"there are {_bases(local)}")
    report = scene.verified()
    stage.check(
        f"`odradek tiered verify` reads {size_text(report['bytes_read'])} in the store, and every checksum is right",
        holds=report["is_sound"],
        detail=f"{report['findings']}",
    )


def read_all(scene: TieredScene) -> None:
    """Read everything from offset 0, and one record by its time."""
    stage = scene.stage
    stage.step("A client reads from offset 0")
    stage.say("It asks as it always did. What is far is got in ranges, ahead of the reader, and kept for a while:")
    for what in ("from the store and the disk", "again, from the cache"):
        began = time.perf_counter()
        with stage.progress("consuming", len(scene.records)) as on_progress:
            read = run_interruptible(tiered_work.consume, scene.bootstrap, TOPIC, on_progress)
        took_s = time.perf_counter() - began
        stage.check(
            f"{len(read):,} records in {took_s:.2f} s, {what}, with the SHA-256 of what was sent",
            holds=checksum(read) == checksum(scene.records),
            detail=f"{len(read):,} of {len(scene.records):,} records",
        )
    found = run_interruptible(client_work.look_up, scene.bootstrap, TOPIC, QUESTION_AT * MILLISECONDS)
    expected = next(number for number, each in enumerate(scene.records) if each.timestamp >= QUESTION_AT * MILLISECONDS)
    offset, record = found.get(0, (-1, DemoRecord(b"", b"", -1)))
    stage.check(
        f"the first record at or after {moment_text(QUESTION_AT)} is found by the time index in the store: {offset:,}",
        holds=(offset, record) == (expected, scene.records[expected]),
        detail=f"{expected:,} was expected",
    )


def compact(scene: TieredScene) -> None:
    """Compact a tiered topic in the store."""
    stage = scene.stage
    stage.step("A compacted topic, in the store too")
    _fill_compacted(scene)
    before = scene.remote_segments(COMPACTED_TOPIC)
    stage.say(f"The same records in a topic of their own, {COMPACTED_TOPIC}, all of it in the store but the end:")
    _show_segments(scene, [*before, *scene.local_segments(COMPACTED_TOPIC)])
    stage.say("Now it gets [bold]cleanup.policy=compact[/]: of each zone, the key, only the newest change is to stay.")
    began = time.perf_counter()
    changes = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    run_interruptible(tiered_work.alter_topic, scene.bootstrap, COMPACTED_TOPIC, changes)
    newest = {record.key: record for record in scene.records}
    after = before
    for _ in range(POLLS_MAX):
        after = scene.remote_segments(COMPACTED_TOPIC)
        if not {each.object_name for each in before} & {each.object_name for each in after}:
            break
        time.sleep(tiered_work.PAUSE_S)
    took_s = time.perf_counter() - began
    _show_segments(scene, [*after, *scene.local_segments(COMPACTED_TOPIC)])
    sizes = [sum(each.size_bytes for each in segments) for segments in (before, after)]
    stage.say(
        f"{size_text(sizes[0])} became {size_text(sizes[1])} in {took_s:.2f} s: segments were got, rewritten by a "
        "process beside the broker, sent, and swapped in the manifest. Offsets stay what they were."
    )
    with stage.progress("consuming", len(newest) + 1) as on_progress:
        read = run_interruptible(tiered_work.consume, scene.bootstrap, COMPACTED_TOPIC, on_progress)
    stage.check(
        f"{len(read):,} of {len(scene.records) + 1:,} records are left: the newest of each of {len(newest):,} zones, "
        "and the last one written",
        holds=read == [*sorted(newest.values(), key=scene.records.index), _last_record(scene)],
        detail=f"{len(read):,} records",
    )


def _fill_compacted(scene: TieredScene) -> None:
    """Produce the data set into a topic whose segments move at once, and close the last of them."""
    configs = {**CONFIGS, **ONLY_NEWEST_LOCAL}
    run_interruptible(client_work.create_topic, scene.bootstrap, COMPACTED_TOPIC, 1, configs)
    with scene.stage.progress("producing", len(scene.records)) as on_progress:
        run_interruptible(client_work.produce, scene.bootstrap, COMPACTED_TOPIC, scene.records, on_progress)
    # The segment that grows is neither sent nor compacted: one more record begins a new one.
    run_interruptible(tiered_work.alter_topic, scene.bootstrap, COMPACTED_TOPIC, {"segment.ms": "1"})
    last = [_last_record(scene)]
    run_interruptible(client_work.produce, scene.bootstrap, COMPACTED_TOPIC, last, lambda _count: None)
    end = len(scene.records)
    with scene.stage.progress("moving", end) as on_progress:
        run_interruptible(tiered_work.wait_until_local, scene.bootstrap, COMPACTED_TOPIC, end, on_progress)


def _last_record(scene: TieredScene) -> DemoRecord:
    return DemoRecord(LAST_KEY, b"{}", scene.records[-1].timestamp + MILLISECONDS)


def delete(scene: TieredScene) -> None:
    """Delete the topics, and see that the store is emptied."""
    stage = scene.stage
    stage.step("Gone is gone")
    for topic in (TOPIC, COMPACTED_TOPIC):
        run_interruptible(tiered_work.delete_topic, scene.bootstrap, topic)
    left: list[object] = []
    for _ in range(POLLS_MAX):
        left = scene.verified("--sizes-only")["partitions"]
        if not left:
            break
        time.sleep(tiered_work.PAUSE_S)
    stage.say("Both topics are deleted, and with them what they have in the store.")
    stage.check("`odradek tiered verify` finds no segment there any more", holds=not left, detail=f"{left}")


def _bases(segments: Sequence[PlacedSegment]) -> list[int]:
    return [each.base_offset for each in segments]


def _counted(segments: Sequence[PlacedSegment], known: Sequence[PlacedSegment]) -> list[PlacedSegment]:
    """Return segments in the store with the counts of records that they had when they were on disk."""
    counts = {each.base_offset: each.records_count for each in known}
    return [each._replace(records_count=counts.get(each.base_offset, -1)) for each in segments]


def _show_segments(scene: TieredScene, segments: Sequence[PlacedSegment]) -> None:
    rows = [
        (
            each.base_offset,
            f"{each.records_count:,}" if each.records_count >= 0 else "",
            size_text(each.size_bytes),
            f"store  .../{each.object_name.rpartition('/')[2]}" if each.is_remote else "disk",
        )
        for each in segments
    ]
    scene.stage.table(COLUMNS, rows)
