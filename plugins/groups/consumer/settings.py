"""Pure core: the keys that govern consumer groups: a group's own settings, over the broker's.

*Source:* `GroupConfigManager` of Kafka 4.3.1, for bounds that have changed.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import BrokerHandle

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"


class _BrokerKeys(NamedTuple):
    """The broker's keys for a number that groups may set: what counts if a group does not, and within which bounds."""

    default: str
    least: str
    most: str


_BROKER_KEYS: Final = {
    f"consumer.{rest}": _BrokerKeys(
        f"group.consumer.{rest}", f"group.consumer.min.{rest}", f"group.consumer.max.{rest}"
    )
    for rest in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
}


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
        """Return a group's number, or else the broker's.

        The bounds of the broker are not always what they were when the group's was set: it keeps within those of now.
        """
        config, keys = self._broker.config, _BROKER_KEYS[key]
        own = self._broker.cluster.group_configs(group_id).get(key)
        if own is None:
            return config.get_int(keys.default)
        return min(max(int(own), config.get_int(keys.least)), config.get_int(keys.most))

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
