"""Pure core: RemoveRaftVoter, API key 81, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse",
]


class RemoveRaftVoterRequest(Message, key=81, versions="0", flexible="0+"):
    """The request."""

    cluster_id: str | None = f.string(nullable="0+")
    voter_id: int = f.int32()
    voter_directory_id: UUID = f.uuid()


class RemoveRaftVoterResponse(Message, key=81, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", ignorable=True)
