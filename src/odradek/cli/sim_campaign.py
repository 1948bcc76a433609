"""Shell: `odradek sim --campaign FILE`: all scenarios for hours, in several processes, on from where it stopped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs

from odradek.kernel.errors import ConfigError

from . import note

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from odradek.lab.simulator.campaign_results import Progress, Result, Summary
    from odradek.lab.simulator.campaign_workers import CampaignFile
    from odradek.lab.simulator.variations import Variation


@attrs.frozen
class Asked:
    """What was asked for.

    Attributes:
        path: Of the campaign's file.
        variations: What is to be run.
        seeds: Which seeds of each.
        processes_count: In how many processes, >= 1.
        minutes_max: After so many no seed is begun; None for no end.
        is_silent: Whether no summary is printed.
    """

    path: Path
    variations: Sequence[Variation]
    seeds: range
    processes_count: int
    minutes_max: int | None
    is_silent: bool


def run_asked(asked: Asked) -> tuple[int, dict[str, Any]]:
    """Run a campaign, or as much of it as there is time for, and show what came of all of it.

    Returns:
        The exit status, and the figures.

    Raises:
        ConfigError: The file is of something else, or another campaign has it.
        OSError: The file cannot be written.
    """
    from odradek.lab.simulator.campaign import SCENARIOS
    from odradek.lab.simulator.campaign_results import Progress
    from odradek.lab.simulator.campaign_workers import CampaignFile, code_hash

    code = code_hash()
    progress = Progress(asked.variations, asked.seeds, code)
    try:
        file = CampaignFile(asked.path)
    except BlockingIOError:
        raise ConfigError("another campaign adds to it", where=str(asked.path), hint="--jobs shares the work") from None
    except ValueError as error:
        raise ConfigError(str(error), where=str(asked.path), hint="name another file: a new one is made") from None
    with file:
        for result in file.results:
            progress.add(result)
        _run_what_is_left(asked, progress, code, file)
    summaries = progress.summaries({name: scenario.over_all for name, scenario in SCENARIOS.items()})
    missing = [(summary.variation, what) for summary in summaries for what in summary.missing]
    for variation, what in missing:
        note(f"{variation.title}: no seed exercised {what!r}: nothing is proved of it")
    if not asked.is_silent:
        _show(progress, summaries)
    return 1 if progress.failed or missing else 0, _figures(progress, summaries)


def _run_what_is_left(asked: Asked, progress: Progress, code: str, file: CampaignFile) -> None:
    from odradek.kernel.machine.progress import ProgressLine
    from odradek.lab.simulator.campaign_workers import run_campaign

    line = ProgressLine()

    def told(result: Result) -> None:
        file.add(result)
        if result.failure:
            line.clear()
            _tell_failure(result)
        line.show(lambda: _how_far(progress))

    for result in progress.failed:
        if result.code == code:
            _tell_failure(result)
    line.show_now(_how_far(progress))
    run_campaign(
        progress,
        code,
        processes_count=asked.processes_count,
        seconds_max=math.inf if asked.minutes_max is None else asked.minutes_max * 60,
        on_result=told,
    )
    line.clear()


def _how_far(progress: Progress) -> str:
    return f"{len(progress.results)} of {progress.wanted_count} seeds, {len(progress.failed)} failed"


def _tell_failure(result: Result) -> None:
    """Print what failed, and the command that runs it again; its log lines are in the file."""
    note(f"{result.variation.title}, seed {result.seed}: {result.failure}")
    note(f"  {result.variation.command(result.seed)}")


def _show(progress: Progress, summaries: Sequence[Summary]) -> None:
    simulated_h = sum(summary.simulated_s for summary in summaries) / 3600
    wall_h = sum(summary.wall_s for summary in summaries) / 3600
    print(f"{_how_far(progress)}; {simulated_h:.1f} h simulated in {wall_h:.1f} h")
    print(f"  {'seeds':>7} {'failed':>7} {'s a seed':>9}  ")
    for summary in summaries:
        each_s = summary.wall_s / summary.seeds if summary.seeds else 0.0
        print(f"  {summary.seeds:>7} {len(summary.failed):>7} {each_s:>9.2f}  {summary.variation.title}")
    coverage: dict[str, int] = {}
    for summary in summaries:
        for name, count in summary.coverage.items():
            coverage[name] = coverage.get(name, 0) + count
    print("what they exercised:")
    for name, count in sorted(coverage.items()):
        print(f"  {count:>9}  {name}")


def _figures(progress: Progress, summaries: Sequence[Summary]) -> dict[str, Any]:
    return {
        "seeds": len(progress.results),
        "wanted": progress.wanted_count,
        "failed": [
            {
                "scenario": result.variation.scenario,
                "settings": dict(result.variation.settings),
                "seed": result.seed,
                "failure": result.failure,
                "command": result.variation.command(result.seed),
            }
            for result in progress.failed
        ],
        "codes": len({result.code for result in progress.results.values()}),
        "variations": [summary.as_json for summary in summaries],
    }
