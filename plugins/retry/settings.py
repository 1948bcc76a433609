"""Pure core: the policy's topic keys."""

from __future__ import annotations

from typing import Final

from odradek.kernel.api import Between, ConfigKey, ConfigType, Durations, Importance, Part, Scope, UpdateMode

LEVELS_KEY: Final = "odradek.retry.levels"
ATTEMPTS_KEY: Final = "odradek.retry.attempts"
ATTEMPTS_MAX: Final = 10_000
LEVELS: Final = ("5s", "10s", "30s", "1m", "2m", "5m", "10m", "20m", "30m", "45m", "1h", "2h")
ATTEMPTS: Final = 16
DURATIONS: Final = Durations(0)
"""What is given back at once is a level, too."""

KEYS: Final = (
    ConfigKey(
        LEVELS_KEY,
        ConfigType.LIST,
        LEVELS,
        DURATIONS,
        scope=Scope.TOPIC,
        importance=Importance.MEDIUM,
        update_mode=UpdateMode.CLUSTER_WIDE,
        part=Part.TOPICS,
        doc="How long a failed record of a retry topic waits until it is given back for the first, second, ... time: "
        "durations such as 250ms, 5s, 1m30s, 2h, 1d. After the last one each attempt waits as long as that.",
    ),
    ConfigKey(
        ATTEMPTS_KEY,
        ConfigType.INT,
        ATTEMPTS,
        Between(0, ATTEMPTS_MAX),
        scope=Scope.TOPIC,
        importance=Importance.MEDIUM,
        update_mode=UpdateMode.CLUSTER_WIDE,
        part=Part.TOPICS,
        doc="How often a failed record of a retry topic is given back; a record that fails once more is a dead letter.",
    ),
)
