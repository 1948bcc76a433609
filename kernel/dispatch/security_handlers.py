"""Pure core: the APIs of what is asked about security, of a broker that has none: ACLs, SASL, tokens, quotas, users.

Kafka answers all of it without security, too. A client that finds these APIs advertised takes the broker for what it
is; one that finds them missing takes it for Kafka 0.9.
"""

from __future__ import annotations

from typing import Final

SECURITY_APIS: Final = (17, 29, 30, 31, 36, 38, 39, 40, 41, 48, 49, 50, 51)
"""From SaslHandshake to AlterUserScramCredentials; their handlers are given nothing."""
