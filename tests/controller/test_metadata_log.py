"""The metadata log on real storage: durable before answered, whole after a crash, shortened by snapshots."""

from __future__ import annotations

import random
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.storage_context import StorageContext
from odradek.kernel.controller.local_log import LocalLog
from odradek.kernel.controller.metadata_log import STEPS_PER_SLICE, MetadataLog
from odradek.kernel.controller.snapshots import (
    SnapshotId,
    SnapshotQuorum,
    SnapshotSettings,
    SnapshotStore,
    newest_snapshot_end,
    newest_snapshot_epoch,
)
from odradek.kernel.errors import ConfigError, CorruptionError, ErrorCode, KafkaError, StorageError
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.features import METADATA_VERSION_ELR, METADATA_VERSION_MAX
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.metadata.record_makers import image_records
from odradek.kernel.metadata.records import FORMAT_VERSION, ConfigRecord, FormatRecord, encode_record, is_newer
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID, TopicIdPartition
from odradek.kernel.wire.errors import EncodeError
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.faults import FaultyFiles, PowerLoss

from .controller_requests import create_topics, delete_topics, topic, update_features
from .metadata_helpers import CLUSTER_ID, context_of, make_rules, registration

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator
    from pathlib import Path

    from odradek.kernel.contracts.storage import PartitionLog
    from odradek.kernel.machine.files import Files

PARTITION = TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0)
LOG_CONFIG = LogConfig(segment_bytes=1 << 20)


class Storage:
    """A storage engine on a directory, as a starting broker makes it."""

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        directory.mkdir(exist_ok=True)
        clock = ManualClock()
        self.files = files or OsFiles()
        self.engine = SegmentEngine(
            StorageContext(
                log_dirs=[str(directory)],
                node_id=1,
                cluster_id=CLUSTER_ID,
                settings={},
                now_ms=clock.now_ms,
                monotonic_ms=clock.monotonic_ms,
                random=random.Random(1),
                new_id=RandomIds(random.Random(1)).new_id,
                files=self.files,
                threads=SystemThreads(),
            )
        )
        self.engine.start()
        self.log = self.engine.open_log(
            PARTITION, LOG_CONFIG, known_end=lambda directory: newest_snapshot_end(directory, self.files)
        )

    def close(self) -> None:
        self.engine.close({})


def local_log(log: PartitionLog, kind: type[LocalLog] = LocalLog) -> LocalLog:
    """The metadata partition with broker 1 as its only voter."""
    epoch = -1 if log.directory is None else newest_snapshot_epoch(log.directory, OsFiles())
    election = IsrElectionFactory().new_election(context_of(log))
    return kind(log, election, 1, worker=Workers(SystemThreads(), 1), snapshot_epoch=epoch)


def make_metadata(
    storage: Storage, *, clock: ManualClock | None = None, bytes_between: int = 1 << 20, **settings: str
) -> MetadataLog:
    return MetadataLog(
        log=local_log(storage.log),
        rules=make_rules(1, **settings),
        clock=clock or ManualClock(),
        files=storage.files,
        cluster_id=CLUSTER_ID,
        worker=Workers(SystemThreads(), 1),
        snapshots=SnapshotSettings(bytes_between=bytes_between, interval_ms=1000),
    )


@asynccontextmanager
async def running(metadata: MetadataLog) -> AsyncIterator[MetadataLog]:
    metadata.load()
    async with trio.open_nursery() as nursery:
        await nursery.start(metadata.run)
        await metadata.register(registration())
        yield metadata
        await metadata.close()


async def create(metadata: MetadataLog, *names: str) -> None:
    request = create_topics(*(topic(name, 2) for name in names))
    response = await metadata.submit(lambda controller, _: controller.decide(request))
    assert [0] * len(names) == [result.error_code for result in response.topics]


async def write_snapshot(metadata: MetadataLog) -> None:
    await metadata._upkeep.write(metadata.image)


async def add_broker(metadata: MetadataLog, broker_id: int) -> None:
    epoch = await metadata.submit(lambda controller, _: controller.register_broker(registration(broker_id)))
    await metadata.submit(lambda controller, _: controller.change_broker(broker_id, epoch, fence=False))


def content(image: MetadataImage) -> list[bytes]:
    return [encode_record(record, METADATA_VERSION_MAX) for record in image_records(image)]


