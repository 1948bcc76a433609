"""Shell: `odradek assign simulate`: who of a group would read what, by every assignor, while members come and go."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .options import add_json_option, document
from .output import plural, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.kernel.contracts.assignor import Assignor

    from .assign_script import Step
    from .assign_simulation import Outcome

ORDER: Final = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
"""Kafka's own stand first and in this order, those of other plugins behind them."""

LISTED_MAX: Final = 40
"""Up to how many partitions in all the tables name them; with more they count them."""

WIDE: Final = 160

SCRIPT: Final = """
script, a line (or what stands between semicolons) a step:
  topic orders 10                  a topic, or how many partitions it has now
  topic orders 10 racks r1 r2      its replicas are in these racks in turn
  delete orders                    the topic is gone
  join a b c                       members join and read every topic
  join d reads orders in r1        one that reads some topics, and is in a rack
  leave c                          members leave
  change a reads orders            members read other topics
  # a comment

tables: +3 is new to a member that was there before; `moved` counts what was
taken from members that stayed; `spread` is the difference between the most
and the least loaded member; `rebalances` is how often the group had to meet.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "See how a group's partitions are shared out, without a broker.",
        [("assign simulate", "ten partitions, three members; one leaves, another one joins")],
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = actions.add_parser("simulate", help="play a script of members that come and go")
    document(
        action,
        "Play a script of topics and of members that come and go, and show after each step what every assignor gives "
        "to whom, how many partitions moved, and how even it is. Without a script a small example is played.",
        [
            ("assign simulate -e 'topic orders 10; join a b c; leave c'", "the classic example"),
            (
                "assign simulate -e 'topic a 4; topic b 4; join x y; join z reads b' --assignor sticky",
                "one assignor, different subscriptions",
            ),
            ("assign simulate churn.txt --json | jq .totals", "a script in a file, and only the end of the story"),
        ],
        notes=SCRIPT,
    )
    action.add_argument("script", nargs="?", metavar="SCRIPT", help="a file, or - for standard input")
    action.add_argument("-e", "--step", action="append", default=[], metavar="STEPS", help="steps, after the script's")
    action.add_argument(
        "--assignor", action="append", default=[], metavar="NAME", help="only this one; may be given several times"
    )
    action.add_argument("--config", type=Path, metavar="FILE", help="the odradek.toml that chooses the plugins")
    add_json_option(action)


def run(arguments: argparse.Namespace) -> int:
    """Play the script and print what came of it.

    Raises:
        ConfigError: The script is wrong, or there is no such assignor.
        OSError: The script cannot be read.
    """
    from .assign_script import EXAMPLE, World, apply, read_steps
    from .assign_simulation import SimulatedGroup

    assignors = _assignors(arguments.config, arguments.assignor)
    steps = [*_steps_of_file(arguments.script), *read_steps(arguments.step, "-e")]
    if not steps and arguments.script is None:
        steps = list(read_steps(EXAMPLE, "the example"))
    world = World()
    groups = {name: SimulatedGroup(assignor) for name, assignor in assignors.items()}
    told: list[tuple[str, dict[str, Outcome]]] = []
    since: list[str] = []  # what happened while there was nobody to notice
    for step in steps:
        apply(step, world)
        since.append(step.text)
        if world.members or told:
            told.append(("; ".join(since), {name: group.rebalance(world) for name, group in groups.items()}))
            since.clear()
    if arguments.json:
        print_json({"steps": [_step_as_json(*one) for one in told], "totals": _totals(told)})
    else:
        _print_tables(told)
    return 0


def _steps_of_file(script: str | None) -> Iterable[Step]:
    from .assign_script import read_steps

    if script is None:
        return []
    text = sys.stdin.read() if script == "-" else Path(script).read_text(encoding="utf-8")
    return read_steps(text.splitlines(), script)


def _assignors(config: Path | None, wanted: Sequence[str]) -> dict[str, Assignor]:
    """Return what active plugins offer, Kafka's own first."""
    from odradek.kernel.config.settings import read_settings
    from odradek.kernel.plugin_system.manager import PluginManager, choose_offer, choose_plugins, installed_plugins

    file = read_settings(config=config).file
    manager = PluginManager()
    manager.load(choose_plugins(installed_plugins(), file.enable, file.disable))
    offered = manager.assignors()
    names = wanted or sorted(offered, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    return {name: choose_offer(offered, name, "assignor", "--assignor") for name in names}


def _step_as_json(text: str, outcomes: dict[str, Outcome]) -> dict[str, Any]:
    return {
        "step": text,
        "assignors": {
            name: {
                "assignment": outcome.assignment,
                "loads": outcome.loads,
                "spread": outcome.spread,
                "moved": len(outcome.moves),
                "moves": [
                    {"topic": move.topic, "partition": move.partition, "from": move.giver, "to": move.taker}
                    for move in outcome.moves
                ],
                "rebalances": outcome.rebalances,
            }
            for name, outcome in outcomes.items()
        },
    }


def _totals(told: Sequence[tuple[str, dict[str, Outcome]]]) -> dict[str, dict[str, int]]:
    names = told[0][1] if told else {}
    return {
        name: {
            "moved": sum(len(outcomes[name].moves) for _text, outcomes in told),
            "spread_max": max(outcomes[name].spread for _text, outcomes in told),
            "rebalances": sum(outcomes[name].rebalances for _text, outcomes in told),
        }
        for name in names
    }


def _print_tables(told: Sequence[tuple[str, dict[str, Outcome]]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from .rich_console import CommandConsole

    console = CommandConsole(highlight=False, width=None if sys.stdout.isatty() else WIDE)
    for number, (text, outcomes) in enumerate(told, 1):
        console.print(Text.assemble((f"{number}  ", "dim"), (text, "bold")))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", show_footer=False)
        table.add_column("", style="cyan", no_wrap=True)
        for name in outcomes:
            table.add_column(name, overflow="fold")
        one = next(iter(outcomes.values()))
        names_partitions = sum(one.loads.values()) <= LISTED_MAX
        has_many_topics = len({topic for given in one.assignment.values() for topic in given}) > 1
        for member in one.assignment:
            cells = [_cell(outcome, member, names_partitions, has_many_topics) for outcome in outcomes.values()]
            table.add_row(member, *cells)
        table.add_section()
        for label, cells_of in _FOOT.items():
            table.add_row(Text(label, "dim"), *(cells_of(outcome) for outcome in outcomes.values()))
        console.print(table)
    if len(told) > 1:
        console.print(_totals_table(told))


def _cell(outcome: Outcome, member: str, names_partitions: bool, has_many_topics: bool) -> Any:
    from rich.text import Text

    given, gained = outcome.assignment[member], outcome.gained.get(member, {})
    if not names_partitions:
        new = sum(map(len, gained.values()))
        return Text.assemble(str(outcome.loads[member]), (f"  +{new}" if new else "", "green"))
    cell = Text()
    for topic, some in given.items():
        new_ones = gained.get(topic, [])
        kept = [partition for partition in some if partition not in new_ones]
        if cell:
            cell.append("\n")
        cell.append(f"{topic} " if has_many_topics else "", "dim")
        cell.append(ranges(kept))
        cell.append((" " if kept else "") + " ".join(f"+{run}" for run in ranges(new_ones).split()), "green")
    return cell or Text("-", "dim")


def _spread_text(outcome: Outcome) -> Any:
    from rich.text import Text

    return Text(str(outcome.spread), "yellow" if outcome.spread > 1 else "dim")


def _moved_text(outcome: Outcome) -> Any:
    from rich.text import Text

    return Text(str(len(outcome.moves)), "yellow" if outcome.moves else "dim")


_FOOT: Final[dict[str, Callable[[Outcome], Any]]] = {
    "moved": _moved_text,
    "spread": _spread_text,
    "rebalances": lambda outcome: str(outcome.rebalances),
}


def _totals_table(told: Sequence[tuple[str, dict[str, Outcome]]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        header_style="bold",
        title=f"all {plural(len(told), 'step')}",
        title_justify="left",
    )
    for column in ("assignor", "moved", "largest spread", "rebalances"):
        table.add_column(column, justify="left" if column == "assignor" else "right")
    for name, total in _totals(told).items():
        table.add_row(name, *map(str, total.values()))
    return table


def ranges(partitions: Sequence[int]) -> str:
    """Return ascending partitions as runs: `0-3 7 9-10`."""
    runs: list[list[int]] = []
    for partition in partitions:
        if runs and partition == runs[-1][-1] + 1:
            runs[-1][1:] = [partition]
        else:
            runs.append([partition])
    return " ".join("-".join(map(str, run)) for run in runs)
