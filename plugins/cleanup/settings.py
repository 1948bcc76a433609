"""Pure core: the topic keys of cleanup that Kafka does not have."""

from __future__ import annotations

from typing import Final

from odradek.kernel.api import AtLeast, ConfigKey, ConfigType, Importance, OneOf, Part, Scope, UpdateMode, Winner

STRATEGY_KEY: Final = "odradek.compaction.strategy"
HEADER_KEY: Final = "odradek.compaction.header"
TTL_LAG_KEY: Final = "odradek.ttl.lag.ms"

KEYS: Final = (
    ConfigKey(
        STRATEGY_KEY,
        ConfigType.STRING,
        Winner.OFFSET.value,
        OneOf(tuple(winner.value for winner in Winner)),
        scope=Scope.TOPIC,
        importance=Importance.MEDIUM,
        update_mode=UpdateMode.CLUSTER_WIDE,
        part=Part.CLEANUP,
        doc="Which record of a key compaction keeps: the last (`offset`), that with the largest timestamp "
        "(`timestamp`), or that with the largest number in the header that `odradek.compaction.header` names "
        "(`header`); of equal ones the last. What an earlier strategy has removed does not come back.",
    ),
    ConfigKey(
        HEADER_KEY,
        ConfigType.STRING,
        "",
        scope=Scope.TOPIC,
        importance=Importance.MEDIUM,
        update_mode=UpdateMode.CLUSTER_WIDE,
        part=Part.CLEANUP,
        doc="The header whose number decides under `odradek.compaction.strategy=header`; of several of that name the "
        "last. Up to 19 decimal digits, with a sign or without one, are read as they look; any other 8 bytes are a "
        "signed big-endian number; anything else is none. A record without a number loses to every one with a number; "
        "of several without the last stays.",
    ),
    ConfigKey(
        TTL_LAG_KEY,
        ConfigType.LONG,
        300_000,
        AtLeast(0),
        scope=Scope.TOPIC,
        importance=Importance.MEDIUM,
        update_mode=UpdateMode.CLUSTER_WIDE,
        part=Part.CLEANUP,
        doc="How long an expired record of a closed segment may stay under `cleanup.policy=ttl`: a segment is "
        "rewritten that often at most. Smaller frees space sooner and writes more.",
    ),
)
