"""Shell: what a cluster is founded with: who votes and whose log it is, in the snapshot that ends where the log begins.

It lies beside the log as KRaft has it, under the name of the snapshot of offset 0 and epoch 0, and is never removed: a
voter that was away while the others were founded takes it from them (FetchSnapshot), however long that is ago::

    control batch   snapshot header, KRaft version, KRaft voters
    data batch      the records that the first controller is to write first: the format with the cluster's id, features
    control batch   snapshot footer

The log's own records say the latter again, at its beginning; so who reads the log needs nothing of this file but the
voters. One that Apache Kafka's `kafka-storage` wrote holds records of Kafka's own, of which nothing is taken: its
voters count, and the rest is decided as for a new cluster.

*Source:* KIP-853 (bootstrapping with voters), Kafka's `Formatter` and `RecordsSnapshotWriter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..classes import frozen
from ..errors import CorruptionError
from ..machine.files import replace_file
from ..metadata.records import FORMAT_VERSION, FeatureRecord, FormatRecord, decode_record, encode_record
from ..records.builder import BatchBuilder
from ..records.control import KRaftVersion, SnapshotFooter, SnapshotHeader, build_control_batch
from .small_files import read_if_there, telling_disk_errors
from .snapshots import FOUNDING_ID, KRAFT_VERSION_OF_VOTERS, SnapshotReader, check_format

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..machine.files import Files
    from ..metadata.records import MetadataRecord
    from ..records.control import KRaftControlRecord, KRaftVoters

FILE_NAME: Final = FOUNDING_ID.file_name


@frozen
class FoundingCheckpoint:
    """What a cluster is founded with.

    Attributes:
        voters: With the ids of their directories, and their endpoints.
        cluster_id: The cluster's; empty where Kafka's own tool wrote the file, and `meta.properties` has it.
        features: What is finalized at the start, by name; what is not here gets the level that a new cluster has.
        kraft_version: Of the quorum, 1: voters are in the log.
    """

    voters: KRaftVoters
    cluster_id: str = ""
    features: Mapping[str, int] = attrs.field(factory=dict)
    kraft_version: int = KRAFT_VERSION_OF_VOTERS


def encode_founding(founding: FoundingCheckpoint, now_ms: int) -> bytes:
    """Return the file's bytes: the same for the same founding and time, whoever writes it.

    Without a cluster's id it names the voters alone: Kafka reads that as its own tool's.
    """
    first: list[KRaftControlRecord] = [
        SnapshotHeader(last_contained_log_timestamp=now_ms),
        KRaftVersion(k_raft_version=founding.kraft_version),
        founding.voters,
    ]
    records: list[MetadataRecord] = [
        FormatRecord(format_version=FORMAT_VERSION, cluster_id=founding.cluster_id),
        *(FeatureRecord(name=name, level=level) for name, level in sorted(founding.features.items())),
    ]
    if not founding.cluster_id:
        assert not founding.features, "features without whose they are"
        records = []
    builder = BatchBuilder(base_offset=len(first), partition_leader_epoch=FOUNDING_ID.epoch)
    for record in records:
        builder.append(None, encode_record(record, 0), timestamp=now_ms)
    epoch, end = FOUNDING_ID.epoch, len(first) + len(records)
    header = build_control_batch(first, timestamp=now_ms, partition_leader_epoch=epoch)
    footer = build_control_batch([SnapshotFooter()], timestamp=now_ms, base_offset=end, partition_leader_epoch=epoch)
    return b"".join((header, builder.build() if records else b"", footer))


def decode_founding(data: bytes, where: object) -> FoundingCheckpoint:
    """Return what a founding checkpoint says.

    Args:
        data: All its bytes.
        where: The file, or who sent it, for errors.

    Raises:
        CorruptionError: It is damaged or unfinished, or names no voters.
        StorageError: It is of a newer format.
    """
    reader = SnapshotReader(data)
    values, quorum = list(reader.values()), reader.quorum
    if quorum is None or not quorum.voters.voters:
        raise CorruptionError(f"{where}: a founding names who votes, and this one names nobody")
    if not reader.is_ended:
        raise CorruptionError(f"{where}: the founding breaks off after {len(values)} records")
    if not values or values[0][1:2] != bytes((FormatRecord.__api_key__,)):
        return FoundingCheckpoint(quorum.voters, kraft_version=quorum.kraft_version)
    records = [decode_record(value) for value in values]
    first, features = records[0], records[1:]
    assert isinstance(first, FormatRecord), "its type was looked at"
    check_format(first, where)
    if not all(isinstance(record, FeatureRecord) for record in features):
        raise CorruptionError(f"{where}: a founding says format and features, and nothing else")
    levels = {record.name: record.level for record in features if isinstance(record, FeatureRecord)}
    return FoundingCheckpoint(quorum.voters, first.cluster_id, levels, quorum.kraft_version)


def read_founding(directory: Path, files: Files) -> FoundingCheckpoint | None:
    """Return what the log in a directory was founded with, None where it was not founded so. Blocks.

    Raises:
        CorruptionError: The file is damaged.
        StorageError: It is of a newer format, or cannot be read.
    """
    path = directory / FILE_NAME
    data = read_if_there(files, path)
    return None if data is None else decode_founding(data, path)


def keep_founding(directory: Path, files: Files, data: bytes) -> FoundingCheckpoint:
    """Keep a founding checkpoint, whole or not at all, and return what it says; durable on return. Blocks.

    Raises:
        CorruptionError: It is damaged; nothing was kept.
        StorageError: It is of a newer format, or the disk is full or failing.
    """
    path = directory / FILE_NAME
    founding = decode_founding(data, path)
    with telling_disk_errors("write", path):
        replace_file(files, path, data, is_durable=True)
    return founding
