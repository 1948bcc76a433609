"""Shell: many seeds of one scenario: run one after the other, summed up, and judged as a whole."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import attrs

from .append import APPEND
from .campaign_results import SEEDS_FOR_COVERAGE
from .compaction import COMPACTION
from .delays import DELAYS
from .disks import DISKS
from .groups import GROUPS
from .quorum import QUORUM
from .replication import REPLICATION
from .retries import RETRIES
from .runs import run_seed
from .spread_transactions import SPREAD_TRANSACTIONS
from .transactions import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .runs import Outcome, Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each
    for each in (
        APPEND,
        TRANSACTIONS,
        GROUPS,
        COMPACTION,
        DISKS,
        REPLICATION,
        SPREAD_TRANSACTIONS,
        DELAYS,
        RETRIES,
        QUORUM,
    )
}
"""All scenarios, by name."""


@attrs.define
class Campaign:
    """What became of many seeds.

    Attributes:
        scenario: What was run.
        settings: Broker's settings that beat those of the scenario.
        outcomes: In the order of the seeds.
    """

    scenario: Scenario
    settings: Mapping[str, str]
    outcomes: list[Outcome] = attrs.field(factory=list)

    def run(self, seeds: Iterable[int], on_outcome: Callable[[Outcome], object]) -> None:
        """Run seeds, and tell of each."""
        for seed in seeds:
            outcome = run_seed(self.scenario, seed, self.settings)
            # Of those that went well only the figures are kept.
            self.outcomes.append(outcome)
            on_outcome(outcome)

    @property
    def failed(self) -> list[Outcome]:
        """The seeds with which something is wrong."""
        return [outcome for outcome in self.outcomes if outcome.failure]

    @property
    def coverage(self) -> dict[str, int]:
        """What all seeds exercised together, by name."""
        total: dict[str, int] = {}
        for outcome in self.outcomes:
            for name, count in outcome.coverage.items():
                total[name] = total.get(name, 0) + count
        return dict(sorted(total.items()))

    @property
    def missing(self) -> list[str]:
        """What no seed exercised although it should have; nothing with few seeds."""
        if len(self.outcomes) < SEEDS_FOR_COVERAGE:
            return []
        coverage = self.coverage
        return [name for name in self.scenario.over_all if not coverage.get(name)]

    def as_json(self) -> dict[str, Any]:
        """Return the figures; `trace_hash` is the seed's own for one, and the hash of all hashes for several."""
        hashes = [outcome.trace_hash for outcome in self.outcomes]
        joined = hashlib.blake2b("".join(hashes).encode(), digest_size=16).hexdigest()
        return {
            "seeds": len(self.outcomes),
            "failed": [outcome.seed for outcome in self.failed],
            "trace_hash": hashes[0] if len(hashes) == 1 else joined,
            "simulated_s": round(sum(outcome.simulated_s for outcome in self.outcomes), 6),
            "wall_s": round(sum(outcome.wall_s for outcome in self.outcomes), 3),
            "coverage": self.coverage,
        }
