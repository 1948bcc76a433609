"""Pure core: UpdateRaftVoter, API key 82, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "UpdateRaftVoterRequest",
    "UpdateRaftVoterResponse",
]


class Listener(Message):
    """An item of `UpdateRaftVoterRequest.listeners`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()


class KRaftVersionFeature(Message):
    """The value of `UpdateRaftVoterRequest.kraft_version_feature`."""

    min_supported_version: int = f.int16()
    max_supported_version: int = f.int16()


class UpdateRaftVoterRequest(Message, key=82, versions="0", flexible="0+"):
    """The request."""

    cluster_id: str | None = f.string(nullable="0+")
    current_leader_epoch: int = f.int32()
    voter_id: int = f.int32()
    voter_directory_id: UUID = f.uuid()
    listeners: list[Listener] = f.array(Listener)
    kraft_version_feature: KRaftVersionFeature = f.struct(KRaftVersionFeature)


class CurrentLeader(Message):
    """The value of `UpdateRaftVoterResponse.current_leader`."""

    leader_id: int = f.int32(default=-1)
    leader_epoch: int = f.int32(default=-1)
    host: str = f.string()
    port: int = f.int32()


class UpdateRaftVoterResponse(Message, key=82, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    current_leader: CurrentLeader | None = f.struct(CurrentLeader, tag=0)
