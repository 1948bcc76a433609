"""Pure core: CreateDelegationToken, API key 38, versions 1-3."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenResponse",
]


class CreatableRenewers(Message):
    """An item of `CreateDelegationTokenRequest.renewers`."""

    principal_type: str = f.string()
    principal_name: str = f.string()


class CreateDelegationTokenRequest(Message, key=38, versions="1-3", flexible="2+"):
    """The request."""

    owner_principal_type: str | None = f.string("3+", nullable="3+")
    owner_principal_name: str | None = f.string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = f.array(CreatableRenewers)
    max_lifetime_ms: int = f.int64()


class CreateDelegationTokenResponse(Message, key=38, versions="1-3", flexible="2+"):
    """The response."""

    error_code: int = f.int16()
    principal_type: str = f.string()
    principal_name: str = f.string()
    token_requester_principal_type: str = f.string("3+")
    token_requester_principal_name: str = f.string("3+")
    issue_timestamp_ms: int = f.int64()
    expiry_timestamp_ms: int = f.int64()
    max_timestamp_ms: int = f.int64()
    token_id: str = f.string()
    hmac: bytes = f.binary()
    throttle_time_ms: int = f.int32()
