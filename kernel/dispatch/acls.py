"""Pure core: what the three APIs of ACLs have in common where there is no authorizer.

*Source:* KIP-140; Apache Kafka 4.3.1 without `authorizer.class.name`.
"""

from __future__ import annotations

from typing import Final

from ..errors import MalformedRequestError

UNKNOWN: Final = 0
"""The kind, pattern, operation or permission that no client may ask for."""

NO_AUTHORIZER: Final = "No Authorizer is configured."


def check_known(*enumerators: int) -> None:
    """Check what says kinds and operations. Numbers that nobody knows are let pass, as by Kafka.

    Raises:
        MalformedRequestError: One is `UNKNOWN`.
    """
    if UNKNOWN in enumerators:
        raise MalformedRequestError("an ACL or a filter of ACLs with an element of type 0, which is unknown")
