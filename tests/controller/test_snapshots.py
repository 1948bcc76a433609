"""Snapshots of the metadata: large ones, damaged ones, and disks that fail."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import UUID

import pytest

from odradek.kernel.controller.founding_checkpoint import FILE_NAME
from odradek.kernel.controller.snapshots import (
    SnapshotId,
    SnapshotQuorum,
    SnapshotStore,
    decode_snapshot,
    encode_snapshot,
)
from odradek.kernel.errors import CorruptionError, StorageError
from odradek.kernel.machine.files import DiskError, OsFiles
from odradek.kernel.metadata.features import METADATA_VERSION_MAX
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.metadata.image_builder import ImageBuilder
from odradek.kernel.metadata.records import (
    FORMAT_VERSION,
    ConfigRecord,
    FormatRecord,
    MetadataRecord,
    SnapshotEndRecord,
    encode_record,
)
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import KRaftVoter, KRaftVoters
from odradek.testing.faults import FaultyFiles

from .metadata_helpers import CLUSTER_ID

QUORUM = SnapshotQuorum(
    KRaftVoters(voters=[KRaftVoter(voter_id=each, voter_directory_id=UUID(int=each)) for each in (1, 2)])
)
FORMAT = FormatRecord(format_version=FORMAT_VERSION, cluster_id=CLUSTER_ID)


def image_of(*records: MetadataRecord, offset: int = 7, epoch: int = 2) -> MetadataImage:
    builder = ImageBuilder(MetadataImage())
    for record in (FORMAT, *records):
        builder.replay(record)
    builder.note_position(offset, epoch)
    return builder.build()


def bytes_of(*records: MetadataRecord) -> bytes:
    builder = BatchBuilder()
    for record in records:
        builder.append(None, encode_record(record, METADATA_VERSION_MAX), timestamp=0)
    return bytes(builder.build())


def end(count: int, last_offset: int = 7) -> SnapshotEndRecord:
    return SnapshotEndRecord(records_count=count, last_offset=last_offset, last_epoch=2, written_ms=0)


class NotingFiles(OsFiles):
    """Notes how much is read at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.read_bytes: list[int] = []
        read = self.pread

        def pread(fd: int, size_bytes: int, position: int, /) -> bytes:
            data = read(fd, size_bytes, position)
            self.read_bytes.append(len(data))
            return data

        self.pread = pread


def test_a_part_of_a_snapshot_is_read_and_no_more(tmp_path: Path) -> None:
    files = NotingFiles()
    store = SnapshotStore(directory=tmp_path, files=files)
    identifier = store.write(image_of(), 5)
    data = encode_snapshot(image_of(), 5)

    assert store.read_part(identifier, 10, 20) == (len(data), data[10:30])
    assert store.read_part(identifier, len(data) - 5, 20) == (len(data), data[-5:])
    assert store.read_part(identifier, len(data), 20) == (len(data), b"")
    assert store.read_part(identifier, (1 << 63) - 1, 20) == (len(data), b"")
    assert store.read_part(SnapshotId(1, 1), 0, 20) is None
    assert files.read_bytes == [20, 5]


def test_a_large_snapshot_is_several_batches_and_says_the_same() -> None:
    text = "x" * 32_000
    configs = [ConfigRecord(resource_type=4, resource_name=str(n), name="broker.rack", value=text) for n in range(70)]
    image = image_of(*configs)
    data = encode_snapshot(image, 5)
    found = decode_snapshot(data, "here", SnapshotId(8, 2)).image

    assert len(list(iterate_batches(memoryview(data)))) == 3
    assert encode_snapshot(found, 5) == data
    assert (found.offset, found.epoch) == (7, 2)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (bytes_of(end(0)), "begins with one format record"),
        (bytes_of(FORMAT, FORMAT, end(2)), "begins with one format record"),
        (bytes_of(FORMAT, end(1), end(1)), "ends with one end record"),
        (bytes_of(FORMAT), "breaks off after 1 records"),
        (bytes_of(FORMAT, end(5)), "breaks off after 1 records"),
        (bytes_of(FORMAT, end(1, last_offset=9)), "not where its name says"),
        (b"", "breaks off after 0 records"),
    ],
)
def test_what_is_no_whole_snapshot_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(CorruptionError, match=says):
        decode_snapshot(data, "here", SnapshotId(8, 2))


