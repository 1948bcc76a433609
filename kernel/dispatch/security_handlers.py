"""Shell: the handlers of what is asked about security, of a broker that has none: ACLs, SASL, tokens, quotas, users.

Kafka answers all of it without security, too. A client that finds these APIs advertised takes the broker for what it
is; one that finds them missing takes it for Kafka 0.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .handlers.api_17_sasl_handshake import SaslHandshakeHandler
from .handlers.api_29_describe_acls import DescribeAclsHandler
from .handlers.api_30_create_acls import CreateAclsHandler
from .handlers.api_31_delete_acls import DeleteAclsHandler
from .handlers.api_36_sasl_authenticate import SaslAuthenticateHandler
from .handlers.api_38_create_delegation_token import CreateDelegationTokenHandler
from .handlers.api_39_renew_delegation_token import RenewDelegationTokenHandler
from .handlers.api_40_expire_delegation_token import ExpireDelegationTokenHandler
from .handlers.api_41_describe_delegation_token import DescribeDelegationTokenHandler
from .handlers.api_48_describe_client_quotas import DescribeClientQuotasHandler
from .handlers.api_49_alter_client_quotas import AlterClientQuotasHandler
from .handlers.api_50_describe_user_scram_credentials import DescribeUserScramCredentialsHandler
from .handlers.api_51_alter_user_scram_credentials import AlterUserScramCredentialsHandler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..contracts.api_handler import ApiHandler


def security_handlers() -> Iterator[ApiHandler]:
    """Iterate over the handlers."""
    yield SaslHandshakeHandler()
    yield DescribeAclsHandler()
    yield CreateAclsHandler()
    yield DeleteAclsHandler()
    yield SaslAuthenticateHandler()
    yield CreateDelegationTokenHandler()
    yield RenewDelegationTokenHandler()
    yield ExpireDelegationTokenHandler()
    yield DescribeDelegationTokenHandler()
    yield DescribeClientQuotasHandler()
    yield AlterClientQuotasHandler()
    yield DescribeUserScramCredentialsHandler()
    yield AlterUserScramCredentialsHandler()
