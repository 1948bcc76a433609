"""Pure core: the features of KIP-584, as far as this broker has them.

A feature tells clients that a protocol may be used; so one whose part is not built is neither supported nor finalized.
The table holds all that Apache Kafka 4.3.1 shows, with the part that must stand. `odradek.metadata.version.max` lowers
what a broker says it supports, and so what a new cluster has; what depends on a higher level it does not have then.

*Source:* ApiVersions of Apache Kafka 4.3.1; its `MetadataVersion` and `Feature` (levels, dependencies).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..config.keys import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config.broker import BrokerConfig


class Feature(NamedTuple):
    """A feature: the levels that are supported, the one that a new cluster has, and the part it belongs to.

    Levels above 0 depend on a `metadata.version` of at least `depends_on`.
    """

    name: str
    level_min: int
    level_max: int
    level_new: int
    part: Part
    depends_on: int = 0


KRAFT_VERSION: Final = "kraft.version"
METADATA_VERSION: Final = "metadata.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"

METADATA_VERSION_MIN: Final = 7
"""3.3-IV3: the oldest level that Kafka 4 supports."""

METADATA_VERSION_ELR: Final = 23
"""4.0-IV1: partitions have eligible leader replicas (KIP-966)."""

METADATA_VERSION_CORDONS: Final = 30
"""4.3-IV0: log directories can be cordoned (KIP-1066)."""

METADATA_VERSION_MAX: Final = 30
"""4.3-IV0."""

ALL_FEATURES: Final = (
    Feature("group.version", 0, 1, 1, Part.GROUPS),
    Feature(KRAFT_VERSION, 0, 1, 0, Part.METADATA),
    Feature(METADATA_VERSION, METADATA_VERSION_MIN, METADATA_VERSION_MAX, METADATA_VERSION_MAX, Part.METADATA),
    Feature("share.version", 0, 1, 1, Part.SHARE_GROUPS),
    Feature("streams.version", 0, 1, 1, Part.STREAMS_GROUPS),
    Feature("transaction.version", 0, 2, 2, Part.TRANSACTIONS),
    Feature(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, 1, 1, Part.METADATA, depends_on=METADATA_VERSION_ELR),
)
"""In the order of Kafka's answer."""


def has_cordons(finalized: Mapping[str, int]) -> bool:
    """Return whether log directories can be cordoned at these levels."""
    return finalized.get(METADATA_VERSION, 0) >= METADATA_VERSION_CORDONS


NOT_SUPPORTED: Final = (0, 0)
"""The range of a feature that somebody does not know."""


def supported_features(config: BrokerConfig) -> list[Feature]:
    """Return the features whose part stands, as far as the broker's configuration lets it have them."""
    highest = config.get_int("odradek.metadata.version.max")
    return [
        feature._replace(level_max=highest, level_new=highest) if feature.name == METADATA_VERSION else feature
        for feature in ALL_FEATURES
        if feature.part.stands and feature.depends_on <= highest
    ]


def supported_ranges(config: BrokerConfig) -> dict[str, tuple[int, int]]:
    """Return name to (lowest, highest) supported level, as ApiVersions and a registration show them."""
    return {feature.name: (feature.level_min, feature.level_max) for feature in supported_features(config)}


def why_not_supported(who: str, levels: tuple[int, int], level: int) -> str:
    """Return why somebody who supports these levels of a feature cannot have it at `level`; empty: it can.

    *Source:* Kafka's `QuorumFeatures.reasonNotSupported`.
    """
    lowest, highest = levels
    if lowest <= level <= highest:
        return ""
    if highest == 0:
        return f"{who} does not support this feature."
    return f"{who} only supports versions {lowest}-{highest}"


def unreadable_feature(
    finalized: Mapping[str, int], supported: Mapping[str, tuple[int, int]]
) -> tuple[str, int, tuple[int, int]] | None:
    """Return a finalized feature that is beyond what somebody supports: its name, its level, what is supported."""
    for name, level in finalized.items():
        lowest, highest = supported.get(name, NOT_SUPPORTED)
        if not lowest <= level <= highest:
            return name, level, (lowest, highest)
    return None
