"""Pure core: The values of control records, and the records that begin and end a snapshot."""

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
    """ControlRecordTypeSchema, a record or a part of one."""

    type: int = f.int16()


class EndTxnMarker(Message, versions="0"):
    """EndTxnMarker, a record or a part of one."""

    coordinator_epoch: int = f.int32()


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """KRaftVersionRecord, a record or a part of one."""

    version: int = f.int16()
    kraft_version: int = f.int16()


class Voter(Message):
    """Shared by several fields of `LeaderChangeMessage`."""

    voter_id: int = f.int32()
    voter_directory_id: UUID = f.uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """LeaderChangeMessage, a record or a part of one."""

    version: int = f.int16()
    leader_id: int = f.int32()
    voters: list[Voter] = f.array(Voter)
    granting_voters: list[Voter] = f.array(Voter)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """SnapshotFooterRecord, a record or a part of one."""

    version: int = f.int16()


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """SnapshotHeaderRecord, a record or a part of one."""

    version: int = f.int16()
    last_contained_log_timestamp: int = f.int64()


class Endpoint(Message):
    """An item of `ResponseVoter.endpoints`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()


class KRaftVersionFeature(Message):
    """The value of `ResponseVoter.kraft_version_feature`."""

    min_supported_version: int = f.int16()
    max_supported_version: int = f.int16()


class ResponseVoter(Message):
    """An item of `VotersRecord.voters`."""

    voter_id: int = f.int32()
    voter_directory_id: UUID = f.uuid()
    endpoints: list[Endpoint] = f.array(Endpoint)
    kraft_version_feature: KRaftVersionFeature = f.struct(KRaftVersionFeature)


class VotersRecord(Message, versions="0", flexible="0+"):
    """VotersRecord, a record or a part of one."""

    version: int = f.int16()
    voters: list[ResponseVoter] = f.array(ResponseVoter)
