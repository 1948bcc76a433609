"""Shell: `odradek groups reset-offsets`: plans where a group goes on, shows it, and commits it when told to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.config.durations import parse_duration
from odradek.kernel.errors import ConfigError

from .group_offsets import Reset, parse_partitions, parse_plan, within
from .offset_spec import parse_moment
from .options import document, natural
from .output import plural, print_json, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Mapping

    from odradek.kernel.types import TopicPartition

    from .cluster_calls import ClusterCalls, Offsets

    Committed = Mapping[TopicPartition, int | None]
    Ends = Mapping[TopicPartition, Offsets]
    Target = Callable[[argparse.Namespace, ClusterCalls, Committed, Ends], Awaitable[dict[TopicPartition, int]]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the action's options."""
    document(
        parser,
        "Change where a group goes on reading. Without --execute it is a dry run: what would change is shown and "
        "nothing is done. The group must have no members when it is done. Offsets that a partition does not have "
        "become the nearest that it has; a note says so.",
        [
            ("groups reset-offsets app -t orders --to-earliest", "show what reading all of it again means"),
            ("groups reset-offsets app -t orders --to-earliest --execute", "and do it"),
            ("groups reset-offsets app --all-topics --by-duration 1h30m", "the last one and a half hours"),
            ("groups reset-offsets app -t orders:0,3 --shift-by -100", "a hundred records back, in two partitions"),
            ("groups reset-offsets app --all-topics --to-current --export > plan.csv", "keep what is committed"),
            ("groups reset-offsets app --from-file plan.csv --execute", "and go back to it"),
        ],
    )
    parser.add_argument("group", metavar="GROUP", help="created if it does not exist")
    scope = parser.add_argument_group("which partitions")
    scope.add_argument(
        "-t", "--topic", action="append", default=[], metavar="TOPIC[:P,P]", help="a topic, or some of its partitions"
    )
    scope.add_argument("--all-topics", action="store_true", help="every partition that the group committed")
    targets = parser.add_argument_group("where to, one of").add_mutually_exclusive_group(required=True)
    targets.add_argument("--to-earliest", action="store_true", help="the first record that is there")
    targets.add_argument("--to-latest", action="store_true", help="after the last record")
    targets.add_argument("--to-current", action="store_true", help="what is committed, or the end where nothing is")
    targets.add_argument("--to-offset", type=natural, metavar="N", help="this offset")
    targets.add_argument("--shift-by", type=int, metavar="N", help="this many on, or back when negative")
    targets.add_argument("--to-datetime", metavar="DATE", help="the first record at or after 2026-01-31T08:00 (UTC)")
    targets.add_argument("--by-duration", metavar="DURATION", help="the first record not older than 1h30m, 7d, PT5M")
    targets.add_argument("--from-file", type=Path, metavar="FILE", help="lines of topic,partition,offset")
    parser.add_argument("--execute", action="store_true", help="do it")
    parser.add_argument("--export", action="store_true", help="write topic,partition,offset, for --from-file")


async def reset(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    """Plan, show, and commit when told to.

    Raises:
        ConfigError: What was asked for makes no sense.
        BrokerError: There is no such topic; the group has members; the broker refuses.
    """
    plan = await _plan(arguments, calls)
    if arguments.execute and plan:
        await _commit(arguments.group, calls, plan)
    if arguments.export:
        for one in plan:
            print(f"{one.partition.topic},{one.partition.partition},{one.after}")
    elif arguments.json:
        rows = [one.as_json() for one in plan]
        print_json({"group": arguments.group, "is_done": arguments.execute, "offsets": rows})
    else:
        _print_plan(arguments, plan)


async def _plan(arguments: argparse.Namespace, calls: ClusterCalls) -> list[Reset]:
    found = await calls.admin.list_group_offsets(arguments.group)
    committed: Committed = {partition: offset.offset if offset else None for partition, offset in found.items()}
    asked: dict[TopicPartition, int] = {}
    if arguments.from_file is not None:
        if arguments.topic or arguments.all_topics:
            raise ConfigError("--from-file names the partitions itself", hint="leave out --topic and --all-topics")
        asked = parse_plan(arguments.from_file.read_text(encoding="utf-8").splitlines(), str(arguments.from_file))
        partitions = [each for one in asked for each in calls.partitions(one.topic, [one.partition])]
    else:
        partitions = _partitions(arguments, calls, committed)
    ends = await calls.offsets(partitions)
    wanted = asked or await _target(arguments)(arguments, calls, committed, ends)
    return [
        within(each, committed.get(each), wanted[each], start=ends[each].start, end=ends[each].end)
        for each in sorted(set(partitions))
    ]


def _partitions(arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed) -> list[TopicPartition]:
    """Return the partitions that are meant."""
    if arguments.all_topics and arguments.topic:
        raise ConfigError("--all-topics and --topic exclude each other")
    if arguments.topic:
        return [each for text in arguments.topic for each in calls.partitions(*parse_partitions(text))]
    if arguments.all_topics:
        return sorted(partition for partition in committed if partition.topic in calls.topics)
    raise ConfigError("it is not said which partitions", hint="give --topic TOPIC, or --all-topics")


async def _commit(group: str, calls: ClusterCalls, plan: list[Reset]) -> None:
    from odradek.client import BrokerError, OffsetAndMetadata
    from odradek.kernel.errors import ErrorCode

    try:
        described = await calls.admin.describe_group(group)
    except BrokerError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
    else:
        if described.is_active:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {group!r} is {described.state} with {plural(len(described.members), 'member')}: "
                "stop them first",
            )
    await calls.admin.alter_group_offsets(group, {one.partition: OffsetAndMetadata(one.after) for one in plan})


