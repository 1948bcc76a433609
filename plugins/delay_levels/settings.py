"""Pure core: the topic key of the levels."""

from __future__ import annotations

from typing import Final

from odradek.kernel.api import ConfigKey, ConfigType, Durations, Importance, Part, Scope, UpdateMode

LEVELS_KEY: Final = "odradek.delay.levels"
LEVELS: Final = ("5s", "10s", "30s", "1m", "2m", "5m", "10m", "20m", "30m", "45m", "1h", "2h")
DURATIONS: Final = Durations(1)
"""Nothing could be rounded up to a level of no time."""

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
        doc="With `odradek.delay.queue=levels`, how long delayed records wait: durations such as 250ms, 5s, 1m30s, 2h. "
        "A delay is rounded up to the next of them; above the longest it waits for that, as often as it takes, "
        "and then for the rest. What waits already waits as it did when other levels are set.",
    ),
)
