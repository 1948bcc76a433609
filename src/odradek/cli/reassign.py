"""Shell: `odradek reassign`: generate, execute, verify, cancel: which brokers have which partitions."""

from __future__ import annotations

import fnmatch
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ConfigError

from . import note, say
from .actions import add_actions, add_common_options, cluster_action, run_action
from .options import EXIT_STATUS, document, positive
from .output import plural, print_json, print_table, size_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from odradek.kernel.types import TopicPartition

    from .cluster_calls import ClusterCalls
    from .placing.carrying_out import Outcome
    from .placing.layout import PlacedPartition
    from .placing.reading import Reading

STANDARD_INPUT: Final = "-"
ALL_IS_SO: Final = "nothing to do: all is as the file says"
_FILES: Final = """
FILE is JSON as kafka-reassign-partitions writes and reads it:
  {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]}]}
The first broker of a list is the preferred leader. - is standard input.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Move partitions to other brokers, while they are written and read. A cluster that grows moves nothing by "
        "itself: make a plan, look at it, and execute it.",
        [
            ("reassign generate > plan.json", "brokers as equal as may be, with the fewest moves"),
            ("reassign execute plan.json --throttle 50000000", "50 MB a second of each broker at most"),
            ("reassign verify plan.json", "how far it is"),
            ("reassign cancel plan.json", "back to where partitions were"),
        ],
        notes=_FILES,
    )
    add_actions(parser, _ACTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    return run_action(arguments)


def _read(name: str) -> dict[TopicPartition, tuple[int, ...]]:
    from .placing.assignments import parse

    if name == STANDARD_INPUT:
        return parse(sys.stdin.read(), "standard input")
    return parse(Path(name).read_text(encoding="utf-8"), name)


# ------------------------------------------------------------------------------ generate


def _configure_generate(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Make a plan, and move nothing: racks are spread, then every broker gets as many replicas as the others, then "
        "about as many bytes, then as many preferred leaders, all with the fewest moves. The plan goes to standard "
        "output, what it changes to standard error. A broker that is away, or whose log directories are cordoned, "
        "keeps what it has and gets nothing.",
        [
            ("reassign generate > plan.json", "of all topics, over all brokers"),
            ("reassign generate orders 'pay*' --brokers 1,2,3", "of some, over some"),
            ("reassign generate orders --replicas 3 --only-needed", "raise the replication factor, and move nothing"),
        ],
    )
    parser.add_argument("topics", nargs="*", default=[], metavar="TOPIC", help="names, or patterns with * and ?")
    parser.add_argument("--brokers", metavar="ID,ID", help="who has replicas in the end (default: all brokers)")
    parser.add_argument("--replicas", type=positive, metavar="N", help="how many replicas a partition has in the end")
    parser.add_argument("--only-needed", action="store_true", help="move what must be moved, and even nothing out")
    add_common_options(parser)


def _chosen(calls: ClusterCalls, patterns: list[str]) -> list[str]:
    """Return the topics that are meant; a name that does not exist is told.

    Raises:
        BrokerError: There is no such topic.
    """
    chosen = set()
    for pattern in patterns or ["*"]:
        found = fnmatch.filter(calls.topics, pattern)
        if not found and not any(sign in pattern for sign in "*?["):
            calls.topic(pattern)
        chosen.update(found)
    return sorted(chosen)


def broker_ids(text: str, option: str) -> frozenset[int]:
    """Read `1,2,3`.

    Raises:
        ConfigError: It is none.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise ConfigError("expected broker ids between commas", where=f"{option} {text}")
    return frozenset(map(int, words))


