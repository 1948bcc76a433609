"""Readers beside a broker that compacts, tiers, expires, deletes: no gap, no repeat, nothing hidden, at any point."""

from __future__ import annotations

import functools
import itertools
import pickle
import random
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from odradek.kernel.records.compression import CompressionType
from odradek.spark_plugin.direct import DirectSettings

from .log_kit import (
    Log,
    Row,
    Tier,
    compact,
    make_log,
    plan,
    read_pieces,
    replacement_steps,
    settings_for,
    sources_for,
    write_data_dir,
    write_segment,
)
from .steps import SteppingFiles, SteppingStore, Steps

CODECS = (CompressionType.NONE, CompressionType.SNAPPY)


@attrs.define
class Scene:
    """A log, where it lies, and what happens to it.

    Attributes:
        log: As it is now.
        settings: Where readers look.
        tier: Its tier.
        change: What happens, step by step.
        after: The log when it has happened: every row of it has to be read.
    """

    log: Log
    settings: DirectSettings
    tier: Tier
    change: Iterator[object]
    after: Log


def a_log(seed: int, segments_count: int = 4, *, is_stable: bool = False) -> Log:
    """Return a log with aborted transactions, of which all but the last segment is decided, or everything is."""
    made: Log = pickle.loads(_pickled_log(seed, segments_count, is_stable))
    return made


@functools.cache
def _pickled_log(seed: int, segments_count: int, is_stable: bool) -> bytes:
    for attempt in itertools.count():
        log = make_log(random.Random(seed * 1000 + attempt), 18, segments_count=segments_count, codecs=CODECS)
        is_mixed = any(batch.is_aborted for batch in log.batches[:9])
        is_long = len(log.segments[-1].batches) > 3
        is_decided = log.end_of(segments_count - 2) <= log.last_stable_offset
        if is_mixed and is_long and is_decided and is_stable == (log.last_stable_offset == log.end_offset):
            for segment in log.segments:
                assert segment.data, "made once"
            return pickle.dumps(log)
    raise AssertionError


def compaction(directory: Path, log: Log, seed: int) -> tuple[Iterator[object], Log]:
    """Return the steps by which two segments are replaced by a compacted one, and the log after that."""
    choose = random.Random(seed)
    made = compact(log, 1, 3, choose, drops_aborted=bool(seed % 2))
    after = attrs.evolve(log, segments=[log.segments[0], made, *log.segments[3:]])

    def steps() -> Iterator[object]:
        yield "write"
        write_segment(directory, log, made, mark=".swap")
        yield from replacement_steps(directory, log.segments[1:3])
        log.segments = after.segments

    return steps(), after


def a_compaction_on_the_disk(tmp_path: Path, seed: int) -> Scene:
    log = a_log(seed)
    directory = write_data_dir(tmp_path / "data", log)
    change, after = compaction(directory, log, seed)
    return Scene(log, settings_for(tmp_path / "data"), Tier(log), change, after)


def segments_that_leave_for_the_store(tmp_path: Path, seed: int) -> Scene:
    log = a_log(seed)
    directory = write_data_dir(tmp_path / "data", log)
    tier = Tier(log)
    tier.send([0])

    def steps() -> Iterator[object]:
        yield "send"
        tier.send([1, 2])
        for segment in log.segments[:3]:
            for path in sorted(directory.glob(f"{segment.base_offset:020d}.*")):
                yield f"delete {path.name}"
                path.rename(path.with_name(path.name + ".deleted"))

    return Scene(log, settings_for(tmp_path / "data", has_store=True), tier, steps(), log)


def segments_that_expire(tmp_path: Path, seed: int) -> Scene:
    log = a_log(seed)
    directory = write_data_dir(tmp_path / "data", log)

    def steps() -> Iterator[object]:
        for segment in log.segments[:3]:
            for path in sorted(directory.glob(f"{segment.base_offset:020d}.*")):
                yield f"delete {path.name}"
                path.unlink()

    # The broker in these tests has them still: which offsets it is asked for is what is looked at.
    return Scene(log, settings_for(tmp_path / "data"), Tier(log), steps(), log)


def a_topic_made_anew(tmp_path: Path, seed: int) -> Scene:
    log = a_log(seed)
    other = a_log(seed + 1)
    directory = write_data_dir(tmp_path / "data", log)

    def steps() -> Iterator[object]:
        yield "rename"
        directory.rename(directory.with_name(f"{directory.name}.{uuid.UUID(int=9).hex}-delete"))
        yield "make"
        made = write_data_dir(tmp_path / "other", other, topic_id=uuid.UUID(int=99 << 64))
        directory.mkdir()
        shutil.copy(made / "partition.metadata", directory)
        for path in sorted(made.glob("*.*")):
            yield f"make {path.name}"
            shutil.copy(path, directory)

    return Scene(log, settings_for(tmp_path / "data"), Tier(log), steps(), log)


def objects_that_are_rewritten(tmp_path: Path, seed: int) -> Scene:
    log = a_log(seed)
    tier = Tier(log)
    tier.send([0, 1, 2])
    change, after = rewriting(log, tier, seed)
    return Scene(log, settings_for(has_store=True), tier, change, after)


