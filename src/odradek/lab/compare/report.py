"""Pure core: all results of a comparison, as they are shown and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from .figures import ALL, ROUNDS_MIN, Spread, chance_apart, spreads

if TYPE_CHECKING:
    from .faults import Cluster
    from .variations import Choice, Combination
    from .workload import Workload

_NEVER: Final = 1e-6

FORMAT: Final = 1
"""Of the JSON; raised when what stands in it gets another meaning."""


@attrs.frozen
class Row:
    """What became of one combination.

    Attributes:
        combination: Which.
        figures: By name; None for what is not known.
        notes: What a reader of the figures should know.
        failed: Why there are no figures, or fewer rounds; empty where all went well.
    """

    combination: Combination
    figures: Mapping[str, Spread | None]
    notes: tuple[str, ...]
    failed: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether there is anything to show."""
        return any(spread is not None for spread in self.figures.values())

    def highest(self, name: str) -> float:
        """Return the worst round of a count; 0 where it is not known."""
        spread = self.figures.get(name)
        return spread.high if spread is not None else 0.0


@attrs.frozen
class Report:
    """A comparison.

    Attributes:
        workload: What was done.
        seed: What its records follow from.
        rounds: How often each combination was to run.
        fixed: What `--set` gave to all.
        rows: One for each combination, in order.
        machine: Facts about where it ran, by what they are about.
        command: The command line, as a person would type it again.
        made_at: When, ISO 8601.
        cluster: What each run had, if it was more than one broker.
    """

    workload: Workload
    seed: int
    rounds: int
    fixed: tuple[Choice, ...]
    rows: tuple[Row, ...]
    machine: Mapping[str, str]
    command: str
    made_at: str
    cluster: Cluster | None = None

    @property
    def measured(self) -> list[Row]:
        """The rows with figures."""
        return [row for row in self.rows if row.is_measured]

    def baseline_of(self, row: Row) -> Row:
        """Return the row that another is read against: the first one, of those of the same fault."""
        return next((each for each in self.measured if each.combination.fault == row.combination.fault), row)

    @property
    def keys(self) -> list[str]:
        """The keys that were varied, in order."""
        return [choice.key for choice in self.rows[0].combination.varied] if self.rows else []

    @property
    def losses(self) -> list[str]:
        """What was lost though nothing allows it, a line for each combination."""
        when = "while the broker lived" if self.cluster is None else "with all brokers back"
        return [
            f"{row.combination.label}: {row.highest('lost'):,.0f} acknowledged records lost, "
            f"{row.highest('wrong'):,.0f} wrong, {when}"
            for row in self.measured
            if row.highest("lost") or row.highest("wrong")
        ]

    @property
    def failures(self) -> list[str]:
        """What could not be run, a line for each combination."""
        return [f"{row.combination.label}: {row.failed}" for row in self.rows if row.failed]

    @property
    def rounds_done(self) -> int:
        """How many rounds were measured of the combination that was measured most: fewer when it was interrupted."""
        return max((len(spread.values) for row in self.rows for spread in row.figures.values() if spread), default=0)

    @property
    def rounds_text(self) -> str:
        """How often each combination was run, in words."""
        done = self.rounds_done
        words = f"{done} round{'' if done == 1 else 's'}"
        return words if done == self.rounds else f"{words} of {self.rounds}"

    @property
    def about_ranges(self) -> str:
        """What a reader must know of the ranges."""
        rounds = self.rounds_done
        if rounds < ROUNDS_MIN:
            return f"Too few rounds for any difference to be told from noise: --rounds {ROUNDS_MIN} at least, better 5."
        chance = chance_apart(rounds)
        seldom = f"about one of {1 / chance:,.0f} figures" if chance > _NEVER else "hardly any figure"
        return (
            "Medians of the rounds, with the smallest and the largest of them. Differences smaller than these ranges "
            f"mean nothing; and with {rounds} rounds, the ranges of two combinations that are the same lie apart in "
            f"{seldom}, by chance."
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        return {
            "format": FORMAT,
            "made_at": self.made_at,
            "command": self.command,
            "seed": self.seed,
            "rounds": self.rounds,
            "rounds_done": self.rounds_done,
            "machine": dict(self.machine),
            "cluster": None if self.cluster is None else attrs.asdict(self.cluster),
            "workload": {**_plain(self.workload), "toml": self.workload.as_toml()},
            "set": {choice.key: choice.shown for choice in self.fixed},
            "figures": [
                {
                    "name": figure.name,
                    "unit": figure.unit.value,
                    "group": figure.group.value,
                    "better": {True: "high", False: "low", None: None}[figure.is_better_high],
                    "text": figure.text,
                }
                for figure in ALL
            ],
            "combinations": [_row_as_json(row) for row in self.rows],
        }


def row_of(combination: Combination, rounds: Sequence[Mapping[str, Any]], notes: Sequence[str], failed: str) -> Row:
    """Join what the rounds of one combination came to.

    Args:
        combination: Which.
        rounds: The figures of each round.
        notes: Of all rounds.
        failed: Why it was given up, or empty.
    """
    return Row(combination, spreads([dict(one) for one in rounds]), tuple(dict.fromkeys(notes)), failed)


def _plain(workload: Workload) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in _fields(workload)}


def _fields(workload: Workload) -> list[tuple[str, Any]]:
    return [(field.name, getattr(workload, field.name)) for field in attrs.fields(type(workload))]


def _row_as_json(row: Row) -> dict[str, Any]:
    return {
        "label": row.combination.label,
        "varied": {choice.key: choice.shown for choice in row.combination.varied},
        "fault": row.combination.fault or None,
        "settings": row.combination.shown_settings,
        "failed": row.failed or None,
        "notes": list(row.notes),
        "figures": {name: _spread_as_json(spread) for name, spread in row.figures.items()},
    }


def _spread_as_json(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    values = [_rounded(value) for value in spread.values]
    return {
        "median": _rounded(spread.median),
        "min": _rounded(spread.low),
        "max": _rounded(spread.high),
        "values": values,
    }


def _rounded(value: float) -> float | int:
    """Return a number without digits that mean nothing."""
    return int(value) if value == int(value) else float(f"{value:.6g}")
