"""Pure core: DescribeDelegationToken, API key 41, versions 1-3."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
]


class DescribeDelegationTokenOwner(Message):
    """An item of `DescribeDelegationTokenRequest.owners`."""

    principal_type: str = f.string()
    principal_name: str = f.string()


class DescribeDelegationTokenRequest(Message, key=41, versions="1-3", flexible="2+"):
    """The request."""

    owners: list[DescribeDelegationTokenOwner] | None = f.array(DescribeDelegationTokenOwner, nullable="1+")


class DescribedDelegationTokenRenewer(Message):
    """An item of `DescribedDelegationToken.renewers`."""

    principal_type: str = f.string()
    principal_name: str = f.string()


class DescribedDelegationToken(Message):
    """An item of `DescribeDelegationTokenResponse.tokens`."""

    principal_type: str = f.string()
    principal_name: str = f.string()
    token_requester_principal_type: str = f.string("3+")
    token_requester_principal_name: str = f.string("3+")
    issue_timestamp: int = f.int64()
    expiry_timestamp: int = f.int64()
    max_timestamp: int = f.int64()
    token_id: str = f.string()
    hmac: bytes = f.binary()
    renewers: list[DescribedDelegationTokenRenewer] = f.array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Message, key=41, versions="1-3", flexible="2+"):
    """The response."""

    error_code: int = f.int16()
    tokens: list[DescribedDelegationToken] = f.array(DescribedDelegationToken)
    throttle_time_ms: int = f.int32()
