"""Shell: `odradek sim`: whole brokers and clients on virtual time, seed by seed, with crashes and a failing network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import ConfigError

from .options import document, natural, positive

if TYPE_CHECKING:
    import argparse

    from odradek.lab.simulator.campaign import Campaign
    from odradek.lab.simulator.runs import Outcome, Scenario

SEEDS: Final = 20
SCENARIO: Final = "append"
STANDARD_OUTPUT: Final = "-"

_NOTES: Final = """
A seed decides everything that happens in a run: the workload, what fails and
when, the order of tasks. The same seed gives the same run on every machine, as
long as neither Odradek nor its plugins change; its trace hash shows it.

--set chooses any key of the broker, plugins' among them: a storage or an
election of your own is tried under the same accidents as ours.
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
            ("sim --scenarios", "what can be run"),
        ],
        notes=_NOTES,
        exit_status="0 every seed kept every promise, 1 one did not, 2 wrong usage or configuration, 130 interrupted",
    )
    parser.add_argument("--seeds", type=positive, default=SEEDS, metavar="N", help=f"how many (default {SEEDS})")
    parser.add_argument("--from", type=natural, default=1, metavar="S", dest="first", help="the first one (default 1)")
    parser.add_argument("--scenario", default=SCENARIO, metavar="NAME", help=f"what happens (default {SCENARIO})")
    parser.add_argument("--scenarios", action="store_true", help="list the scenarios, and exit")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="options", help="a setting of the brokers"
    )
    parser.add_argument("--json", metavar="FILE|-", help="write the figures; to standard output instead of the text")
    parser.add_argument("--replay", type=natural, metavar="SEED", help="run this seed alone")
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
    scenario = SCENARIOS.get(arguments.scenario)
    if scenario is None:
        raise ConfigError(f"there is no scenario {arguments.scenario!r}", hint=f"there are {', '.join(SCENARIOS)}")
    campaign = Campaign(scenario, _settings(arguments.options))
    if arguments.replay is not None:
        _replay(arguments, campaign)
    else:
        _run_seeds(arguments, campaign)
    for name in campaign.missing:
        print(f"no seed exercised {name!r}: nothing is proved of it", file=sys.stderr)
    _write_json(arguments, campaign)
    return 1 if campaign.failed or campaign.missing else 0


def _settings(options: list[str]) -> dict[str, str]:
    settings = {}
    for option in options:
        key, is_given, value = option.partition("=")
        if not is_given:
            raise ConfigError(f"{option!r} sets nothing", where="--set", hint="--set KEY=VALUE")
        settings[key] = value
    return settings


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
    seeds = range(arguments.first, arguments.first + arguments.seeds)

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
    print(f"seed {outcome.seed}: {outcome.failure}", file=sys.stderr)
    print(f"  odradek sim --scenario {scenario.name}{chosen} --replay {outcome.seed} -v", file=sys.stderr)
    for detail in outcome.details:
        for text in detail.splitlines():
            print(f"    {text}", file=sys.stderr)


def _write_json(arguments: argparse.Namespace, campaign: Campaign) -> None:
    if arguments.json is None:
        return
    text = json.dumps(campaign.as_json(), indent=2)
    if arguments.json == STANDARD_OUTPUT:
        print(text)
    else:
        Path(arguments.json).write_text(f"{text}\n", encoding="utf-8")