def _print_plan(arguments: argparse.Namespace, plan: list[Reset]) -> None:
    if not plan:
        print(f"group {arguments.group} has committed nothing")
        return
    rows = [(one.partition.topic, one.partition.partition, one.before, one.after, one.note) for one in plan]
    print_table(("topic", "partition", "before", "after", "note"), rows)
    changed = sum(one.before != one.after for one in plan)
    what = f"{plural(changed, 'offset')} of group {arguments.group}"
    print(f"\nchanged {what}" if arguments.execute else f"\na dry run: --execute would change {what}")


# ------------------------------------------------------------------------------ targets


async def _earliest(
    arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed, ends: Ends
) -> dict[TopicPartition, int]:
    return {partition: found.start for partition, found in ends.items()}


async def _latest(
    arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed, ends: Ends
) -> dict[TopicPartition, int]:
    return {partition: found.end for partition, found in ends.items()}


async def _current(
    arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed, ends: Ends
) -> dict[TopicPartition, int]:
    current = {partition: committed.get(partition) for partition in ends}
    return {partition: ends[partition].end if offset is None else offset for partition, offset in current.items()}


async def _offset(
    arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed, ends: Ends
) -> dict[TopicPartition, int]:
    offset: int = arguments.to_offset
    return dict.fromkeys(ends, offset)


async def _shifted(
    arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed, ends: Ends
) -> dict[TopicPartition, int]:
    shifted: dict[TopicPartition, int] = {}
    for partition in ends:
        offset = committed.get(partition)
        if offset is None:
            raise ConfigError(f"group {arguments.group!r} has committed nothing in {partition} that could be shifted")
        shifted[partition] = offset + arguments.shift_by
    return shifted


async def _at_datetime(
    arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed, ends: Ends
) -> dict[TopicPartition, int]:
    return await _at(parse_moment(arguments.to_datetime), calls, ends)


async def _by_duration(
    arguments: argparse.Namespace, calls: ClusterCalls, committed: Committed, ends: Ends
) -> dict[TopicPartition, int]:
    from odradek.kernel.machine.clock import SystemClock

    return await _at(SystemClock().now_ms() - parse_duration(arguments.by_duration), calls, ends)


async def _at(timestamp: int, calls: ClusterCalls, ends: Ends) -> dict[TopicPartition, int]:
    """Return the first offsets at or after a moment; behind the last record where nothing is so late."""
    found = await calls.offsets_at(ends, max(timestamp, 0))
    return {partition: ends[partition].end if offset is None else offset for partition, offset in found.items()}


_TARGETS: Final[dict[str, Target]] = {
    "to_earliest": _earliest,
    "to_latest": _latest,
    "to_current": _current,
    "to_offset": _offset,
    "shift_by": _shifted,
    "to_datetime": _at_datetime,
    "by_duration": _by_duration,
}


def _target(arguments: argparse.Namespace) -> Target:
    """Return what was asked for: argparse sees that it is one."""
    given = vars(arguments)
    return next(target for name, target in _TARGETS.items() if given[name] is not None and given[name] is not False)
