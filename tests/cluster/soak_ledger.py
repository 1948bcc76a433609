"""What a soak has been through: a file with a line of JSON for each round, added to at its end.

A last line that has no end is what a crash left of one: its round is begun anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TypedDict


class Round(TypedDict):
    """A round.

    Keys: which; whether brokers and clients spoke TLS; how long it took; what happened, with the seconds it took; how
    many records were acknowledged and transactions committed; what is wrong, if something is.
    """

    round: int
    tls: bool
    seconds: float
    accidents: list[tuple[str, float]]
    acknowledged: int
    committed: int
    failure: str


class Ledger:
    """The file, and what is in it."""

    def __init__(self, path: Path) -> None:
        """Read it; a new one is empty."""
        self._path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)
        self.rounds: list[Round] = [json.loads(line) for line in whole.splitlines()]

    def add(self, done: Round) -> None:
        """Add a round; afterwards it is on the disk."""
        self.rounds.append(done)
        with self._path.open("a") as file:
            file.write(f"{json.dumps(done)}\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def next_round(self) -> int:
        """The number of the next one: that of the last again, if it failed."""
        if not self.rounds:
            return 1
        last = self.rounds[-1]
        return last["round"] + (0 if last["failure"] else 1)

    @property
    def seconds(self) -> float:
        """How long all those took that went well."""
        return sum(each["seconds"] for each in self.rounds if not each["failure"])

    @property
    def summary(self) -> dict[str, Any]:
        """What came of all of them: how often what happened, and how much was looked for."""
        well = [each for each in self.rounds if not each["failure"]]
        accidents: dict[str, int] = {}
        for each in well:
            for kind, _ in each["accidents"]:
                accidents[kind] = accidents.get(kind, 0) + 1
        return {
            "rounds": len(well),
            "failed": len(self.rounds) - len(well),
            "minutes": round(self.seconds / 60, 1),
            "acknowledged": sum(each["acknowledged"] for each in well),
            "committed": sum(each["committed"] for each in well),
            "accidents": accidents,
        }
