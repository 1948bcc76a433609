"""Pure core: what the handlers of the consumer protocol have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode, KafkaError

from ..group_type import GroupType

if TYPE_CHECKING:
    from odradek.kernel.api import BrokerHandle

FEATURE: Final = "group.version"
FEATURE_LEVEL_MIN: Final = 1
"""From this level on all brokers know the records of the consumer protocol."""

PROTOCOLS_KEY: Final = "group.coordinator.rebalance.protocols"


def check_enabled(broker: BrokerHandle) -> None:
    """Check that groups of the consumer protocol are served.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    is_listed = GroupType.CONSUMER.value in broker.config.get_list(PROTOCOLS_KEY)
    if not is_listed or broker.cluster.feature_level(FEATURE) < FEATURE_LEVEL_MIN:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def message_of(code: ErrorCode, detail: str) -> str | None:
    """Return an error's message: none when it only says what the code says."""
    return None if detail == code.text else detail
