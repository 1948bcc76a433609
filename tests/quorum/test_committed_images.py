"""The image of what a quorum has committed: never more than that, never back, by log or by snapshot."""

from __future__ import annotations

import threading
from pathlib import Path
from uuid import UUID

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.controller.snapshots import SnapshotId, SnapshotQuorum, SnapshotStore, encode_snapshot
from odradek.kernel.errors import ConfigError, CorruptionError, ErrorCode, KafkaError, StorageError
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.metadata.image import MetadataDelta, MetadataImage
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.metadata.records import (
    FORMAT_VERSION,
    ConfigRecord,
    FeatureRecord,
    FormatRecord,
    MetadataRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from odradek.kernel.records.control import KRaftVoter, KRaftVoters, LeaderChange
from tests.controller.metadata_helpers import CLUSTER_ID

from .fake_replica import FakeReplica
from .term_nodes import Node

FORMAT = FormatRecord(format_version=FORMAT_VERSION, cluster_id=CLUSTER_ID)
VOTERS = KRaftVoters(voters=[KRaftVoter(voter_id=1, voter_directory_id=UUID(int=1))])


def ids(end: int) -> ProducerIdsRecord:
    return ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=end)


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=UUID(int=sum(name.encode())), storage="segment", election="isr")


def following(directory: Path | None = None, *records: MetadataRecord) -> Node:
    """A node that follows another in epoch 1, and has fetched these records behind the first of all."""
    node = Node(directory, replica=FakeReplica(directory))
    node.replica.lose(2, 1)
    node.replica.append_control(LeaderChange(leader_id=2))
    node.replica.fetch(FORMAT, *records)
    return node


def image_of(*records: MetadataRecord, offset: int, epoch: int = 1) -> MetadataImage:
    builder = ImageBuilder(MetadataImage())
    for record in (FORMAT, *records):
        builder.replay(record)
    builder.note_position(offset, epoch)
    return builder.build()


def snapshots(directory: Path) -> SnapshotStore:
    return SnapshotStore(directory=directory, files=OsFiles())


async def written(directory: Path, *identifiers: SnapshotId) -> None:
    """Wait until these are the snapshots: a thread writes them."""
    with trio.fail_after(10):
        while snapshots(directory).ids()[::-1] != [*identifiers]:  # noqa: ASYNC110 - a folder tells nobody
            await trio.sleep(0.001)


def test_what_is_not_known_to_be_committed_is_in_no_image() -> None:
    async def main() -> None:
        async with following(None, ids(5)).running() as node:
            seen: list[tuple[int, int]] = []
            node.images.add_listener(lambda _delta, image: seen.append((image.offset, image.next_producer_id)))
            await trio.testing.wait_all_tasks_blocked()
            assert (node.images.image.offset, node.images.next_offset) == (-1, 0)
            node.replica.commit_all()
            await node.caught_up()
            node.replica.fetch(ids(7), ids(9))
            await trio.testing.wait_all_tasks_blocked()
            assert node.images.image.next_producer_id == 5
            node.replica.commit_all()
            await node.images.wait_for(4)
            assert seen == [(2, 5), (4, 9)]
            assert node.images.image.cluster_id == CLUSTER_ID

    trio.run(main)


def test_a_delta_says_what_an_image_has_that_the_one_before_had_not() -> None:
    async def main() -> None:
        async with following(None, topic("a")).running() as node:
            deltas: list[MetadataDelta] = []
            node.images.add_listener(lambda delta, _image: deltas.append(delta))
            node.replica.commit_all()
            await node.caught_up()
            node.replica.fetch(ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="1"))
            node.replica.append_control(VOTERS)
            node.replica.commit_all()
            await node.caught_up()
            assert [len(delta.created_topics) for delta in deltas] == [1, 0]
            assert deltas[1].changed_configs == {(2, "a")}
            assert (node.images.image.offset, node.images.next_offset) == (3, 5)

    trio.run(main)


