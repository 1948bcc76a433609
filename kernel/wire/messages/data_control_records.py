"""Pure core: the values of control records, and the records that begin and end a snapshot."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
]


class ControlRecordTypeSchema(Message, versions="0"):
    """ControlRecordTypeSchema, to be coded by itself."""

    type: int = f.int16()


class EndTxnMarker(Message, versions="0"):
    """EndTxnMarker, to be coded by itself."""

    coordinator_epoch: int = f.int32()


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """KRaftVersionRecord, to be coded by itself."""

    version: int = f.int16()
    kraft_version: int = f.int16()


class Voter(Message):
    """Shared by several fields of `LeaderChangeMessage`."""

    voter_id: int = f.int32()
    voter_directory_id: UUID = f.uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """LeaderChangeMessage, to be coded by itself."""

    version: int = f.int16()
    leader_id: int = f.int32()
    voters: list[Voter] = f.array(Voter)
    granting_voters: list[Voter] = f.array(Voter)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """SnapshotFooterRecord, to be coded by itself."""

    version: int = f.int16()


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """SnapshotHeaderRecord, to be coded by itself."""

    version: int = f.int16()
    last_contained_log_timestamp: int = f.int64()


class Endpoint(Message):
    """An item of `VotersRecordVoter.endpoints`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()


class KRaftVersionFeature(Message):
    """The value of `VotersRecordVoter.kraft_version_feature`."""

    min_supported_version: int = f.int16()
    max_supported_version: int = f.int16()


class VotersRecordVoter(Message):
    """An item of `VotersRecord.voters`."""

    voter_id: int = f.int32()
    voter_directory_id: UUID = f.uuid()
    endpoints: list[Endpoint] = f.array(Endpoint)
    kraft_version_feature: KRaftVersionFeature = f.struct(KRaftVersionFeature)


class VotersRecord(Message, versions="0", flexible="0+"):
    """VotersRecord, to be coded by itself."""

    version: int = f.int16()
    voters: list[VotersRecordVoter] = f.array(VotersRecordVoter)
