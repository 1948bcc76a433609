"""Shell: where new identifiers come from, injected so that one seed replays one run."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Protocol

from ..types import id_text

if TYPE_CHECKING:
    import random


class IdSource(Protocol):
    """Makes identifiers that no one has seen before."""

    def new_id(self) -> uuid.UUID:
        """Return a random id: never `ZERO_ID` or `METADATA_TOPIC_ID`, its text never begins with a dash."""
        ...


class RandomIds:
    """Ids from a random source: `random.SystemRandom()` in production, a seeded one in tests."""

    def __init__(self, random_source: random.Random) -> None:
        self._random = random_source

    def new_id(self) -> uuid.UUID:
        """Return a version 4 id that is safe on a command line and is not reserved by Kafka."""
        while True:
            candidate = uuid.UUID(int=self._random.getrandbits(128), version=4)
            if not id_text(candidate).startswith("-"):
                return candidate
