"""Pure core: which replica a consumer is to read from (KIP-392): `replica.selector.class`, by name.

| class of `org.apache.kafka.common.replica` | a consumer reads from |
| --- | --- |
| `LeaderSelector`, and when none is set | the leader |
| `RackAwareReplicaSelector` | the leader if it is in the consumer's rack, else the most caught-up replica that is |

In sync or not: a replica that lives counts, as long as its log holds the offset that is asked for.

*Source:* KIP-392; `RackAwareReplicaSelector`, `ReplicaView.comparator` and `ReplicaManager.findPreferredReadReplica` of
Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from ..errors import ConfigError
from ..partitions.follower_positions import FollowerPositions
from .broker_nodes import NO_NODE, BrokerNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..config.broker import BrokerConfig
    from ..metadata.image import MetadataImage
    from ..partitions.replica import Replica
    from .fetch_target import FetchTarget

SELECTOR_KEY: Final = "replica.selector.class"

Selector: TypeAlias = "Callable[[Replica, int, BrokerNodes, str], int]"
"""Takes a replica that leads, the offset that is asked for, who can be reached, and the consumer's rack; returns the
replica that is to be read from, -1 for the leader."""

Selection: TypeAlias = "Callable[[Replica, int], int]"
"""The same for the consumer of one request."""


def note_position(replica: Replica, target: FetchTarget, follower_id: int, now_ms: int) -> None:
    """Take note of where a follower's log begins and ends, by what it asks for."""
    if replica.followers is None:
        replica.followers = FollowerPositions()
    replica.followers.note(
        follower_id,
        log_start_offset=target.follower_log_start_offset,
        log_end_offset=target.fetch_offset,
        leader_end_offset=replica.appended_offset,
        now_ms=now_ms,
    )


def select_by_rack(replica: Replica, offset: int, nodes: BrokerNodes, rack: str) -> int:
    """Return the most caught-up replica of a rack that holds an offset, -1 when the leader is there, or nobody."""

    def is_near(broker_id: int) -> bool:
        return broker_id in nodes.by_id and nodes.by_id[broker_id][0].rack == rack

    if replica.followers is None or is_near(replica.leader_id):
        return NO_NODE
    near = [
        (position.log_end_offset, position.caught_up_ms, broker_id)
        for broker_id, position in replica.followers.items()
        if position.holds(offset) and replica.is_follower(broker_id) and is_near(broker_id)
    ]
    return max(near)[2] if near else NO_NODE


SELECTORS: Final[Mapping[str, Selector | None]] = {
    "org.apache.kafka.common.replica.LeaderSelector": None,
    "org.apache.kafka.common.replica.RackAwareReplicaSelector": select_by_rack,
}
"""By the names of Kafka's classes; None where every consumer reads from the leader."""


class ReplicaSelection:
    """Says for each request how its consumer's replicas are selected: by `selector`, None for by the leader alone."""

    def __init__(self, selector: Selector | None, image: Callable[[], MetadataImage]) -> None:
        """Make it with a selector, or with none."""
        self.selector = selector
        self._image = image

    @classmethod
    def configured(cls, config: BrokerConfig, image: Callable[[], MetadataImage]) -> ReplicaSelection:
        """Return the one that the configuration names.

        Raises:
            ConfigError: There is no such selector.
        """
        name = config.get_text(SELECTOR_KEY)
        if name and name not in SELECTORS:
            raise ConfigError(
                f"{SELECTOR_KEY} is {name!r}, which is no class that is known here",
                where=config.where(SELECTOR_KEY),
                hint=f"there is {' and '.join(SELECTORS)}",
            )
        return cls(SELECTORS[name] if name else None, image)

    def of_consumer(self, rack: str, listener_name: str) -> Selection | None:
        """Return how the replicas of a consumer in a rack are selected; None: it reads from leaders."""
        selector = self.selector
        if selector is None or not rack:
            return None
        image = self._image
        return lambda replica, offset: selector(replica, offset, BrokerNodes(image(), listener_name), rack)
