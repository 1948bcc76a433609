"""Pure core: the policy's topic keys, and which durations are levels."""

from __future__ import annotations

from typing import Final

from odradek.kernel.api import (
    Between,
    ConfigError,
    ConfigKey,
    ConfigType,
    Importance,
    InvalidValueError,
    Part,
    Scope,
    UpdateMode,
)

LEVELS_KEY: Final = "odradek.retry.levels"
ATTEMPTS_KEY: Final = "odradek.retry.attempts"
ATTEMPTS_MAX: Final = 10_000
LEVELS: Final = ("5s", "10s", "30s", "1m", "2m", "5m", "10m", "20m", "30m", "45m", "1h", "2h")
ATTEMPTS: Final = 16
DURATION_MS_MAX: Final = 315_576_000_000
"""Ten years: no record may wait longer, so a topic with such a level would take none."""


def duration_ms(text: str) -> int | None:
    """Return how many milliseconds a duration is, None where it is none, or above ten years."""
    from odradek.kernel.api import parse_duration  # a broker without such topics does not pay for it

    try:
        duration = parse_duration(text)
    except ConfigError:
        return None
    return duration if duration <= DURATION_MS_MAX else None


class Durations:
    """A list of durations, at least one."""

    def check(self, name: str, value: object) -> None:
        """Refuse what is no list of durations."""
        if not value or not isinstance(value, tuple):
            raise InvalidValueError(f"Configuration '{name}' must name a level at least, such as 5s")
        for entry in value:
            if duration_ms(str(entry)) is None:
                raise InvalidValueError(
                    f"Configuration '{name}': {str(entry)!r} is no duration up to ten years: such as 5s, 250ms, 1m30s"
                )

    def describe(self) -> str:
        """Say what is valid, for the reference page."""
        return "durations, such as 5s,1m,2h"


KEYS: Final = (
    ConfigKey(
        LEVELS_KEY,
        ConfigType.LIST,
        LEVELS,
        Durations(),
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
