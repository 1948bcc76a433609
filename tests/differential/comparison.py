"""Pure core: two answers compared field by field, and the list of differences that are known and explained."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conversation import Step

MISSING = "<missing>"


@attrs.frozen
class Difference:
    """One field that we answer otherwise; `path` is dotted, with list positions as numbers."""

    session: str
    step: str
    path: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.session} | {self.step} | {self.path}: Kafka {self.kafka!r}, ours {self.ours!r}"


@attrs.frozen
class KnownDifference:
    """An entry of the list: sessions, shell patterns for step and path, and the reason.

    Attributes:
        sessions: Names of the sessions, in each of which it must explain something; `*` for all that chance draws.
        step: Pattern of step names, e.g. `Metadata v1?: *`.
        path: Pattern of paths, e.g. `topics.*.error_code`.
        reason: Why we answer otherwise.
        kafka: Kafka's value, as text, where the entry is about that value only; a pattern.
        ours: Likewise, our value.
    """

    sessions: list[str]
    step: str
    path: str
    reason: str
    kafka: str = "*"
    ours: str = "*"

    def covers(self, difference: Difference) -> bool:
        """Say whether the entry explains a difference."""
        return (
            any(fnmatchcase(difference.session, session) for session in self.sessions)
            and fnmatchcase(difference.step, self.step)
            and fnmatchcase(difference.path, self.path)
            and fnmatchcase(str(difference.kafka), self.kafka)
            and fnmatchcase(str(difference.ours), self.ours)
        )


def load_known(path: Path) -> list[KnownDifference]:
    """Return the entries of a list of known differences; one with several paths is an entry for each."""
    found = []
    for entry in tomllib.loads(path.read_text()).get("difference", []):
        paths = entry.pop("path")
        found += [KnownDifference(**entry, path=each) for each in ([paths] if isinstance(paths, str) else paths)]
    return found


def compare(session: str, kafka: list[Step], ours: list[Step]) -> list[Difference]:
    """Return every field that differs; a session that took another course differs in `(steps)`."""
    found = []
    for expected, actual in zip(kafka, ours, strict=False):
        if expected.name != actual.name:
            instead = f"{actual.name}: {actual.answer}"
            found.append(Difference(session, expected.name, "(steps)", expected.name, instead))
            return found
        found += [Difference(session, expected.name, *leaf) for leaf in _leaves("", expected.answer, actual.answer)]
    if len(kafka) != len(ours):
        found.append(Difference(session, "(end)", "(steps)", len(kafka), len(ours)))
    return found


def _leaves(path: str, kafka: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in kafka | ours:
            yield from _leaves(f"{path}.{name}".lstrip("."), kafka.get(name, MISSING), ours.get(name, MISSING))
    elif isinstance(kafka, list) and isinstance(ours, list):
        if len(kafka) != len(ours):
            yield f"{path}.length".lstrip("."), len(kafka), len(ours)
        for position, (expected, actual) in enumerate(zip(kafka, ours, strict=False)):
            yield from _leaves(f"{path}.{position}".lstrip("."), expected, actual)
    elif kafka != ours or isinstance(kafka, bool) != isinstance(ours, bool):
        yield path or "(answer)", kafka, ours
