"""Pure core: the features of KIP-584, as far as this broker has them.

A feature tells clients that a protocol may be used; so one whose part is not built is neither supported nor finalized.
The table holds all that Apache Kafka 4.3.1 shows, with the part that must stand:

*Source:* ApiVersions of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..config.keys import Part


class Feature(NamedTuple):
    """A feature: the levels that are supported, the one that a new cluster has, and the part it belongs to."""

    name: str
    level_min: int
    level_max: int
    level_new: int
    part: Part


KRAFT_VERSION: Final = "kraft.version"
METADATA_VERSION: Final = "metadata.version"

ALL_FEATURES: Final = (
    Feature("group.version", 0, 1, 1, Part.GROUPS),
    Feature(KRAFT_VERSION, 0, 1, 0, Part.METADATA),
    Feature(METADATA_VERSION, 7, 30, 30, Part.METADATA),
    Feature("share.version", 0, 1, 1, Part.SHARE_GROUPS),
    Feature("streams.version", 0, 1, 1, Part.STREAMS_GROUPS),
    Feature("transaction.version", 0, 2, 2, Part.TRANSACTIONS),
    Feature("eligible.leader.replicas.version", 0, 1, 1, Part.CLUSTER),
)
"""In the order of Kafka's answer."""


def supported_features() -> list[Feature]:
    """Return the features whose part stands."""
    return [feature for feature in ALL_FEATURES if feature.part.stands]


def supported_ranges() -> dict[str, tuple[int, int]]:
    """Return name to (lowest, highest) supported level, as ApiVersions shows them."""
    return {feature.name: (feature.level_min, feature.level_max) for feature in supported_features()}
