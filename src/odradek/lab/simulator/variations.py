"""Pure core: what a long campaign runs: every scenario, where replicas vote, too.

To have another one run, add a line: what a campaign's file has of the others stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .promises import ELECTION, INTERNAL_ELECTION, QUORUM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Settings = tuple[tuple[str, str], ...]


class Variation(NamedTuple):
    """A scenario with settings.

    Attributes:
        scenario: Its name.
        settings: Broker's settings that beat those of the scenario: keys and values, by key.
    """

    scenario: str
    settings: Settings = ()

    @classmethod
    def of(cls, scenario: str, settings: Mapping[str, str]) -> Variation:
        """Return the one with these settings."""
        return cls(scenario, tuple(sorted(settings.items())))

    @property
    def title(self) -> str:
        """What a person calls it."""
        return " ".join((self.scenario, *(f"{key}={value}" for key, value in self.settings)))

    def command(self, seed: int) -> str:
        """Return the command that runs a seed again, event by event."""
        chosen = "".join(f" --set {key}={value}" for key, value in self.settings)
        return f"odradek sim --scenario {self.scenario}{chosen} --replay {seed} -v"


INTERNAL_VOTED: Final = ((INTERNAL_ELECTION, QUORUM),)
VOTED: Final = ((ELECTION, QUORUM), *INTERNAL_VOTED)

VARIATIONS: Final = (
    Variation("append"),
    Variation("transactions"),
    Variation("groups"),
    Variation("compaction"),
    Variation("disks"),
    Variation("replication"),
    Variation("replication", VOTED),
    Variation("spread_transactions"),
    Variation("spread_transactions", INTERNAL_VOTED),
    Variation("spread_transactions", VOTED),
    Variation("delays"),
    Variation("delays", VOTED),
    Variation("retry"),
    Variation("retry", VOTED),
    Variation("quorum"),
    Variation("quorum", VOTED),
)
"""What is run, in this order: a seed of each, then the next of each. Replicas vote where there are several brokers."""


def chosen_variations(scenarios: Iterable[str], settings: Mapping[str, str]) -> list[Variation]:
    """Return the variations of these scenarios; of one that has none, itself.

    Args:
        scenarios: Their names.
        settings: What beats the settings of each variation.
    """
    chosen: dict[Variation, None] = {}
    for scenario in scenarios:
        of_it = [each for each in VARIATIONS if each.scenario == scenario] or [Variation(scenario)]
        chosen.update(dict.fromkeys(Variation.of(scenario, {**dict(each.settings), **settings}) for each in of_it))
    return list(chosen)
