"""Pure core: a long campaign: what came of its seeds, what a file has of that, and what is run next.

The file has a line of JSON for each seed that was run, behind one that says what it is:

    {"format": "odradek sim campaign", "version": 1}
    {"scenario": "append", "settings": {}, "seed": 1, "code": "5e0c…", "trace_hash": "91…", "failure": "", …}

Lines are added at its end, and none is changed. A last line that has no end is what a crash left of one: its seed is
run again. Of two lines of one seed the later counts. A seed that failed is run again once the code is another.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import attrs

from .variations import Variation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FORMAT: Final = "odradek sim campaign"
VERSION: Final = 1
SEEDS_FOR_COVERAGE: Final = 20
"""With so many seeds everything that a scenario is for must have come about."""

Job = tuple[Variation, int]
"""A seed to run."""


@attrs.frozen
class Result:
    """What came of a seed; a line of the file.

    Attributes:
        variation: What was run.
        seed: Which.
        code: What the code was that it was run with; `campaign_workers.code_hash` says it.
        trace_hash: The hash of everything that happened; empty if its process ended in the middle.
        failure: What is wrong; empty if nothing is.
        details: What helps to see why.
        simulated_s: How long it lasted in virtual time.
        wall_s: How long it took.
        coverage: What it exercised.
    """

    variation: Variation
    seed: int
    code: str
    trace_hash: str
    failure: str
    details: tuple[str, ...]
    simulated_s: float
    wall_s: float
    coverage: Mapping[str, int]

    @property
    def as_line(self) -> str:
        """Its line, with the line's end."""
        fields = attrs.asdict(self, recurse=False)
        variation = fields.pop("variation")
        named = {"scenario": variation.scenario, "settings": dict(variation.settings), **fields}
        named["wall_s"] = round(self.wall_s, 3)
        return f"{json.dumps(named)}\n"

    @classmethod
    def from_line(cls, line: str) -> Result:
        """Return what a line says.

        Raises:
            ValueError: It is none of a campaign's.
        """
        try:
            fields: dict[str, Any] = json.loads(line)
            return cls(
                Variation.of(fields["scenario"], fields["settings"]),
                details=tuple(fields["details"]),
                **{name: fields[name] for name in _PLAIN},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no result of a seed: {error!r}") from None


_PLAIN: Final = [each.name for each in attrs.fields(Result) if each.name not in ("variation", "details")]
HEADER: Final = f"{json.dumps({'format': FORMAT, 'version': VERSION})}\n"


def read_results(text: str) -> tuple[list[Result], int]:
    """Read a campaign's file.

    Returns:
        What it says, and how many of its characters are whole lines; what is behind them is of no use.

    Raises:
        ValueError: It is no such file, or of a version that is not known here; it says the line.
    """
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    if not lines:
        # Of a file of something else nothing is taken for what a crash left.
        if not HEADER.startswith(text):
            raise ValueError("line 1: this is no file of a campaign")
        return [], 0
    if lines[0] != HEADER:
        raise ValueError(f"line 1: this is no file of a campaign of version {VERSION}")
    results = []
    for number, line in enumerate(lines[1:], 2):
        try:
            results.append(Result.from_line(line))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return results, sum(map(len, lines))


@attrs.frozen
class Summary:
    """What came of the seeds of a variation.

    Attributes:
        variation: Which.
        seeds: How many were run.
        failed: Those with which something is wrong.
        simulated_s: How long they lasted in virtual time, together.
        wall_s: How long they took, together.
        coverage: What they exercised together.
        missing: What none exercised although it should; nothing with few seeds.
    """

    variation: Variation
    seeds: int
    failed: list[int]
    simulated_s: float
    wall_s: float
    coverage: dict[str, int]
    missing: list[str]

    @property
    def as_json(self) -> dict[str, Any]:
        """The same, for a program."""
        rounded = {"simulated_s": round(self.simulated_s, 3), "wall_s": round(self.wall_s, 3)}
        settings = {"scenario": self.variation.scenario, "settings": dict(self.variation.settings)}
        fields = attrs.asdict(self, recurse=False, filter=lambda each, _: each.name != "variation")
        return {**settings, **fields, **rounded}


class Progress:
    """How far a campaign has come: who runs it asks what is next, and tells what came of it.

    Attributes:
        results: The last of each seed that is asked for and was run.
    """

    def __init__(self, variations: Sequence[Variation], seeds: range, code: str) -> None:
        """Know of no result yet.

        Args:
            variations: What is to be run.
            seeds: Which seeds of each.
            code: What the code is now.
        """
        self._variations = variations
        self._seeds = seeds
        self._code = code
        self._wanted = set(variations)
        self._jobs: Iterator[Job] = self._due()
        self.results: dict[Job, Result] = {}

    def add(self, result: Result) -> None:
        """Take what came of a seed; of one that is not asked for nothing is kept."""
        if result.variation in self._wanted and result.seed in self._seeds:
            self.results[result.variation, result.seed] = result

    def next_job(self) -> Job | None:
        """Return what to run next, each once; None if nothing is left. What the file has was added before."""
        return next(self._jobs, None)

    def _due(self) -> Iterator[Job]:
        yield from [job for job, result in self.results.items() if result.failure and result.code != self._code]
        for seed in self._seeds:
            for variation in self._variations:
                if (variation, seed) not in self.results:
                    yield variation, seed

    @property
    def wanted_count(self) -> int:
        """How many seeds the campaign has, of all variations."""
        return len(self._variations) * len(self._seeds)

    @property
    def failed(self) -> list[Result]:
        """What failed, by variation and seed."""
        places = {variation: place for place, variation in enumerate(self._variations)}
        failed = [result for result in self.results.values() if result.failure]
        return sorted(failed, key=lambda result: (places[result.variation], result.seed))

    def summaries(self, over_all: Mapping[str, Iterable[str]]) -> list[Summary]:
        """Sum up, by variation.

        Args:
            over_all: What all seeds of a scenario together must have exercised, by its name.
        """
        by_variation: dict[Variation, list[Result]] = {variation: [] for variation in self._variations}
        for result in self.results.values():
            by_variation[result.variation].append(result)
        return [
            _summary(variation, results, over_all.get(variation.scenario, ()))
            for variation, results in by_variation.items()
        ]


def _summary(variation: Variation, results: Sequence[Result], over_all: Iterable[str]) -> Summary:
    coverage: dict[str, int] = {}
    for result in results:
        for name, count in result.coverage.items():
            coverage[name] = coverage.get(name, 0) + count
    return Summary(
        variation,
        seeds=len(results),
        failed=sorted(result.seed for result in results if result.failure),
        simulated_s=sum(result.simulated_s for result in results),
        wall_s=sum(result.wall_s for result in results),
        coverage=dict(sorted(coverage.items())),
        missing=[name for name in over_all if not coverage.get(name)] if len(results) >= SEEDS_FOR_COVERAGE else [],
    )
