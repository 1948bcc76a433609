"""Shell: where new identifiers come from, injected so that one seed replays one run."""

from __future__ import annotations

import base64
import random
import uuid
from typing import Final, Protocol

ZERO_ID: Final = uuid.UUID(int=0)
"""Kafka's "no id"."""

METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
"""The id of `__cluster_metadata` in every cluster (KIP-516)."""


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


def id_text(identifier: uuid.UUID) -> str:
    """Return an id as Kafka prints it: URL-safe base 64 of its 16 bytes, without padding, 22 characters."""
    return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def parse_id(text: str) -> uuid.UUID:
    """Return the id that `id_text` printed.

    Raises:
        ValueError: `text` is not 22 characters of URL-safe base 64.
    """
    if len(text) != 22:
        raise ValueError(f"an id has 22 characters, {text!r} has {len(text)}")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
