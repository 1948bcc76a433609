"""Pure core: which replica a consumer is to read from (KIP-392): `replica.selector.class`, by name.

| class of `org.apache.kafka.common.replica` | a consumer reads from |
| --- | --- |
| `LeaderSelector`, and when none is set | the leader |
| `RackAwareReplicaSelector` | the leader if it is in the consumer's rack, else an in-sync replica that is |

An in-sync replica has all that consumers may see; Kafka also sends them to others that have the offset asked for.

*Source:* KIP-392; Kafka's `RackAwareReplicaSelector`, `ReplicaManager.findPreferredReadReplica`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from ..errors import ConfigError
from .broker_nodes import NO_NODE, BrokerNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.election import PartitionState
    from ..metadata.image import MetadataImage

SELECTOR_KEY: Final = "replica.selector.class"

Selector: TypeAlias = "Callable[[PartitionState, BrokerNodes, str], int]"
"""Takes a partition, who can be reached, and the consumer's rack; returns a replica, -1 for the leader."""

Selection: TypeAlias = "Callable[[PartitionState], int]"
"""The same for the consumer of one request."""


def select_by_rack(state: PartitionState, nodes: BrokerNodes, rack: str) -> int:
    """Return an in-sync replica in a rack, -1 when the leader is there too, or nobody."""
    near = [
        replica
        for replica in state.replicas
        if replica in state.isr and replica in nodes.by_id and nodes.by_id[replica][0].rack == rack
    ]
    return NO_NODE if not near or state.leader in near else near[0]


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
        return lambda state: selector(state, BrokerNodes(image(), listener_name), rack)