def rewriting(log: Log, tier: Tier, seed: int) -> tuple[Iterator[object], Log]:
    """Return the steps by which two cold segments are replaced by a compacted one, and the log after that."""
    count = min(len(tier.stored), 3)
    first = max(count - 2, 0)
    made = compact(log, first, count, random.Random(seed), drops_aborted=bool(seed % 2))
    after = attrs.evolve(log, segments=[*log.segments[:first], made, *log.segments[count:]])

    def steps() -> Iterator[object]:
        yield "upload"
        stored = tier.upload(made, log.end_of(count - 1))
        yield "manifest"
        old = [tier.name_of(number, kind) for number in range(first, count) for kind in tier.stored[number].files]
        tier.stored[first:count] = [stored]
        tier.put_manifest()
        log.segments = after.segments
        for name in old:
            yield f"delete {name}"
            tier.store.delete(name)

    return steps(), after


def objects_that_expire(tmp_path: Path, seed: int) -> Scene:
    log = a_log(seed)
    tier = Tier(log)
    tier.send([0, 1, 2])

    def steps() -> Iterator[object]:
        yield "manifest"
        gone = [tier.name_of(0, kind) for kind in tier.stored[0].files]
        del tier.stored[0]
        tier.put_manifest()
        for name in gone:
            yield f"delete {name}"
            tier.store.delete(name)

    return Scene(log, settings_for(has_store=True), tier, steps(), log)


def a_segment_that_grows_is_closed_and_compacted(tmp_path: Path, seed: int) -> Scene:
    log = a_log(seed, 2, is_stable=True)
    directory = write_data_dir(tmp_path / "data", log)
    made = compact(log, 1, 2, random.Random(seed), drops_aborted=False)
    after = attrs.evolve(log, segments=[log.segments[0], made])

    def steps() -> Iterator[object]:
        yield "trim"
        write_segment(directory, log, log.segments[1])
        yield "swap"
        write_segment(directory, log, made, mark=".swap")
        yield from replacement_steps(directory, log.segments[1:2])
        log.segments = after.segments

    return Scene(log, settings_for(tmp_path / "data"), Tier(log), steps(), after)


SCENES = (
    a_compaction_on_the_disk,
    segments_that_leave_for_the_store,
    segments_that_expire,
    a_topic_made_anew,
    objects_that_are_rewritten,
    objects_that_expire,
    a_segment_that_grows_is_closed_and_compacted,
)


@pytest.mark.parametrize("is_read_committed", [True, False], ids=["committed", "uncommitted"])
@pytest.mark.parametrize("make_scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_moves_while_it_is_planned_and_read_is_read_once(
    make_scene: Callable[[Path, int], Scene], *, is_read_committed: bool, tmp_path: Path
) -> None:
    _try_every_point(make_scene, tmp_path, 1, is_read_committed=is_read_committed, at_once=True)


@pytest.mark.parametrize("make_scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_moves_step_by_step_while_it_is_planned_and_read_is_read_once(
    make_scene: Callable[[Path, int], Scene], tmp_path: Path
) -> None:
    _try_every_point(make_scene, tmp_path, 2, is_read_committed=True, at_once=False)


@pytest.mark.parametrize("make_scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_broker_that_stands_still_in_the_middle_costs_no_row(
    make_scene: Callable[[Path, int], Scene], tmp_path: Path
) -> None:
    for count in itertools.count():
        place = tmp_path / str(count)
        place.mkdir()
        scene = make_scene(place, 1)
        end = scene.log.last_stable_offset
        before = scene.log.rows(0, end, is_read_committed=True)
        needed = scene.after.rows(0, end, is_read_committed=True)
        taken = len(list(itertools.islice(scene.change, count)))
        read = _read(scene, Steps(iter(()), 1, at_once=False), end, is_read_committed=True)

        assert [row.offset for row in read] == sorted({row.offset for row in read}), "rising, without a repeat"
        assert set(needed) <= set(read) <= set(before)
        if taken < count:
            return


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(3, 23))
@pytest.mark.parametrize("make_scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_moves_in_many_logs_is_read_once(
    make_scene: Callable[[Path, int], Scene], seed: int, tmp_path: Path
) -> None:
    for at_once in (True, False):
        _try_every_point(make_scene, tmp_path, seed, is_read_committed=seed % 3 > 0, at_once=at_once)


def _try_every_point(
    make_scene: Callable[[Path, int], Scene], tmp_path: Path, seed: int, *, is_read_committed: bool, at_once: bool
) -> None:
    for begin_at in itertools.count(1):
        place = tmp_path / f"{at_once}-{begin_at}"
        place.mkdir()
        scene = make_scene(place, seed)
        end = scene.log.last_stable_offset
        before = scene.log.rows(0, end, is_read_committed=is_read_committed)
        needed = scene.after.rows(0, end, is_read_committed=is_read_committed)
        steps = Steps(scene.change, begin_at, at_once=at_once)
        read = _read(scene, steps, end, is_read_committed=is_read_committed)

        assert [row.offset for row in read] == sorted({row.offset for row in read}), "rising, without a repeat"
        assert set(read) <= set(before), "nothing that is hidden, or another topic's"
        assert set(needed) <= set(read), "no gap"
        shutil.rmtree(place)
        if steps.operations < begin_at:
            return


def _read(scene: Scene, steps: Steps, end: int, *, is_read_committed: bool) -> list[Row]:
    files, store = SteppingFiles(steps), SteppingStore(scene.tier.store, steps)
    sources, _ = sources_for(scene.settings, store, files=files)
    pieces = plan(sources, scene.log, 0, end, is_read_committed=is_read_committed)
    return list(read_pieces(pieces, scene.log, store, files=files, is_read_committed=is_read_committed))