def test_a_snapshot_says_who_votes_and_the_offsets_of_its_records_follow_on() -> None:
    data = encode_snapshot(image_of(), 5, QUORUM)
    headers = [header for _, header in iterate_batches(memoryview(data))]
    found = decode_snapshot(data, "here", SnapshotId(8, 2))

    assert found == (image_of(), QUORUM)
    assert [header.is_control for header in headers] == [True, False, True]
    assert [header.base_offset for header in headers[1:]] == [header.next_offset for header in headers[:-1]]
    assert decode_snapshot(encode_snapshot(image_of(), 5), "here", SnapshotId(8, 2)).quorum is None


@pytest.mark.parametrize("quorum", [None, QUORUM], ids=["nobody's", "a quorum's"])
def test_a_snapshot_cut_off_anywhere_is_refused(quorum: SnapshotQuorum | None) -> None:
    data = encode_snapshot(image_of(), 5, quorum)
    for size in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_snapshot(data[:size], "here", SnapshotId(8, 2))


def test_a_snapshot_of_a_newer_format_stops_the_start(tmp_path: Path) -> None:
    newer = FormatRecord(format_version=FORMAT_VERSION + 1, cluster_id=CLUSTER_ID)
    (tmp_path / SnapshotId(8, 2).file_name).write_bytes(bytes_of(newer, end(1)))
    with pytest.raises(StorageError, match="start the newer version that wrote it"):
        SnapshotStore(directory=tmp_path, files=OsFiles()).load_newest()


def test_a_disk_that_fails_is_named_with_the_file(tmp_path: Path) -> None:
    missing = SnapshotStore(directory=tmp_path / "gone", files=OsFiles())
    with pytest.raises(DiskError, match=r"cannot list .*gone"):
        missing.ids()
    with pytest.raises(DiskError, match=r"cannot write .*checkpoint"):
        missing.write(image_of(), 5)
    folder = tmp_path / SnapshotId(8, 2).file_name
    folder.mkdir()
    with pytest.raises(DiskError, match=r"cannot read .*00008-0000000002\.checkpoint"):
        SnapshotStore(directory=tmp_path, files=OsFiles()).load_newest()


def test_a_full_disk_leaves_older_snapshots_as_they_were(tmp_path: Path) -> None:
    store = SnapshotStore(directory=tmp_path, files=OsFiles())
    first = store.write(image_of(), 5)
    full = SnapshotStore(
        directory=tmp_path, files=FaultyFiles(tmp_path, fail_at=1, error=errno.ENOSPC, is_full_after=True)
    )
    with pytest.raises(DiskError) as caught:
        full.write(image_of(offset=9), 5)

    assert caught.value.errno == errno.ENOSPC
    assert store.ids() == [first]
    assert store.load_newest()[1] == ""


def test_only_the_newest_are_kept_and_nothing_unfinished(tmp_path: Path) -> None:
    store = SnapshotStore(directory=tmp_path, files=OsFiles())
    written = [store.write(image_of(offset=offset), 5) for offset in (7, 8, 9)]
    (tmp_path / "00000000000000000011-0000000002.checkpoint.tmp").write_bytes(b"unfinished")

    assert store.drop_old() == written[1].end_offset
    assert sorted(path.name for path in tmp_path.iterdir()) == [each.file_name for each in written[1:]]


def test_what_a_cluster_was_founded_with_is_none_of_them_and_stays(tmp_path: Path) -> None:
    store = SnapshotStore(directory=tmp_path, files=OsFiles())
    (tmp_path / FILE_NAME).write_bytes(b"founding")

    assert store.load_newest() == (None, "")
    written = store.write(image_of(), 5)
    assert store.ids() == [written]
    assert store.drop_old(1) == written.end_offset
    assert store.drop_old(0) == 0
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert store.read_part(SnapshotId(0, 0), 0, 100) == (8, b"founding")


def test_a_clean_up_that_fails_is_told(tmp_path: Path) -> None:
    store = SnapshotStore(directory=tmp_path, files=OsFiles())
    for offset in (7, 8, 9):
        store.write(image_of(offset=offset), 5)
    oldest = tmp_path / SnapshotId(8, 2).file_name
    oldest.unlink()
    oldest.mkdir()
    with pytest.raises(DiskError, match="cannot clean up snapshots in"):
        store.drop_old()