async def write_some(directory: Path, *names: str, **options: Any) -> MetadataImage:
    storage = Storage(directory)
    async with running(make_metadata(storage, **options)) as metadata:
        for name in names:
            await create(metadata, name)
        image = metadata.image
    storage.close()
    return image


def read_again(directory: Path) -> MetadataImage:
    storage = Storage(directory)
    try:
        return make_metadata(storage).load()
    finally:
        storage.close()


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    before = trio.run(write_some, tmp_path / "d", "a", "b")

    assert content(before) == content(read_again(tmp_path / "d"))


def test_a_copy_of_the_disk_at_the_moment_of_an_answer_holds_what_was_answered(tmp_path: Path) -> None:
    async def main() -> None:
        storage = Storage(tmp_path / "d")
        async with running(make_metadata(storage)) as metadata:
            for number in range(3):
                await create(metadata, f"t{number}")
                crashed = tmp_path / f"crash{number}"
                shutil.copytree(tmp_path / "d", crashed)

                assert metadata.image.topics_by_name.keys() == read_again(crashed).topics_by_name.keys()
        storage.close()

    trio.run(main)


def test_a_torn_tail_takes_the_whole_operation_with_it(tmp_path: Path) -> None:
    async def main() -> None:
        storage = Storage(tmp_path / "d")
        async with running(make_metadata(storage)) as metadata:
            await create(metadata, "whole")
            await create(metadata, "torn")
            shutil.copytree(tmp_path / "d", tmp_path / "crash")
        storage.close()

    trio.run(main)
    (segment,) = (tmp_path / "crash" / "__cluster_metadata-0").glob("*.log")
    with segment.open("r+b") as file:
        file.truncate(len(segment.read_bytes().rstrip(b"\0")) - 3)

    assert list(read_again(tmp_path / "crash").topics_by_name) == ["whole"]


def test_many_operations_share_a_flush(tmp_path: Path) -> None:
    flushes = 0

    class CountingLog(LocalLog):
        async def commit(self) -> None:
            nonlocal flushes
            flushes += 1
            await super().commit()

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        metadata = make_metadata(storage)
        metadata._log = local_log(storage.log, CountingLog)
        async with running(metadata):
            before = flushes
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(create, metadata, f"t{number}")

            assert len(metadata.image.topics_by_name) == 50
            assert flushes - before < 10
            assert len(list(storage.log.batches(0))) == flushes, "nothing sound stands behind a torn flush"
        storage.close()

    trio.run(main)


def test_elections_are_counted_and_timed_and_so_is_the_wait_of_every_operation(tmp_path: Path) -> None:
    clock = ManualClock()

    class SlowLog(LocalLog):
        async def commit(self) -> None:
            clock.advance(8)
            await super().commit()

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        metadata = make_metadata(storage, clock=clock)
        metadata._log = local_log(storage.log, SlowLog)
        was_active = metadata.is_active
        async with running(metadata):
            for broker_id in (2, 3):
                await add_broker(metadata, broker_id)
            request = create_topics(topic("t", -1, -1, {0: [2, 3]}), topic("alone", -1, -1, {0: [2]}))
            await metadata.submit(lambda controller, _: controller.decide(request))
            before = (metadata.election_ms.count, metadata.partition_counts.offline)
            waited_count = metadata.queue_ms.count
            epoch = metadata.image.brokers[2].broker_epoch
            await metadata.submit(lambda controller, _: controller.change_broker(2, epoch, fence=True))

            assert before == (0, 0)
            assert (metadata.partition_counts.elections, metadata.partition_counts.offline) == (1, 1)
            assert (metadata.election_ms.count, metadata.election_ms.max) == (1, 8)
            assert (metadata.queue_ms.count, metadata.queue_ms.max) == (waited_count + 1, 0)
        storage.close()
        assert (was_active, metadata.is_active) == (True, False)

    trio.run(main)


def test_an_operation_that_comes_behind_a_long_one_has_waited(tmp_path: Path) -> None:
    clock = ManualClock()

    def long(_controller: object, _now_ms: int) -> CoordinatorResult[Any, None]:
        clock.advance(5)
        return CoordinatorResult([], None)

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        async with running(make_metadata(storage, clock=clock)) as metadata, trio.open_nursery() as nursery:
            nursery.start_soon(metadata.submit, long)
            nursery.start_soon(metadata.submit, long)
        storage.close()

        assert metadata.queue_ms.max == 5

    trio.run(main)


