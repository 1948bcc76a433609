"""Pure core: ranges of versions in the notation of Kafka's definitions: `"3"`, `"0-12"`, `"9+"`, `"none"`."""

from __future__ import annotations

from typing import Final, NamedTuple

_NO_LIMIT: Final = 32767


class Versions(NamedTuple):
    """A closed range of versions; empty if `lowest > highest`."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __str__(self) -> str:
        if self.lowest > self.highest:
            return "none"
        if self.highest == _NO_LIMIT:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


NO_VERSIONS: Final = Versions(_NO_LIMIT + 1, -1)
"""No version reaches its `lowest`: so `version >= flexible.lowest` tells cheaply whether a version is flexible."""


def parse_versions(text: str) -> Versions:
    """Return the range that `text` writes.

    Raises:
        ValueError: `text` is none of the four forms.
    """
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), _NO_LIMIT)
    lowest, _, highest = text.partition("-")
    return Versions(int(lowest), int(highest or lowest))
