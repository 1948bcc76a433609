"""Pure core: the keys that govern consumer groups: a group's own settings, over the broker's."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import BrokerHandle

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"
_BROKER_PREFIX: Final = "group."
"""What the broker's key has in front of the group's."""


class MigrationPolicy(Enum):
    """`group.consumer.migration.policy`: whether classic groups become consumer groups, and back."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a member of the consumer protocol may join a classic group, which becomes a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group becomes a classic one when only members of the classic protocol are left."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class Settings:
    """What is configured now. One a shard."""

    def __init__(self, broker: BrokerHandle) -> None:
        """Make it."""
        self._broker = broker

    def of_group(self, group_id: str, key: str) -> int:
        """Return a group's number, or else the broker's."""
        own = self._broker.cluster.group_configs(group_id).get(key)
        return self._broker.config.get_int(_BROKER_PREFIX + key) if own is None else int(own)

    @property
    def size_max(self) -> int:
        """How many members a consumer group may have."""
        return self._broker.config.get_int("group.consumer.max.size")

    @property
    def classic_size_max(self) -> int:
        """How many members a classic group may have."""
        return self._broker.config.get_int("group.max.size")

    @property
    def regex_refresh_ms(self) -> int:
        """After how long regular expressions are looked up again, although no topic came."""
        return self._broker.config.get_int("group.consumer.regex.refresh.interval.ms")

    @property
    def assignors(self) -> Sequence[str]:
        """The server-side assignors that members may choose; the first is the default."""
        return self._broker.config.get_list("group.consumer.assignors")

    @property
    def migration(self) -> MigrationPolicy:
        """Whether groups change their protocol."""
        return MigrationPolicy(self._broker.config.get_text("group.consumer.migration.policy").lower())