def test_what_a_start_finds_is_counted(tmp_path: Path) -> None:
    trio.run(write_some, tmp_path / "d", "a", "b")
    storage = Storage(tmp_path / "d")
    metadata = make_metadata(storage)
    metadata.load()
    storage.close()

    assert metadata.partition_counts.at_min_isr == 4


def test_listeners_hear_of_every_image_before_the_answer_is_given(tmp_path: Path) -> None:
    heard: list[tuple[int, list[str]]] = []

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        metadata = make_metadata(storage)
        async with running(metadata):
            metadata.add_listener(
                lambda delta, image: heard.append((len(delta.created_topics), sorted(image.topics_by_name)))
            )
            await create(metadata, "a")

            assert heard == [(1, ["a"])]
        storage.close()

    trio.run(main)


def test_a_snapshot_and_the_tail_give_what_the_whole_log_gives(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(30)]
    image = trio.run(lambda: write_some(tmp_path / "d", *names, bytes_between=600))
    directory = tmp_path / "d" / "__cluster_metadata-0"

    assert len(list(directory.glob("*.checkpoint"))) == 2
    assert min(int(path.name[:20]) for path in directory.glob("*.log")) > 0
    assert content(image) == content(read_again(tmp_path / "d"))


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    image = trio.run(lambda: write_some(tmp_path / "d", *"abcdefgh", bytes_between=300))
    newest = max((tmp_path / "d" / "__cluster_metadata-0").glob("*.checkpoint"))
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)

    assert content(image) == content(read_again(tmp_path / "d"))


def test_without_any_snapshot_a_shortened_log_is_refused(tmp_path: Path) -> None:
    trio.run(lambda: write_some(tmp_path / "d", *"abcdefgh", bytes_between=300))
    for path in (tmp_path / "d" / "__cluster_metadata-0").glob("*.checkpoint"):
        path.unlink()

    with pytest.raises(StorageError, match="no snapshot reaches that far"):
        read_again(tmp_path / "d")


def test_a_snapshot_is_written_when_the_interval_is_over_and_something_changed(tmp_path: Path) -> None:
    clock = ManualClock()

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        async with running(make_metadata(storage, clock=clock)) as metadata:
            clock.advance(5000)
            await create(metadata, "a")
            await create(metadata, "b")
            clock.advance(5000)
            for _ in range(2):
                await metadata.submit(lambda controller, _: controller.decide(delete_topics("none")))
                clock.advance(5000)
        storage.close()

    trio.run(main)
    found = list((tmp_path / "d" / "__cluster_metadata-0").glob("*.checkpoint"))

    assert len(found) == 2


def test_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "d")
    log = local_log(storage.log)
    newer = FormatRecord(format_version=FORMAT_VERSION + 1, cluster_id=CLUSTER_ID)
    run_at_once(log.append_in_steps([encode_record(newer, METADATA_VERSION_MAX)], 0))
    storage.close()

    with pytest.raises(StorageError, match="start the newer version"):
        read_again(tmp_path / "d")


LOWER = update_features(("eligible.leader.replicas.version", 0, 2), ("metadata.version", METADATA_VERSION_ELR - 1, 2))


async def lower(metadata: MetadataLog) -> None:
    answer = await metadata.submit(lambda controller, _: controller.decide(LOWER))
    assert answer.error_code == 0


def check_an_older_build_reads_all(directory: Path, topics: set[str]) -> None:
    """See that nothing of a higher level is in the log or in a snapshot, and that the log's epochs go on."""
    storage = Storage(directory)
    assert storage.log.directory is not None
    store = SnapshotStore(directory=storage.log.directory, files=storage.files)
    (snapshot,) = store.ids()
    log = local_log(storage.log)
    level = METADATA_VERSION_ELR - 1
    assert log.start_offset == snapshot.end_offset
    assert not [record for record in log.records(log.start_offset) if is_newer(record.value, level)]
    assert not store.holds_newer(level)
    older = make_metadata(storage, odradek_metadata_version_max=str(level))
    assert older.load().topics_by_name.keys() == topics
    assert older.leader_epoch > snapshot.epoch
    storage.close()


