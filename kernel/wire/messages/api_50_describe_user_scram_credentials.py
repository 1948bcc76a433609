"""Pure core: DescribeUserScramCredentials, API key 50, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
]


class UserName(Message):
    """An item of `DescribeUserScramCredentialsRequest.users`."""

    name: str = f.string()


class DescribeUserScramCredentialsRequest(Message, key=50, versions="0", flexible="0+"):
    """The request."""

    users: list[UserName] | None = f.array(UserName, nullable="0+")


class CredentialInfo(Message):
    """An item of `DescribeUserScramCredentialsResult.credential_infos`."""

    mechanism: int = f.int8()
    iterations: int = f.int32()


class DescribeUserScramCredentialsResult(Message):
    """An item of `DescribeUserScramCredentialsResponse.results`."""

    user: str = f.string()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    credential_infos: list[CredentialInfo] = f.array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Message, key=50, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = f.array(DescribeUserScramCredentialsResult)
