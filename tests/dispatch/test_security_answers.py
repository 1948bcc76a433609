"""What is asked about security of a broker that has none, where no session with Apache Kafka can tell."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from odradek.kernel.dispatch.handlers.api_38_create_delegation_token import CreateDelegationTokenHandler
from odradek.kernel.dispatch.handlers.api_49_alter_client_quotas import AlterClientQuotasHandler
from odradek.kernel.dispatch.handlers.api_51_alter_user_scram_credentials import AlterUserScramCredentialsHandler
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages import api_49_alter_client_quotas as quotas
from odradek.kernel.wire.messages import api_51_alter_user_scram_credentials as scram
from odradek.kernel.wire.messages.api_38_create_delegation_token import CreateDelegationTokenRequest


@attrs.frozen
class Asked:
    """As much of a request's context as these handlers look at; it is its own connection."""

    api_version: int
    principal: str = "User:ANONYMOUS"

    @property
    def connection(self) -> Asked:
        return self


def answer(handler: Any, request: Any, version: int, principal: str = "User:ANONYMOUS") -> Any:
    return handler.handle(request, Asked(version, principal))


@pytest.mark.parametrize("is_only_checked", [False, True])
def test_a_quota_that_nobody_would_heed_is_not_set(is_only_checked: bool) -> None:
    entry = quotas.EntryData(
        entity=[quotas.EntityData(entity_type="user", entity_name="ann")],
        ops=[
            quotas.OpData(key="consumer_byte_rate", remove=True),
            quotas.OpData(key="producer_byte_rate", value=1024.0),
        ],
    )
    request = quotas.AlterClientQuotasRequest(entries=[entry], validate_only=is_only_checked)
    (told,) = answer(AlterClientQuotasHandler(), request, 1).entries

    assert told.error_code is ErrorCode.UNSUPPORTED_VERSION
    assert "producer_byte_rate is not set" in told.error_message
    assert [(part.entity_type, part.entity_name) for part in told.entity] == [("user", "ann")]


def test_a_user_that_could_not_log_in_is_not_made() -> None:
    request = scram.AlterUserScramCredentialsRequest(
        deletions=[scram.ScramCredentialDeletion(name="bob", mechanism=2)],
        upsertions=[
            scram.ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=4096)
            for name, mechanism in (("ann", 1), ("ann", 2))
        ],
    )
    told = answer(AlterUserScramCredentialsHandler(), request, 0).results

    assert [(result.user, result.error_code) for result in told] == [
        ("bob", ErrorCode.RESOURCE_NOT_FOUND),
        ("ann", ErrorCode.UNSUPPORTED_VERSION),
    ]


def test_a_client_that_is_known_is_told_that_there_are_no_tokens() -> None:
    told = answer(CreateDelegationTokenHandler(), CreateDelegationTokenRequest(), 3, "User:ann")

    assert told.error_code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (told.principal_name, told.token_requester_principal_name) == ("ann", "ann")
