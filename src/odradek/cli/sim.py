"""Shell: `odradek sim`: whole brokers and clients on virtual time, seed by seed, with crashes and a failing network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ConfigError

from . import note
from .options import document, natural, positive

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from odradek.lab.simulator.campaign import Campaign
    from odradek.lab.simulator.runs import Outcome, Scenario

SEEDS: Final = 20
SCENARIO: Final = "append"
SEEDS_OF_CAMPAIGN: Final = 750
"""Of each variation: ten thousand in all."""
STANDARD_OUTPUT: Final = "-"

_NOTES: Final = """
A seed decides everything that happens in a run: the workload, what fails and
when, the order of tasks. The same seed gives the same run on every machine, as
long as neither Odradek nor its plugins change; its trace hash shows it.

--set chooses any key of the broker, plugins' among them: a storage or an
election of your own is tried under the same accidents as ours.
--campaign runs every scenario, where replicas vote, too, a seed of each and then
the next of each. What came of a seed is added to FILE at once: the same command
goes on where it stopped, however it ended. Seeds that failed are run again once
the code is another.
docs/how-to/simulate.md says what is simulated, and what is not.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Run whole brokers and clients in one thread on virtual time, while processes die, machines lose power and the "
        "network fails, and check that what was promised holds.",
        [
            ("sim --seeds 200", "two hundred runs"),
            ("sim --seeds 200 --from 1000 --json sim.json", "others, and the figures in a file"),
            ("sim --replay 4711 -v", "one run again, event by event"),
            ("sim --seeds 50 --set odradek.storage=mine", "a storage of your own"),
            ("sim --campaign sim.jsonl --jobs 2 --minutes 60", "all scenarios, as far as an hour takes it"),
            ("sim --scenarios", "what can be run"),
        ],
        notes=_NOTES,
        exit_status="0 every seed kept every promise, 1 one did not, 2 wrong usage or configuration, 130 interrupted",
    )
    parser.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help=f"how many (default {SEEDS}; of each variation of a campaign {SEEDS_OF_CAMPAIGN})",
    )
    parser.add_argument("--from", type=natural, default=1, metavar="S", dest="first", help="the first one (default 1)")
    parser.add_argument(
        "--scenario", metavar="NAME", help=f"what happens (default {SCENARIO}; in a campaign all, one after the other)"
    )
    parser.add_argument("--scenarios", action="store_true", help="list the scenarios, and exit")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="options", help="a setting of the brokers"
    )
    parser.add_argument("--json", metavar="FILE|-", help="write the figures; to standard output instead of the text")
    parser.add_argument("--replay", type=natural, metavar="SEED", help="run this seed alone")
    parser.add_argument("--campaign", metavar="FILE", help="run all scenarios, and go on where FILE says")
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="with --campaign: processes beside each other (default 1)"
    )
    parser.add_argument("--minutes", type=positive, metavar="M", help="with --campaign: begin no seed after so long")
    parser.add_argument("-v", "--verbose", action="store_true", help="with --replay: print every event and log line")


def run(arguments: argparse.Namespace) -> int:
    """Run seeds, and show what came of them.

    Raises:
        ConfigError: An option is wrong.
        OSError: The file cannot be written.
    """
    from odradek.lab.simulator.campaign import SCENARIOS, Campaign

    if arguments.scenarios:
        for each in SCENARIOS.values():
            print(f"{each.name:<10} {each.about}")
        return 0
    name = arguments.scenario or SCENARIO
    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise ConfigError(f"there is no scenario {name!r}", hint=f"there are {', '.join(SCENARIOS)}")
    _check_together(arguments)
    settings = _settings(arguments.options)
    if arguments.campaign is not None:
        return _run_campaign(arguments, settings)
    campaign = Campaign(scenario, settings)
    if arguments.replay is not None:
        _replay(arguments, campaign)
    else:
        _run_seeds(arguments, campaign)
    for what in campaign.missing:
        note(f"no seed exercised {what!r}: nothing is proved of it")
    write_json(arguments.json, campaign.as_json)
    return 1 if campaign.failed or campaign.missing else 0