def test_a_node_has_caught_up_when_what_the_leader_had_is_here_in_the_leaders_epoch() -> None:
    async def main() -> None:
        async with following(None, ids(5)).running() as node, trio.open_nursery() as nursery:
            done = trio.Event()

            async def wait() -> None:
                await node.images.wait_caught_up()
                done.set()

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert not done.is_set()
            node.replica.lose(3, 2)
            node.replica.commit_all()  # all of it is of an epoch before: there may be more
            await trio.testing.wait_all_tasks_blocked()
            assert not done.is_set()
            node.replica.append_control(LeaderChange(leader_id=3))
            node.replica.commit_all()
            with trio.fail_after(5):
                await done.wait()

    trio.run(main)


@pytest.mark.parametrize(
    ("records", "error", "says"),
    [
        ([ids(5)], CorruptionError, "does not begin with its format"),
        ([FormatRecord(format_version=FORMAT_VERSION + 1, cluster_id=CLUSTER_ID)], StorageError, "start the newer"),
        ([FormatRecord(format_version=FORMAT_VERSION, cluster_id="other")], ConfigError, "belongs to cluster other"),
        ([FORMAT, FeatureRecord(name="metadata.version", level=99)], StorageError, "is finalized at level 99"),
    ],
    ids=["no format", "a newer format", "another cluster's", "a newer feature"],
)
def test_a_log_that_cannot_be_this_nodes_ends_it(
    records: list[MetadataRecord], error: type[Exception], says: str
) -> None:
    async def main() -> None:
        node = Node()
        node.replica.lose(2, 1)
        node.replica.fetch(*records)
        node.replica.commit_all()
        with pytest.RaisesGroup(pytest.RaisesExc(error, match=says), flatten_subgroups=True):
            async with node.running():
                await trio.sleep_forever()

    trio.run(main)


def test_a_damaged_batch_ends_the_node() -> None:
    async def main() -> None:
        node = following()
        node.replica.batches_here[-1] = node.replica.batches_here[-1][:-1] + b"?"
        node.replica.commit_all()
        damaged = pytest.RaisesExc(CorruptionError, match="offset 1 is damaged or gone")
        with pytest.RaisesGroup(damaged, flatten_subgroups=True):
            async with node.running():
                await trio.sleep_forever()
        assert node.images.next_offset == 1

    trio.run(main)


def test_a_log_that_begins_behind_every_snapshot_is_refused() -> None:
    async def main() -> None:
        replica = FakeReplica()
        replica.start_offset = 7
        with pytest.raises(CorruptionError, match="no snapshot that can be read reaches that far"):
            Node(replica=replica)

    trio.run(main)


def test_snapshots_are_written_when_due_and_the_next_start_begins_with_the_newest(tmp_path: Path) -> None:
    async def main() -> None:
        node = following(tmp_path, ids(5))
        node.images._upkeep._settings = node.images._upkeep._settings.__class__(bytes_between=1, interval_ms=0)
        async with node.running():
            node.replica.append_control(VOTERS)
            node.replica.commit_all()
            await written(tmp_path, SnapshotId(3, 1))
        loaded, _problem = snapshots(tmp_path).load_newest()
        assert loaded is not None
        assert (loaded.image.next_producer_id, loaded.quorum) == (5, None), "who votes was named behind it"
        again = Node(tmp_path, replica=node.replica)
        assert again.images.image.next_producer_id == 5

    trio.run(main)


def test_images_go_on_while_a_snapshot_is_written(tmp_path: Path) -> None:
    class SlowStore(SnapshotStore):
        may_end = threading.Event()

        def write(self, image: MetadataImage, now_ms: int, quorum: SnapshotQuorum | None = None) -> SnapshotId:
            assert self.may_end.wait(10)
            return super().write(image, now_ms, quorum)

    async def main() -> None:
        node = Node(tmp_path, replica=following(tmp_path, ids(5)).replica, bytes_between=1)
        node.images._upkeep.store = SlowStore(directory=tmp_path, files=OsFiles())
        async with node.running():
            node.replica.commit_all()
            await node.caught_up()
            node.replica.fetch(ids(7))
            node.replica.commit_all()
            with trio.fail_after(5):
                await node.caught_up()
            assert node.images.image.next_producer_id == 7
            assert not snapshots(tmp_path).ids()
            SlowStore.may_end.set()
            await written(tmp_path, SnapshotId(3, 1), SnapshotId(4, 1))

    trio.run(main)


