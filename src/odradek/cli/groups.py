"""Shell: `odradek groups`: list, describe with lag, reset and delete offsets, delete."""

from __future__ import annotations

import fnmatch
import sys
from typing import TYPE_CHECKING, Any, Final

from .actions import add_actions, add_common_options, cluster_action, run_action
from .options import document
from .output import dim, plural, print_json, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from odradek.client.admin_group_values import GroupDescription
    from odradek.kernel.types import TopicPartition

    from .cluster_calls import ClusterCalls
    from .group_offsets import PartitionProgress

ISOLATION_LEVELS: Final = ("read_uncommitted", "read_committed")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Work with groups of consumers of a running broker: who reads what, how far behind they are, and where they "
        "go on.",
        [
            ("groups list", "what is there"),
            ("groups describe app", "its members, what each reads, and its lag"),
            ("groups reset-offsets app -t orders --to-earliest", "what reading again from the start would change"),
        ],
    )
    add_actions(parser, _ACTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    return run_action(arguments)


# ------------------------------------------------------------------------------ list


def _configure_list(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "List groups, by name, with their type and state.",
        [
            ("groups list 'app*'", "those whose name begins so"),
            ("groups list --state empty --state dead", "those without members"),
            ("groups list --type consumer --json", "those of the newer protocol (KIP-848), for a script"),
        ],
    )
    parser.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="a name, or a pattern with * and ?")
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="STATE",
        help="only in this state: stable, empty, preparingrebalance, completingrebalance, assigning, reconciling, "
        "dead; may be given several times",
    )
    parser.add_argument(
        "--type", action="append", default=[], metavar="TYPE", help="only of this type: classic, consumer, share, ..."
    )
    add_common_options(parser)


async def _list(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    listed = await calls.admin.list_groups(states=arguments.state, types=arguments.type)
    rows = [
        {
            "group": group.group_id,
            "type": group.type,
            "state": group.state,
            "protocol_type": group.protocol_type,
            "coordinator": group.coordinator_id,
        }
        for group in listed
        if fnmatch.fnmatchcase(group.group_id, arguments.pattern)
    ]
    if arguments.json:
        print_json(rows)
        return
    columns = ("group", "type", "state", "protocol_type", "coordinator")
    print_table([name.replace("_", " ") for name in columns], [[row[name] for name in columns] for row in rows])


# ------------------------------------------------------------------------------ describe


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show a group: its state, its members and what each reads, and for every partition what is committed, where "
        "the partition ends and how far behind the group is.\n\n"
        "Lag counts the records up to the high watermark; with --isolation read_committed up to the last stable "
        "offset, because what an open transaction wrote cannot be read yet. Where records may be delayed, or are "
        "failed ones or dead letters, it counts offsets that no consumer is shown, too; `visible` is without them: for "
        "that, what lies between is read, up to 64 MiB of a partition.",
        [
            ("groups describe app", "one group"),
            ("groups describe app --isolation read_committed", "as its transactional readers see it"),
            ("groups describe --json | jq '.[] | {group, lag}'", "all groups, for a script"),
        ],
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="default: all groups of consumers")
    parser.add_argument(
        "--isolation",
        choices=ISOLATION_LEVELS,
        default=ISOLATION_LEVELS[0],
        help="whose end counts (default: %(default)s)",
    )
    add_common_options(parser)


