"""Pure core: AddRaftVoter, API key 80, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "AddRaftVoterRequest",
    "AddRaftVoterResponse",
]


class Listener(Message):
    """An item of `AddRaftVoterRequest.listeners`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()


class AddRaftVoterRequest(Message, key=80, versions="0-1", flexible="0+"):
    """The request."""

    cluster_id: str | None = f.string(nullable="0+")
    timeout_ms: int = f.int32()
    voter_id: int = f.int32()
    voter_directory_id: UUID = f.uuid()
    listeners: list[Listener] = f.array(Listener)
    ack_when_committed: bool = f.boolean("1+", default=True)


class AddRaftVoterResponse(Message, key=80, versions="0-1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", ignorable=True)
