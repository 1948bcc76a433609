"""What every group member in Python shares: options in, events out, one JSON object a line.

    member BOOTSTRAP GROUP TOPIC [--protocol classic|consumer] [--assignor NAME] [--instance NAME] [--session MS]
                                 [--subscribe topic|pattern]

A member reads until a line or the end of its standard input tells it to leave. It tells

    {"event": "assigned", "partitions": [0, 2]}      what it owns now, all of it, whenever that changes
    {"event": "records", "records": [[PARTITION, OFFSET, "value"], ...]}     what it read and has committed
    {"event": "left"}

With `--subscribe pattern`, which librdkafka and Java know in the consumer protocol, TOPIC is an expression that the
broker matches, and what is owned is told as "TOPIC:PARTITION".
"""

from __future__ import annotations

import argparse
import sys
import threading
from typing import TYPE_CHECKING

from .json_lines import say

if TYPE_CHECKING:
    from collections.abc import Iterable

HEARTBEAT_MS = 500
POLL_S = 0.1


class Member:
    """A member as it was asked for, and what it tells.

    Attributes:
        options: What the command line said.
        is_leaving: Set once it shall leave.
    """

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        for name in ("bootstrap", "group", "topic"):
            parser.add_argument(name)
        parser.add_argument("--protocol", default="classic")
        parser.add_argument("--assignor", default="range")
        parser.add_argument("--instance")
        parser.add_argument("--session", type=int, default=3_000)
        parser.add_argument("--subscribe", default="topic")
        self.options = parser.parse_args()
        self.is_leaving = threading.Event()
        self._owned: set[int | str] = set()
        threading.Thread(target=self._wait_for_the_end, daemon=True).start()

    def _wait_for_the_end(self) -> None:
        sys.stdin.readline()
        self.is_leaving.set()

    def owns(self, partitions: Iterable[int | str]) -> None:
        """Tell what it owns now, if that changed."""
        owned = set(partitions)
        if owned != self._owned:
            self._owned = owned
            say({"event": "assigned", "partitions": sorted(owned, key=str)})

    def read(self, records: Iterable[tuple[int, int, bytes | None]]) -> None:
        """Tell records: partition, offset, value."""
        told = [[partition, offset, (value or b"").decode()] for partition, offset, value in records]
        if told:
            say({"event": "records", "records": told})

    def left(self) -> None:
        """Tell that it has left."""
        say({"event": "left"})