async def _describe(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client.errors import BrokerError

    names = arguments.groups or [
        group.group_id for group in await calls.admin.list_groups() if group.protocol_type in ("consumer", "")
    ]
    shown: list[tuple[GroupDescription, list[PartitionProgress]]] = []
    failures: list[Exception] = []
    for name in names:
        try:
            shown.append(await _describe_group(calls, name, arguments.isolation))
        except BrokerError as error:  # the others can be shown all the same
            failures.append(error)
    if arguments.json:
        print_json([_as_json(group, rows) for group, rows in shown])
    else:
        for number, (group, rows) in enumerate(shown):
            if number:
                print()
            _print_group(group, rows)
    if failures:
        sys.stdout.flush()
        raise ExceptionGroup("groups that cannot be described", failures)


async def _describe_group(
    calls: ClusterCalls, name: str, isolation: str
) -> tuple[GroupDescription, list[PartitionProgress]]:
    from odradek.kernel.types import IsolationLevel, TopicPartition

    from .group_offsets import progress
    from .visible_lag import with_visible_lag

    group = await calls.admin.describe_group(name)
    offsets = await calls.admin.list_group_offsets(name)
    committed = {partition: found.offset if found else None for partition, found in offsets.items()}
    assigned = {
        TopicPartition(topic, number)
        for member in group.members
        for topic, numbers in member.partitions.items()
        for number in numbers
    }
    level = IsolationLevel[isolation.upper()]
    ends = await calls.offsets(available(calls, {*committed, *assigned}), level)
    rows = progress(group, committed, {partition: found.end for partition, found in ends.items()})
    return group, await with_visible_lag(calls, rows, level)


def available(calls: ClusterCalls, partitions: set[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions that can be asked where they begin and end: they exist, and somebody leads them."""
    return sorted(
        partition
        for partition in partitions
        if partition.topic in calls.topics and partition.partition in calls.topics[partition.topic].available
    )


def _as_json(group: GroupDescription, rows: Sequence[PartitionProgress]) -> dict[str, Any]:
    from .group_offsets import total_lag

    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "coordinator": group.coordinator_id,
        "lag": total_lag(rows),
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.client_host,
                "rack": member.rack,
                "epoch": member.epoch,
                "topics": list(member.topics),
                "topics_regex": member.topics_regex,
                "assignment": member.partitions,
                "target": member.target,
                "lag": total_lag(row for row in rows if row.member is member),
            }
            for member in group.members
        ],
        "partitions": [
            {
                "topic": row.partition.topic,
                "partition": row.partition.partition,
                "committed": row.committed,
                "end": row.end,
                "lag": row.lag,
                **({} if row.visible_lag is None else {"visible_lag": row.visible_lag}),
                "member_id": row.member.member_id if row.member else None,
            }
            for row in rows
        ],
    }


def _print_group(group: GroupDescription, rows: Sequence[PartitionProgress]) -> None:
    from .group_offsets import total_lag

    facts = [f"{group.type.lower()} protocol", group.assignor, f"epoch {group.epoch}" if group.epoch >= 0 else ""]
    facts.append(f"coordinator {group.coordinator_id}")
    print(f"{group.group_id}  {group.state}  {dim(', '.join(fact for fact in facts if fact))}")
    unknown = sum(row.lag is None for row in rows)
    behind = f"{plural(total_lag(rows), 'record')} behind"
    if unknown:
        behind = "lag unknown" if unknown == len(rows) else f"{behind} (lag of {plural(unknown, 'partition')} unknown)"
    print(f"{plural(len(group.members), 'member')}, {plural(len(rows), 'partition')}, {behind}")
    if group.members:
        print()
        _print_members(group, rows)
    if rows:
        print()
        _print_partitions(rows)


def _print_partitions(rows: Sequence[PartitionProgress]) -> None:
    columns: dict[str, list[object]] = {
        "topic": [row.partition.topic for row in rows],
        "partition": [row.partition.partition for row in rows],
        "committed": [row.committed for row in rows],
        "end": [row.end for row in rows],
        "lag": [row.lag for row in rows],
        "visible": [row.visible_lag for row in rows],
        "read by": [row.member.member_id if row.member else None for row in rows],
    }
    if all(row.visible_lag is None for row in rows):
        del columns["visible"]
    print_table(tuple(columns), list(zip(*columns.values(), strict=True)))


def _print_members(group: GroupDescription, rows: Sequence[PartitionProgress]) -> None:
    from .group_offsets import total_lag

    columns = ["member", "client", "host", "reads", "lag"]
    is_static = any(member.instance_id for member in group.members)
    if is_static:
        columns.insert(1, "instance")
    lines: list[list[object]] = []
    for member in group.members:
        lag = total_lag(row for row in rows if row.member is member)
        line: list[object] = [member.member_id, member.client_id, member.client_host, _reads(member.partitions), lag]
        if is_static:
            line.insert(1, member.instance_id)
        lines.append(line)
    print_table(columns, lines)


def _reads(partitions: Mapping[str, Sequence[int]]) -> str:
    """Return `orders 0-3 7; payments 1`."""
    from .assign import ranges

    return "; ".join(f"{topic} {ranges(sorted(numbers))}" for topic, numbers in sorted(partitions.items()))


# ------------------------------------------------------------------------------ reset-offsets


def _configure_reset(parser: argparse.ArgumentParser) -> None:
    from . import groups_reset

    groups_reset.configure(parser)
    add_common_options(parser)


async def _reset(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from . import groups_reset

    await groups_reset.reset(arguments, calls)


# ------------------------------------------------------------------------------ delete


def _configure_delete(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Delete groups that have no members, with all that they committed. There is no way back.",
        [
            ("groups delete app", "at once"),
            ("groups delete app --if-exists", "no error if it is not there, for scripts"),
        ],
    )
    parser.add_argument("groups", nargs="+", metavar="GROUP")
    parser.add_argument("--if-exists", action="store_true", help="leave out those that are not there")
    add_common_options(parser)


async def _delete(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    known = {group.group_id for group in await calls.admin.list_groups()}
    names = [name for name in arguments.groups if name in known or not arguments.if_exists]
    for name in names:
        check_known(name, known)  # all of them exist, or none is deleted
    for name in names:
        await calls.admin.delete_group(name)
    if arguments.json:
        print_json({"deleted": names})
        return
    for name in names:
        print(f"deleted group {name}")


def check_known(name: str, known: set[str]) -> None:
    """See that there is a group.

    Raises:
        BrokerError: GROUP_ID_NOT_FOUND, with the nearest name that there is.
    """
    import difflib

    from odradek.client.admin_group_values import no_such_group

    if name not in known:
        nearest = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise no_such_group(name, f"there is no group {name!r}{hint}")


# ------------------------------------------------------------------------------ delete-offsets


def _configure_delete_offsets(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Delete what a group committed for topics that none of its members is subscribed to. Whoever reads them next "
        "begins where its auto.offset.reset says.",
        [
            ("groups delete-offsets app -t orders", "of all partitions of a topic"),
            ("groups delete-offsets app -t orders:0,3 -t payments", "of some"),
        ],
    )
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "-t",
        "--topic",
        action="append",
        required=True,
        metavar="TOPIC[:P,P]",
        help="a topic, or some of its partitions",
    )
    add_common_options(parser)


async def _delete_offsets(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from .group_offsets import parse_partitions

    check_known(arguments.group, {group.group_id for group in await calls.admin.list_groups()})
    partitions = [each for text in arguments.topic for each in calls.partitions(*parse_partitions(text))]
    committed = await calls.admin.list_group_offsets(arguments.group, partitions)
    there = [partition for partition in dict.fromkeys(partitions) if committed.get(partition) is not None]
    if there:
        await calls.admin.delete_group_offsets(arguments.group, there)
    if arguments.json:
        deleted = [{"topic": partition.topic, "partition": partition.partition} for partition in there]
        print_json({"group": arguments.group, "deleted": deleted})
    else:
        print(f"deleted the offsets of {plural(len(there), 'partition')} of group {arguments.group}")


_ACTIONS: Final = {
    "list": ("list groups with their types and states", _configure_list, cluster_action(_list)),
    "describe": ("show members, assignments, offsets and lag", _configure_describe, cluster_action(_describe)),
    "reset-offsets": ("let a group go on somewhere else", _configure_reset, cluster_action(_reset)),
    "delete": ("delete groups and what they committed", _configure_delete, cluster_action(_delete)),
    "delete-offsets": (
        "delete what a group committed for some topics",
        _configure_delete_offsets,
        cluster_action(_delete_offsets),
    ),
}
"""Name to summary, what adds its options, and what it does; in the order of `--help`."""