async def _generate(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from .placing.assignments import as_json, one_line
    from .placing.balance import planned
    from .placing.reading import check_nothing_moves, read_placing

    await check_nothing_moves(calls)
    reading = await read_placing(calls, _chosen(calls, arguments.topics))
    targets = broker_ids(arguments.brokers, "--brokers") if arguments.brokers is not None else None
    reading.check_brokers(targets or ())
    plan = planned(
        reading.brokers,
        reading.partitions,
        targets=targets,
        replicas_count=arguments.replicas,
        is_evened=not arguments.only_needed,
    )
    if arguments.json:
        before = {each.partition: each.replicas for each in reading.partitions if each.partition in plan}
        print_json({**as_json(plan), "before": as_json(before), "brokers": _brokers_json(reading, plan)})
        return
    print(one_line(plan))
    _print_plan(reading, plan)


def _loads(partitions: Mapping[TopicPartition, tuple[tuple[int, ...], int]]) -> dict[int, list[int]]:
    """Return replicas, preferred leaders and bytes by broker."""
    loads: dict[int, list[int]] = {}
    for replicas, size_bytes in partitions.values():
        for place, broker_id in enumerate(replicas):
            load = loads.setdefault(broker_id, [0, 0, 0])
            load[0] += 1
            load[1] += not place
            load[2] += size_bytes
    return loads


def _brokers_json(reading: Reading, plan: Mapping[TopicPartition, tuple[int, ...]]) -> list[dict[str, Any]]:
    before = _loads({each.partition: (each.replicas, each.size_bytes) for each in reading.partitions})
    after = _loads({each.partition: (_planned(plan, each), each.size_bytes) for each in reading.partitions})
    names = ("replicas", "leaders", "size_bytes")
    return [
        {
            "id": each.broker_id,
            "rack": each.rack,
            "before": dict(zip(names, before.get(each.broker_id, [0, 0, 0]), strict=True)),
            "after": dict(zip(names, after.get(each.broker_id, [0, 0, 0]), strict=True)),
        }
        for each in reading.brokers
    ]


def _planned(plan: Mapping[TopicPartition, tuple[int, ...]], partition: PlacedPartition) -> tuple[int, ...]:
    return plan.get(partition.partition, partition.replicas)


def _print_plan(reading: Reading, plan: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    from .placing.moves import cost_of

    cost = cost_of(reading.partitions, plan)
    if not plan:
        note("nothing to move: the brokers have about the same, where they should")
        return
    moved = f"{plural(cost.replicas_count, 'replica')} to copy, {size_text(cost.size_bytes)}"
    note(f"{plural(cost.partitions_count, 'partition')} to change, {moved}\n")
    rows = []
    for each in _brokers_json(reading, plan):
        before, after = each["before"], each["after"]
        changes = [f"{before[name]} > {after[name]}" for name in ("replicas", "leaders")]
        sizes = f"{size_text(before['size_bytes'])} > {size_text(after['size_bytes'])}"
        rows.append([each["id"], each["rack"], *changes, sizes])
    print_table(("broker", "rack", "replicas", "preferred leaders", "size"), rows, tell=note)


# ------------------------------------------------------------------------------ execute


def _configure_execute(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Move partitions as a file says, and wait until all have arrived. Producers and consumers go on. What was so "
        "before is printed first: executing that leads back. Interrupted, the moves go on.",
        [
            ("reassign execute plan.json", "as fast as the brokers can"),
            ("reassign execute plan.json --throttle 50000000", "50 MB a second of each broker at most"),
            ("reassign execute plan.json --no-wait", "begin; `odradek reassign verify` says how far it is"),
        ],
        notes=_FILES,
        exit_status=f"{EXIT_STATUS}; 1 too if something was refused or ended otherwise",
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--throttle", type=positive, metavar="BYTES", help="a second, of each broker; taken away when nothing moves"
    )
    parser.add_argument("--additional", action="store_true", help="although others are moving already")
    parser.add_argument("--no-wait", action="store_true", help="only begin; verify takes the throttle away")
    add_common_options(parser)


async def _execute(arguments: argparse.Namespace, calls: ClusterCalls) -> int:
    from .placing.assignments import as_json, one_line
    from .placing.carrying_out import carry_out, check_known
    from .placing.reading import check_nothing_moves, read_nodes

    wanted = _read(arguments.file)
    check_known(calls, wanted, frozenset(node.node_id for node in await read_nodes(calls)))
    if not arguments.additional:
        await check_nothing_moves(calls)
    before = {each: calls.topics[each.topic].partitions[each.partition].replicas for each in wanted}
    wanted = {each: replicas for each, replicas in wanted.items() if before[each] != replicas or arguments.additional}
    if not arguments.json:
        print(f"as it was:\n{one_line(before)}\n")
    outcome = await carry_out(calls, wanted, rate_bytes=arguments.throttle, is_awaited=not arguments.no_wait)
    return _tell(outcome, as_json=arguments.json, more={"before": as_json(before)}, is_begun=arguments.no_wait)


def _tell(
    outcome: Outcome, *, as_json: bool, more: Mapping[str, Any], is_begun: bool = False, nothing: str = ALL_IS_SO
) -> int:
    """Print what came of it, and return the exit status."""
    from .placing.carrying_out import print_outcome

    if as_json:
        refused = [
            {"topic": each.topic, "partition": each.partition, "error": error.code.name, "message": error.detail}
            for each, error in sorted(outcome.refused.items())
        ]
        print_json({"partitions": [move.as_json() for move in outcome.moves], "refused": refused, **more})
    elif outcome.moves or outcome.refused:
        print_outcome(outcome)
    else:
        print(nothing)
    return int(bool(outcome.refused) or not (is_begun or outcome.is_done))


# ------------------------------------------------------------------------------ verify


def _configure_verify(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Say how far the partitions of a file are, or all that move. When nothing moves any more, throttles are taken "
        "away, from all brokers and from the topics of the file: those of `execute --no-wait`, and those of an "
        "`execute` that was interrupted.",
        [
            ("reassign verify plan.json", "what is done, what moves, and how much of it is copied"),
            ("reassign verify --all", "what moves; if nothing does, no broker and no topic is throttled any more"),
        ],
        notes=_FILES,
        exit_status=f"{EXIT_STATUS}; 1 too while not all is as the file says, or anything moves of --all",
    )
    parser.add_argument("file", nargs="?", metavar="FILE")
    parser.add_argument("--all", action="store_true", help="all partitions that move, and the throttles of all topics")
    parser.add_argument("--preserve-throttles", action="store_true", help="leave them")
    add_common_options(parser)


async def _verify(arguments: argparse.Namespace, calls: ClusterCalls) -> int:
    from .placing.carrying_out import Outcome, look
    from .placing.moves import State
    from .placing.throttle import release_throttle

    named = _read_or_all(arguments, "verify")
    moves = await look(calls, await _read_ongoing(calls) if named is None else named)
    # Of all that move nothing has ended: what is not taken away here is taken away whole when nothing moves.
    stays = arguments.preserve_throttles or (named is None and any(each.state is State.MOVING for each in moves))
    is_cleared = not stays and await release_throttle(calls.admin, _all(calls) if named is None else named)
    nothing = "nothing moves" if named is None else ALL_IS_SO
    told = {"throttles_cleared": is_cleared}
    status = _tell(Outcome(moves, {}), as_json=arguments.json, more=told, nothing=nothing)
    if is_cleared and not arguments.json:
        print("throttles are taken away")
    return status


def _read_or_all(arguments: argparse.Namespace, action: str) -> dict[TopicPartition, tuple[int, ...]] | None:
    """Return what a file says; None if `--all` is asked for.

    Raises:
        ConfigError: Neither, or both; or the file is no plan.
    """
    if bool(arguments.file) == arguments.all:
        raise ConfigError("expected a FILE or --all", hint=f"odradek reassign {action} --help")
    return None if arguments.all else _read(arguments.file)


async def _read_ongoing(calls: ClusterCalls) -> dict[TopicPartition, tuple[int, ...]]:
    """Return what moves, and the replicas that it shall have."""
    ongoing = await calls.admin.list_partition_reassignments()
    return {partition: move.wanted for partition, move in ongoing.items()}


def _all(calls: ClusterCalls) -> list[TopicPartition]:
    """Return the partitions of all topics."""
    from odradek.kernel.types import TopicPartition

    return [TopicPartition(topic.name, number) for topic in calls.topics.values() for number in topic.partitions]


# ------------------------------------------------------------------------------ cancel


def _configure_cancel(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "End moves that are under way: partitions stay with the brokers that had them, and what was copied is "
        "deleted. Throttles are taken away.",
        [
            ("reassign cancel plan.json", "those of a file"),
            ("reassign cancel --all", "all that move"),
        ],
        notes=_FILES,
        exit_status=f"{EXIT_STATUS}; 1 too if one could not be cancelled",
    )
    parser.add_argument("file", nargs="?", metavar="FILE")
    parser.add_argument("--all", action="store_true", help="all partitions that move")
    parser.add_argument("--preserve-throttles", action="store_true", help="leave them")
    add_common_options(parser)


async def _cancel(arguments: argparse.Namespace, calls: ClusterCalls) -> int:
    from .placing.throttle import release_throttle

    named = _read_or_all(arguments, "cancel")
    ongoing = await calls.admin.list_partition_reassignments()
    cancelled = sorted(each for each in ongoing if named is None or each in named)
    refused = await calls.admin.alter_partition_reassignments(dict.fromkeys(cancelled)) if cancelled else {}
    done = [each for each in cancelled if each not in refused]
    if not arguments.preserve_throttles:
        await release_throttle(calls.admin, _all(calls) if named is None else named)
    if arguments.json:
        told = [{"topic": each.topic, "partition": each.partition} for each in done]
        failed = [{"topic": each.topic, "partition": each.partition, "error": str(refused[each])} for each in refused]
        print_json({"cancelled": told, "failed": failed})
    else:
        print(f"cancelled {plural(len(done), 'move')}")
        for each, error in sorted(refused.items()):
            say(f"{each}: {error}")
    return int(bool(refused))


_ACTIONS: Final = {
    "generate": ("make a plan", _configure_generate, cluster_action(_generate)),
    "execute": ("move partitions as a plan says", _configure_execute, cluster_action(_execute)),
    "verify": ("say how far a plan is", _configure_verify, cluster_action(_verify)),
    "cancel": ("end moves that are under way", _configure_cancel, cluster_action(_cancel)),
}
"""Name to summary, what adds its options, and what it does; in the order of `--help`."""
