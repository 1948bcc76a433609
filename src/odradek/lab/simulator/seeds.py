"""Shell: one seed, split into independent streams of random numbers.

Each part of a run draws from a stream of its own name, so that one draw more in one of them does not disturb the
others. A stream is seeded by a hash of the seed and the name: the same on every machine, in every process and on every
Python, whatever `PYTHONHASHSEED` says.

Only methods of `random.Random` are used that have given the same numbers since Python 3.2: `random`, `getrandbits`,
`randrange`, `choice`, `shuffle`. Tests hold what they give.
"""

from __future__ import annotations

import hashlib
import random
from typing import Final

NETWORK: Final = "network"
FILES: Final = "files"
WORKLOAD: Final = "workload"
FAULTS: Final = "faults"
SCHEDULING: Final = "scheduling"
IDS: Final = "ids"

STREAMS: Final = (NETWORK, FILES, WORKLOAD, FAULTS, SCHEDULING, IDS)
"""The streams of a run. Each may be split further by names of its own: `ids/broker-1/3`."""


class Seeds:
    """The streams of one seed."""

    def __init__(self, seed: int) -> None:
        """Take a seed, >= 0."""
        self.seed = seed

    def stream(self, *names: str) -> random.Random:
        """Return a new source of random numbers, which gives the same numbers for the same names.

        Args:
            names: One of `STREAMS` first, then what splits it further.
        """
        text = "/".join((str(self.seed), *names))
        return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()))

    def __repr__(self) -> str:
        return f"<Seeds {self.seed}>"


def is_chosen(source: random.Random, share: float) -> bool:
    """Return True in a `share` of all cases, 0 to 1. Draws in any case, so that a share may change alone."""
    return source.random() < share


def between(source: random.Random, low: int, high: int) -> int:
    """Return a number of the closed range [low, high], mostly near `low`: what takes long is rare."""
    first, second = source.random(), source.random()
    return low + int((high - low) * first * second)