def test_a_snapshot_names_who_votes_up_to_its_end(tmp_path: Path) -> None:
    async def main() -> None:
        node = following(tmp_path, ids(5))
        async with node.running():
            node.replica.append_control(VOTERS)
            node.replica.fetch(ids(7))
            node.replica.commit_all()
            await node.caught_up()
            await node.images._upkeep.write(node.images.image)
        loaded, _problem = snapshots(tmp_path).load_newest()
        assert loaded is not None
        assert loaded.quorum == SnapshotQuorum(VOTERS)

    trio.run(main)


def test_the_leaders_snapshot_takes_the_place_of_log_and_image(tmp_path: Path) -> None:
    async def main() -> None:
        async with following(tmp_path, topic("gone")).running() as node:
            node.replica.commit_all()
            await node.caught_up()
            deltas: list[MetadataDelta] = []
            node.images.add_listener(lambda delta, _image: deltas.append(delta))
            image = image_of(topic("new"), ids(9), offset=99, epoch=1)
            data = encode_snapshot(image, 0, SnapshotQuorum(VOTERS))
            assert await node.images.take_snapshot(SnapshotId(100, 1), data) == VOTERS
            assert (node.replica.start_offset, node.replica.end_offset, node.images.next_offset) == (100, 100, 100)
            assert node.replica.voters_at(99) == VOTERS
            assert list(node.images.image.topics_by_name) == ["new"]
            assert [topic.name for topic in deltas[0].deleted_topics] == ["gone"]
            assert snapshots(tmp_path).ids() == [SnapshotId(100, 1)]

    trio.run(main)


def test_a_snapshot_that_cannot_be_taken_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with following(tmp_path, ids(5)).running() as node:
            node.replica.commit_all()
            await node.caught_up()
            before = node.images.image
            whole = encode_snapshot(image_of(offset=99), 0)
            with pytest.raises(CorruptionError):
                await node.images.take_snapshot(SnapshotId(100, 1), whole[:-1])
            newer = attrs.evolve(image_of(offset=99), format_version=FORMAT_VERSION + 1)
            with pytest.raises(StorageError, match="start the newer version that wrote it"):
                await node.images.take_snapshot(SnapshotId(100, 1), encode_snapshot(newer, 0))
            assert not snapshots(tmp_path).ids()
            assert node.images.image is before
            node.replica.win(2)
            with pytest.raises(KafkaError) as refused:
                await node.images.take_snapshot(SnapshotId(100, 1), whole)
            assert (refused.value.code, node.images.image) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, before)

    trio.run(main)


def test_what_a_crash_left_of_a_higher_level_is_given_up_at_the_next_start(tmp_path: Path) -> None:
    async def main() -> None:
        node = following(tmp_path, FeatureRecord(name="metadata.version", level=30), topic("t"))
        async with node.running():
            node.replica.commit_all()
            await node.caught_up()
            await node.images._upkeep.write(node.images.image)
            node.replica.fetch(FeatureRecord(name="metadata.version", level=7))
            newest = image_of(FeatureRecord(name="metadata.version", level=7), topic("t"), offset=4)
        newer = snapshots(tmp_path).ids()[0]
        damaged = (tmp_path / newer.file_name).read_bytes()[:-1] + b"?"
        (tmp_path / newer.file_name).write_bytes(damaged)  # it may hold anything
        snapshots(tmp_path).write(newest, 0)
        node.replica.commit_all()
        async with Node(tmp_path, replica=node.replica).running() as again:
            await written(tmp_path, SnapshotId(5, 1))
            assert again.images.image.metadata_version == 7

    trio.run(main)