def _settings(options: list[str]) -> dict[str, str]:
    settings = {}
    for option in options:
        key, is_given, value = option.partition("=")
        if not is_given:
            raise ConfigError(f"{option!r} sets nothing", where="--set", hint="--set KEY=VALUE")
        settings[key] = value
    return settings


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse options that make no sense together."""
    if arguments.campaign is None:
        for name in ("jobs", "minutes"):
            if getattr(arguments, name) is not None:
                raise ConfigError("is of a campaign", where=f"--{name}", hint="--campaign FILE")
    elif arguments.replay is not None:
        raise ConfigError("runs one seed, and a campaign many", where="--replay", hint="leave out --campaign")


def _seeds(arguments: argparse.Namespace, default: int) -> range:
    return range(arguments.first, arguments.first + (arguments.seeds or default))


def _run_campaign(arguments: argparse.Namespace, settings: dict[str, str]) -> int:
    from odradek.lab.simulator.campaign import SCENARIOS
    from odradek.lab.simulator.variations import chosen_variations

    from .sim_campaign import Asked, run_asked

    names = [arguments.scenario] if arguments.scenario else [*SCENARIOS]
    asked = Asked(
        path=Path(arguments.campaign),
        variations=chosen_variations(names, settings),
        seeds=_seeds(arguments, SEEDS_OF_CAMPAIGN),
        processes_count=arguments.jobs or 1,
        minutes_max=arguments.minutes,
        is_silent=arguments.json == STANDARD_OUTPUT,
    )
    status, figures = run_asked(asked)
    write_json(arguments.json, lambda: figures)
    return status


def _replay(arguments: argparse.Namespace, campaign: Campaign) -> None:
    from odradek.lab.simulator.runs import run_seed

    on_event = print if arguments.verbose else None
    outcome = run_seed(campaign.scenario, arguments.replay, campaign.settings, on_event=on_event)
    campaign.outcomes.append(outcome)
    if arguments.json != STANDARD_OUTPUT:
        state = "failed" if outcome.failure else "kept every promise"
        print(f"seed {outcome.seed} {state}: {outcome.simulated_s:.3f} s simulated, trace {outcome.trace_hash}")
    if outcome.failure:
        _tell_failure(outcome, campaign.scenario, arguments.options)


def _run_seeds(arguments: argparse.Namespace, campaign: Campaign) -> None:
    from odradek.kernel.machine.progress import ProgressLine

    line = ProgressLine()
    seeds = _seeds(arguments, SEEDS)

    def told(outcome: Outcome) -> None:
        done = len(campaign.outcomes)
        if outcome.failure:
            line.clear()
            _tell_failure(outcome, campaign.scenario, arguments.options)
        line.show(lambda: f"{done} of {len(seeds)} seeds, {len(campaign.failed)} failed")

    campaign.run(seeds, told)
    line.clear()
    if arguments.json == STANDARD_OUTPUT:
        return
    figures = campaign.as_json()
    print(
        f"{figures['seeds']} seeds, {len(figures['failed'])} failed, "
        f"{figures['simulated_s']:.0f} s simulated in {figures['wall_s']:.0f} s"
    )
    for name, count in campaign.coverage.items():
        print(f"  {count:>8}  {name}")


def _tell_failure(outcome: Outcome, scenario: Scenario, options: list[str]) -> None:
    """Print the line that replays a seed, and what is known of the failure."""
    chosen = "".join(f" --set {option}" for option in options)
    note(f"seed {outcome.seed}: {outcome.failure}")
    note(f"  odradek sim --scenario {scenario.name}{chosen} --replay {outcome.seed} -v")
    for detail in outcome.details:
        for text in detail.splitlines():
            note(f"    {text}")


def write_json(where: str | None, figures: Callable[[], dict[str, Any]]) -> None:
    """Write the figures into a file, or to standard output; nowhere if nobody asked.

    Raises:
        OSError: The file cannot be written.
    """
    if where is None:
        return
    text = json.dumps(figures(), indent=2)
    if where == STANDARD_OUTPUT:
        print(text)
    else:
        Path(where).write_text(f"{text}\n", encoding="utf-8")
