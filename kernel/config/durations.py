"""Pure core: durations as people write them: on the command line, in keys, in tests."""

from __future__ import annotations

import re
from typing import Final

from ..errors import ConfigError

_UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_DURATION: Final = re.compile(
    r"P?(?:(?P<d>\d{1,6})d)?T?(?:(?P<h>\d{1,6})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,9}(?:\.\d{1,3})?)s)?"
    r"(?:(?P<ms>\d{1,12})ms)?",
    re.IGNORECASE | re.ASCII,
)


def parse_duration(text: str) -> int:
    """Return the milliseconds of `1h30m`, `7d`, `250ms` or, in ISO 8601, `PT1H30M`.

    Raises:
        ConfigError: It is none.
    """
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {unit: part for unit, part in found.groupdict().items() if part}
    if not parts:
        raise ConfigError(f"{text!r} is no duration", hint="1h30m, 7d, 45s, 250ms or PT1H30M")
    return round(sum(float(part) * _UNITS_MS[unit] for unit, part in parts.items()))