def without_its_lock(source: Path, directory: Path) -> Path:
    """Copy a data directory as a crash at this moment would leave it."""
    shutil.copytree(source, directory)
    (directory / ".lock").unlink()
    return directory


@pytest.mark.parametrize("snapshots_count", [0, 1, 2])
def test_when_a_level_is_lowered_nothing_of_before_is_there_when_it_is_answered(
    tmp_path: Path, snapshots_count: int
) -> None:
    async def main() -> None:
        async with running(make_metadata(Storage(tmp_path / "data"))) as metadata:
            for name in ("t", "u"):
                await create(metadata, name)
                if name == "t" or snapshots_count == 2:
                    for _ in range(min(snapshots_count, 1)):
                        await write_snapshot(metadata)
            await lower(metadata)
            without_its_lock(tmp_path / "data", tmp_path / "copy")
            await create(metadata, "v")

    trio.run(main)
    check_an_older_build_reads_all(tmp_path / "copy", {"t", "u"})


class NoDirectory(SnapshotStore):
    """A place for snapshots whose disk fails."""

    def write(self, image: MetadataImage, now_ms: int, quorum: SnapshotQuorum | None = None) -> SnapshotId:
        raise StorageError("the disk is full")


class NoCleanUp(SnapshotStore):
    """A place for snapshots where what is older cannot be removed, as when the process ends before it."""

    def drop_old(self, kept_count: int = 2) -> int:
        raise StorageError("the disk is full")


@pytest.mark.parametrize("failing", [NoDirectory, NoCleanUp])
def test_a_level_whose_snapshot_cannot_be_written_is_not_answered_and_made_good_at_the_next_start(
    tmp_path: Path, failing: type[SnapshotStore]
) -> None:
    directory, after = tmp_path / "data", tmp_path / "after"

    async def fail() -> None:
        storage = Storage(directory)
        metadata = make_metadata(storage)
        assert storage.log.directory is not None
        metadata.load()
        async with trio.open_nursery() as nursery:
            await nursery.start(metadata.run)
            await metadata.register(registration())
            await write_snapshot(metadata)
            await create(metadata, "t")
            await write_snapshot(metadata)
            metadata._upkeep.store = failing(directory=storage.log.directory, files=storage.files)
            with pytest.raises(KafkaError) as refused:
                await lower(metadata)
            assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    async def start_again() -> None:
        metadata = make_metadata(Storage(without_its_lock(directory, after)))
        metadata.load()
        async with trio.open_nursery() as nursery:
            await nursery.start(metadata.run)
            without_its_lock(after, tmp_path / "copy")
            await metadata.close()

    with pytest.RaisesGroup(pytest.RaisesExc(StorageError, match="the disk is full")):
        trio.run(fail)
    trio.run(start_again)
    check_an_older_build_reads_all(tmp_path / "copy", {"t"})


def test_a_build_that_does_not_support_the_level_does_not_start(tmp_path: Path) -> None:
    trio.run(write_some, tmp_path, "t")
    older = make_metadata(Storage(tmp_path), odradek_metadata_version_max=str(METADATA_VERSION_ELR - 1))

    with pytest.raises(StorageError, match=r"metadata\.version is finalized at level 30.*start the newer version"):
        older.load()


def test_a_log_without_its_format_is_damaged(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "d")
    run_at_once(
        local_log(storage.log).append_in_steps([encode_record(next(iter(_other_records())), METADATA_VERSION_MAX)], 0)
    )
    storage.close()

    with pytest.raises(CorruptionError, match="does not begin with its format"):
        read_again(tmp_path / "d")


def _other_records() -> Any:
    from odradek.kernel.metadata.records import NoOpRecord

    yield NoOpRecord()


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    trio.run(write_some, tmp_path / "d", "a")
    storage = Storage(tmp_path / "d")
    metadata = make_metadata(storage)
    metadata._cluster_id = "another"

    with pytest.raises(ConfigError, match="belongs to cluster"):
        metadata.load()
    storage.close()


