"""Pure core: the topic key of the levels."""

from __future__ import annotations

from typing import Final

from odradek.kernel.api import (
    ConfigError,
    ConfigKey,
    ConfigType,
    Importance,
    InvalidValueError,
    Part,
    Scope,
    UpdateMode,
)

LEVELS_KEY: Final = "odradek.delay.levels"
LEVELS: Final = ("5s", "10s", "30s", "1m", "2m", "5m", "10m", "20m", "30m", "45m", "1h", "2h")
LEVEL_MS_MAX: Final = 315_576_000_000
"""Ten years, which is the most that a record may wait if nobody says otherwise."""


def level_ms(text: str) -> int | None:
    """Return how many milliseconds a level lasts; None where it is none, or lasts no time, or above ten years."""
    from odradek.kernel.api import parse_duration  # a broker without such topics does not pay for it

    try:
        duration = parse_duration(text)
    except ConfigError:
        return None
    return duration if 0 < duration <= LEVEL_MS_MAX else None


class Levels:
    """A list of durations, at least one, none of them of no time: nothing could be rounded up to that."""

    def check(self, name: str, value: object) -> None:
        """Refuse what is no list of levels.

        Raises:
            InvalidValueError: It is none.
        """
        if not value or not isinstance(value, tuple):
            raise InvalidValueError(f"Configuration '{name}' must name a level at least, such as 5s")
        for entry in value:
            if level_ms(str(entry)) is None:
                raise InvalidValueError(
                    f"Configuration '{name}': {str(entry)!r} is no level: a duration such as 5s, 250ms, 1m30s, "
                    "a millisecond at least and ten years at most"
                )

    def describe(self) -> str:
        """Say what is valid, for the reference page."""
        return "durations, such as 5s,1m,2h"


KEYS: Final = (
    ConfigKey(
        LEVELS_KEY,
        ConfigType.LIST,
        LEVELS,
        Levels(),
        scope=Scope.TOPIC,
        importance=Importance.MEDIUM,
        update_mode=UpdateMode.CLUSTER_WIDE,
        part=Part.TOPICS,
        doc="With `odradek.delay.queue=levels`, how long delayed records wait: durations such as 250ms, 5s, 1m30s, 2h. "
        "A delay is rounded up to the next of them; above the longest it waits for that, as often as it takes, "
        "and then for the rest. What waits already waits as it did when other levels are set.",
    ),
)
