"""Pure core: AlterUserScramCredentials, API key 51, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
]


class ScramCredentialDeletion(Message):
    """An item of `AlterUserScramCredentialsRequest.deletions`."""

    name: str = f.string()
    mechanism: int = f.int8()


class ScramCredentialUpsertion(Message):
    """An item of `AlterUserScramCredentialsRequest.upsertions`."""

    name: str = f.string()
    mechanism: int = f.int8()
    iterations: int = f.int32()
    salt: bytes = f.binary()
    salted_password: bytes = f.binary()


class AlterUserScramCredentialsRequest(Message, key=51, versions="0", flexible="0+"):
    """The request."""

    deletions: list[ScramCredentialDeletion] = f.array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = f.array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Message):
    """An item of `AlterUserScramCredentialsResponse.results`."""

    user: str = f.string()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")


class AlterUserScramCredentialsResponse(Message, key=51, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    results: list[AlterUserScramCredentialsResult] = f.array(AlterUserScramCredentialsResult)
