"""Shell: `odradek delay`: list, show, describe and cancel what waits, and drain a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .actions import add_actions, add_common_options, cluster_action, run_action
from .log_reads import read_log
from .options import client_settings, document, natural
from .output import moment_text, plural, print_json, print_table

if TYPE_CHECKING:
    import argparse

    from odradek.kernel.types import TopicPartition

    from .cluster_calls import ClusterCalls
    from .waiting_records import DelayedRecord, WaitingRecords

DRAIN_PAUSE_S: Final = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Work with delayed records: see what waits in a topic with odradek.delay.enable, withdraw it, wait for it. All "
        "is read from the topic's log, all of it.",
        [
            ("delay list reminders", "what waits, in the order in which it is due"),
            ("delay cancel reminders call-ann", "withdraw what waits under a name"),
            ("delay drain reminders", "take no more, and wait until nothing waits"),
        ],
    )
    add_actions(parser, _ACTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    return run_action(arguments)


async def _read_all(calls: ClusterCalls, text: str) -> dict[TopicPartition, WaitingRecords]:
    """Read the logs of partitions that are named as `orders` or `orders:0,3`."""
    from .group_offsets import parse_partitions
    from .waiting_records import WaitingRecords

    partitions = calls.partitions(*parse_partitions(text))
    found = {}
    for partition, offsets in (await calls.offsets(partitions)).items():
        found[partition] = WaitingRecords(offsets.start)
        await read_log(calls, partition, found[partition], offsets.end)
    return found


# ------------------------------------------------------------------------------ list


def _configure_list(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "List what waits, partition by partition, in the order in which it is due.",
        [
            ("delay list reminders", "of all partitions"),
            ("delay list reminders:0 --json | jq '.[].due_ms'", "of one, for a script"),
        ],
    )
    parser.add_argument("partitions", metavar="TOPIC[:P,P]")
    add_common_options(parser)


async def _list(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    rows = [
        {
            "partition": partition.partition,
            "offset": each.record.offset,
            "due_ms": each.due_ms,
            "id": each.name,
        }
        for partition, waiting in (await _read_all(calls, arguments.partitions)).items()
        for each in waiting.waiting()
    ]
    if arguments.json:
        print_json(rows)
    elif rows:
        print_table(
            ("partition", "offset", "due", "id"),
            [(row["partition"], row["offset"], moment_text(row["due_ms"]), row["id"] or "") for row in rows],
        )
    else:
        print("nothing waits")


# ------------------------------------------------------------------------------ show


def _configure_show(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show one record that waits, by the offset that its producer was told.",
        [("delay show reminders:0 42", "key, value and headers")],
    )
    parser.add_argument("partition", metavar="TOPIC:P")
    parser.add_argument("offset", type=natural, metavar="OFFSET")
    add_common_options(parser)


async def _show(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client import BrokerError
    from odradek.kernel.errors import ConfigError, ErrorCode

    found = await _read_all(calls, arguments.partition)
    if len(found) != 1:
        raise ConfigError(f"{arguments.partition!r} names no one partition", hint="orders:0")
    ((partition, waiting),) = found.items()
    for each in waiting.waiting():
        if each.record.offset == arguments.offset:
            _print_record(arguments, each)
            return
    raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"at offset {arguments.offset} of {partition} nothing waits")


def _print_record(arguments: argparse.Namespace, found: DelayedRecord) -> None:
    from .record_format import shown_text

    record = found.record
    headers = [(name, shown_text(value)) for name, value in record.headers]
    if arguments.json:
        row = {"offset": record.offset, "due_ms": found.due_ms, "timestamp": record.timestamp}
        print_json(
            {
                **row,
                "id": found.name,
                "key": shown_text(record.key),
                "value": shown_text(record.value),
                "headers": headers,
            }
        )
        return
    print(f"due {moment_text(found.due_ms)}, produced {moment_text(record.timestamp)} at offset {record.offset}")
    print_table(("", ""), [("key", shown_text(record.key) or ""), ("value", shown_text(record.value) or ""), *headers])


# ------------------------------------------------------------------------------ describe


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Say how much waits in each partition, and when the next and the last of it are due. DeleteRecords and "
        "DeleteTopics withdraw what lies below; how many DeleteRecords has withdrawn is known while the log has a note "
        "of it. What waits where retention takes something is carried forward.",
        [("delay describe reminders", "of all partitions")],
    )
    parser.add_argument("partitions", metavar="TOPIC[:P,P]")
    add_common_options(parser)


async def _describe(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    rows = []
    for partition, read in (await _read_all(calls, arguments.partitions)).items():
        waiting = read.waiting()
        rows.append(
            {
                "partition": partition.partition,
                "waiting": len(waiting),
                "next_due_ms": waiting[0].due_ms if waiting else None,
                "last_due_ms": waiting[-1].due_ms if waiting else None,
                "withdrawn": read.withdrawn_count,
            }
        )
    if arguments.json:
        print_json(rows)
        return
    print_table(
        ("partition", "waiting", "next due", "last due", "withdrawn"),
        [
            (
                row["partition"],
                row["waiting"],
                *("" if ms is None else moment_text(ms) for ms in (row["next_due_ms"], row["last_due_ms"])),
                row["withdrawn"],
            )
            for row in rows
        ],
    )


# ------------------------------------------------------------------------------ cancel


def _configure_cancel(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Withdraw what waits under a name (header odradek.delay.id), unless it was delivered.",
        [("delay cancel reminders call-ann", "wherever it waits"), ("delay cancel reminders:3 call-ann", "there only")],
    )
    parser.add_argument("partitions", metavar="TOPIC[:P,P]")
    parser.add_argument("id", metavar="ID")
    add_common_options(parser)


async def _cancel(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client import Producer
    from odradek.kernel.delay.headers import DELAY_CANCEL

    found = await _read_all(calls, arguments.partitions)
    places = [
        partition
        for partition, waiting in found.items()
        if any(each.name == arguments.id for each in waiting.waiting())
    ]
    async with Producer(client_settings(arguments)) as producer:
        for partition in places:
            headers = [(DELAY_CANCEL, arguments.id.encode())]
            await producer.send(
                partition.topic, None, key=arguments.id.encode(), headers=headers, partition=partition.partition
            )
    if arguments.json:
        print_json({"id": arguments.id, "partitions": [partition.partition for partition in places]})
    elif places:
        print(f"withdrew {arguments.id!r} in {', '.join(map(str, places))}")
    else:
        print(f"nothing waits under {arguments.id!r}")


# ------------------------------------------------------------------------------ drain


def _configure_drain(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Set odradek.delay.enable=false on a topic, so that no new record waits, and wait until all that waits was "
        "delivered: before the topic goes to a broker that does not know delayed records.",
        [("delay drain reminders", "ends when nothing waits")],
    )
    parser.add_argument("topic", metavar="TOPIC")
    add_common_options(parser)


async def _drain(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    import trio

    from odradek.client.admin_values import ResourceType

    calls.topic(arguments.topic)
    await calls.admin.alter_configs(ResourceType.TOPIC, arguments.topic, {"odradek.delay.enable": "false"})
    found = await _read_all(calls, arguments.topic)
    told = 0
    while True:
        await trio.sleep(DRAIN_PAUSE_S)  # a leader may hear of the change a moment later than it is answered
        for partition, offsets in (await calls.offsets(found)).items():
            await read_log(calls, partition, found[partition], offsets.end)
        count = sum(waiting.left_count for waiting in found.values())
        if not count:
            break
        if count != told and not arguments.json:
            told = count
            print(f"{plural(count, 'record')} wait", flush=True)
    if arguments.json:
        print_json({"topic": arguments.topic, "waiting": 0})
    else:
        print(f"nothing waits in {arguments.topic}")


_ACTIONS: Final = {
    "list": ("list what waits", _configure_list, cluster_action(_list)),
    "show": ("show one record that waits", _configure_show, cluster_action(_show)),
    "describe": ("say how much waits, and until when", _configure_describe, cluster_action(_describe)),
    "cancel": ("withdraw what waits under a name", _configure_cancel, cluster_action(_cancel)),
    "drain": ("take no more, and wait until nothing waits", _configure_drain, cluster_action(_drain)),
}
"""Name to summary, what adds its options, and what it does; in the order of `--help`."""