def test_a_failing_disk_fails_every_waiting_operation(tmp_path: Path) -> None:
    class FailingLog(LocalLog):
        async def commit(self) -> None:
            raise StorageError("the disk is gone")

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        metadata = make_metadata(storage)
        metadata.load()
        metadata._log = local_log(storage.log, FailingLog)
        outcomes: list[str] = []

        async def ask() -> None:
            try:
                await metadata.submit(lambda controller, _: controller.format_log(CLUSTER_ID))
            except KafkaError as error:
                outcomes.append(error.code.name)

        async def run_with_waiting() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                nursery.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
                await nursery.start(metadata.run)

        with pytest.raises(ExceptionGroup) as caught:
            await run_with_waiting()
        storage.close()

        assert caught.group_contains(StorageError, match="the disk is gone")
        assert outcomes == ["KAFKA_STORAGE_ERROR"] * 2
        assert metadata.image.offset == -1
        with pytest.raises(KafkaError, match="closed"):
            await metadata.submit(lambda controller, _: controller.format_log(CLUSTER_ID))

    trio.run(main)


def test_clients_are_served_while_an_operation_is_long_and_see_the_image_of_before(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    async def watch(metadata: MetadataLog) -> None:
        while True:
            seen.append(sorted(metadata.image.topics_by_name))
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        async with running(make_metadata(storage)) as metadata, trio.open_nursery() as nursery:
            nursery.start_soon(watch, metadata)
            request = create_topics(topic("wide", 20 * STEPS_PER_SLICE))
            await metadata.submit(lambda controller, _: controller.decide(request))
            nursery.cancel_scope.cancel()
        storage.close()

    trio.run(main)

    assert seen.count([]) > 5 * 20, "placed, chosen, encoded, replayed, appended: a slice each"


def test_operations_that_wait_see_all_of_a_long_one(tmp_path: Path) -> None:
    async def main() -> None:
        storage = Storage(tmp_path / "d")
        async with running(make_metadata(storage)) as metadata, trio.open_nursery() as nursery:
            wide = create_topics(topic("wide", 20 * STEPS_PER_SLICE))
            nursery.start_soon(metadata.submit, lambda controller, _: controller.decide(wide))
            await trio.testing.wait_all_tasks_blocked(0)
            seen = await metadata.submit(
                lambda controller, _: CoordinatorResult((), len(controller.image.topics_by_name["wide"].partitions))
            )
            assert seen == 20 * STEPS_PER_SLICE
        storage.close()

    trio.run(main)


def test_what_is_committed_is_followed_to_its_end_though_the_broker_stops(tmp_path: Path) -> None:
    followed = 0

    def follow(_delta: object, _image: object) -> Generator[None, None, None]:
        nonlocal followed
        for _ in range(10 * STEPS_PER_SLICE):
            followed += 1
            yield

    async def main() -> None:
        storage = Storage(tmp_path / "d")
        metadata = make_metadata(storage)
        metadata.load()
        async with trio.open_nursery() as nursery:
            await nursery.start(metadata.run)
            await metadata.register(registration())
            metadata.add_listener(follow)
            nursery.start_soon(create, metadata, "a")
            while not 0 < followed < 10 * STEPS_PER_SLICE:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        storage.close()

    trio.run(main)

    assert followed == 10 * STEPS_PER_SLICE


def test_an_operation_that_raises_harms_nobody_else(tmp_path: Path) -> None:
    async def main() -> None:
        storage = Storage(tmp_path / "d")
        async with running(make_metadata(storage)) as metadata:
            with pytest.raises(ZeroDivisionError):
                await metadata.submit(lambda controller, now_ms: controller.format_log(str(1 // (now_ms * 0))))
            await create(metadata, "a")

            assert list(metadata.image.topics_by_name) == ["a"]
        storage.close()

    trio.run(main)


def test_a_cancelled_log_answers_nothing_that_is_not_durable(tmp_path: Path) -> None:
    async def main() -> None:
        storage = Storage(tmp_path / "d")
        metadata = make_metadata(storage)
        metadata.load()
        outcomes: list[str] = []

        async def ask() -> None:
            try:
                await metadata.submit(lambda controller, _: controller.format_log(CLUSTER_ID))
                outcomes.append("answered")
            except KafkaError as error:
                outcomes.append(error.code.name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            with trio.CancelScope() as scope:
                scope.cancel()
                await metadata.run()
        storage.close()

        assert outcomes == ["NOT_CONTROLLER"]

    trio.run(main)


async def create_until_the_power_goes(files: FaultyFiles, directory: Path, names: str) -> list[str]:
    """Return the topics whose creation was answered."""
    answered: list[str] = []
    try:
        storage = Storage(directory, files)
        async with running(make_metadata(storage, bytes_between=300)) as metadata:
            for name in names:
                await create(metadata, name)
                answered.append(name)
    except* (StorageError, KafkaError, OSError):
        pass
    return answered


async def create_at_once_until_the_power_goes(files: FaultyFiles, directory: Path, names: str) -> list[str]:
    """Return the topics whose creation was answered; what is asked together shares a flush."""
    answered: list[str] = []

    async def ask(metadata: MetadataLog, name: str) -> None:
        await create(metadata, name)
        answered.append(name)

    try:
        storage = Storage(directory, files)
        async with running(make_metadata(storage, bytes_between=300)) as metadata:
            for together in (names[:4], names[4:]):
                async with trio.open_nursery() as nursery:
                    for name in together:
                        nursery.start_soon(ask, metadata, name)
    except* (StorageError, KafkaError, OSError):
        pass
    return answered


@pytest.mark.parametrize("style", PowerLoss)
@pytest.mark.parametrize("power_lost_at", range(40, 130, 9))
def test_a_flush_of_several_operations_that_the_power_tears_stops_no_start(
    tmp_path: Path, style: PowerLoss, power_lost_at: int
) -> None:
    root, left = tmp_path / "root", tmp_path / "left"
    (root / "d").mkdir(parents=True)
    left.mkdir()
    files = FaultyFiles(root, power_lost_at=power_lost_at)
    answered = trio.run(create_at_once_until_the_power_goes, files, root / "d", "abcdefgh")
    files.crash()
    files.after_power_loss(left, style, random.Random(power_lost_at))

    assert set(answered) <= set(read_again(left / "d").topics_by_name)


def lose_power(directory: Path, style: PowerLoss, power_lost_at: int) -> None:
    names = "abcdefgh"
    root, left = directory / "root", directory / "left"
    (root / "d").mkdir(parents=True)
    left.mkdir()
    files = FaultyFiles(root, power_lost_at=power_lost_at)
    answered = trio.run(create_until_the_power_goes, files, root / "d", names)
    files.crash()
    files.after_power_loss(left, style, random.Random(power_lost_at))
    found = sorted(read_again(left / "d").topics_by_name)

    assert set(answered) <= set(found)
    assert list(names[: len(found)]) == found
    assert answered or power_lost_at < 70, "the scenario answers something before the power goes"


@pytest.mark.parametrize("style", PowerLoss)
@pytest.mark.parametrize("power_lost_at", range(40, 200, 13))
def test_what_was_answered_survives_a_loss_of_power(tmp_path: Path, style: PowerLoss, power_lost_at: int) -> None:
    lose_power(tmp_path, style, power_lost_at)


@pytest.mark.sweep
@pytest.mark.parametrize("style", PowerLoss)
@pytest.mark.parametrize("power_lost_at", range(1, 200))
def test_what_was_answered_survives_a_loss_of_power_anywhere(
    tmp_path: Path, style: PowerLoss, power_lost_at: int
) -> None:
    lose_power(tmp_path, style, power_lost_at)


async def test_an_operation_whose_records_cannot_be_written_is_refused_and_the_next_goes_on(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    async with running(make_metadata(storage)) as metadata:
        await create(metadata, "before")
        endless = ConfigRecord(resource_type=2, resource_name="before", name="n", value="v" * 40_000)
        with pytest.raises(EncodeError):
            await metadata.submit(lambda _controller, _now_ms: CoordinatorResult([endless], None))
        await create(metadata, "after")
        image = metadata.image
    storage.close()

    assert content(read_again(tmp_path)) == content(image)
    assert set(image.topics_by_name) == {"before", "after"}


async def test_who_has_no_time_is_told_so_and_who_has_some_is_answered(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    async with running(make_metadata(storage)) as metadata:
        for timeout_ms in (0, -1):
            with pytest.raises(KafkaError) as refused:
                await metadata.ask(create_topics(topic("never", 1)), timeout_ms)
            assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
        answer = await metadata.ask(create_topics(topic("there", 1)), 60_000)
    storage.close()

    assert [(result.name, result.error_code) for result in answer.topics] == [("there", ErrorCode.NONE)]
