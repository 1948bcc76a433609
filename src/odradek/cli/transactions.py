"""Shell: `odradek transactions`: list, describe, producers, find-hanging, abort, terminate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .actions import add_actions, add_common_options, cluster_action, run_action
from .options import document, natural
from .output import dim, plural, print_json, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from odradek.client.admin_transactions import TransactionDescription
    from odradek.client.admin_values import ActiveProducer
    from odradek.kernel.types import TopicPartition

    from .cluster_calls import ClusterCalls
    from .hanging import OpenTransaction

DEFAULT_TIMEOUT: Final = "15m"
"""The default of the broker's `transaction.max.timeout.ms`."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Work with transactions of a running broker: see which are open, and end those that nobody ends.",
        [
            ("transactions list --state Ongoing", "those that are open"),
            ("transactions find-hanging", "those that keep read_committed consumers waiting forever"),
            ("transactions abort orders:0 --start-offset 42", "end such a one in its partition"),
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
        "List transactional ids, by name, with their state and producer id.",
        [
            ("transactions list --state Ongoing --longer-than 1m", "transactions that have been open for a minute"),
            ("transactions list --pattern 'orders-.*'", "ids that match a regular expression as a whole"),
            ("transactions list --json | jq -r '.[].transactional_id'", "their names, for a script"),
        ],
    )
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="STATE",
        help="only in this state: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort; may be "
        "given several times",
    )
    parser.add_argument(
        "--producer-id", action="append", type=natural, default=[], metavar="ID", help="only of this producer"
    )
    parser.add_argument("--longer-than", metavar="DURATION", help="only those that began so long ago, such as 1m30s")
    parser.add_argument("--pattern", metavar="REGEX", help="only those whose whole id matches")
    add_common_options(parser)


async def _list(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.kernel.config.durations import parse_duration

    listed = await calls.admin.list_transactions(
        states=arguments.state,
        producer_ids=arguments.producer_id,
        longer_than_ms=None if arguments.longer_than is None else parse_duration(arguments.longer_than),
        pattern=arguments.pattern,
    )
    rows = [
        {
            "transactional_id": each.transactional_id,
            "state": each.state,
            "producer_id": each.producer_id,
            "coordinator": each.coordinator_id,
        }
        for each in listed
    ]
    _print_rows(arguments, rows, ("transactional_id", "state", "producer_id", "coordinator"))


def _print_rows(arguments: argparse.Namespace, rows: list[dict[str, Any]], columns: Iterable[str]) -> None:
    names = tuple(columns)
    if arguments.json:
        print_json(rows)
    else:
        print_table([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows])


# ------------------------------------------------------------------------------ describe


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show what the coordinator knows of a transactional id: its producer, its state, how long its transaction has "
        "been open, and which partitions are part of it.",
        [("transactions describe orders-1", "one id"), ("transactions describe orders-1 --json", "for a script")],
    )
    parser.add_argument("ids", nargs="+", metavar="TRANSACTIONAL_ID")
    add_common_options(parser)


async def _describe(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    found = [await calls.admin.describe_transaction(each) for each in arguments.ids]
    now_ms = _now_ms()
    if arguments.json:
        print_json([_as_json(each, now_ms) for each in found])
        return
    for number, each in enumerate(found):
        if number:
            print()
        _print_description(each, now_ms)


def _now_ms() -> int:
    from odradek.kernel.machine.clock import SystemClock

    return SystemClock().now_ms()


def _duration_ms(found: TransactionDescription, now_ms: int) -> int | None:
    """Return how long a transaction has been open; None when none is."""
    is_open = found.state in ("Ongoing", "PrepareCommit", "PrepareAbort")
    return now_ms - found.start_timestamp if is_open and found.start_timestamp is not None else None


def _as_json(found: TransactionDescription, now_ms: int) -> dict[str, Any]:
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "start_timestamp": found.start_timestamp,
        "duration_ms": _duration_ms(found, now_ms),
        "coordinator": found.coordinator_id,
        "partitions": [{"topic": each.topic, "partition": each.partition} for each in found.partitions],
    }


def _print_description(found: TransactionDescription, now_ms: int) -> None:
    who = f"producer {found.producer_id}, epoch {found.producer_epoch}, coordinator {found.coordinator_id}"
    print(f"{found.transactional_id}  {found.state}  {dim(who)}")
    duration_ms = _duration_ms(found, now_ms)
    timeout = f"aborted after {found.timeout_ms / 1000:g} s"
    if duration_ms is None:
        print(f"no transaction is open; one is {timeout}")
    else:
        print(f"open for {duration_ms / 1000:.1f} s; {timeout}")
    if found.partitions:
        print()
        print_table(("topic", "partition"), [(each.topic, each.partition) for each in found.partitions])


# ------------------------------------------------------------------------------ producers


def _configure_producers(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show the producers that the leader of a partition remembers, and where their open transactions begin.",
        [
            ("transactions producers orders:0", "of one partition"),
            ("transactions producers orders", "of all partitions of a topic"),
        ],
    )
    parser.add_argument("partitions", metavar="TOPIC[:P,P]")
    add_common_options(parser)


_PRODUCER_COLUMNS: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_timestamp",
    "coordinator_epoch",
    "transaction_start_offset",
)


async def _producers(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from .group_offsets import parse_partitions

    found = await _producers_of(calls, calls.partitions(*parse_partitions(arguments.partitions)))
    rows = [_producer_row(partition, producer) for partition, known in found.items() for producer in known]
    _print_rows(arguments, rows, _PRODUCER_COLUMNS)


async def _producers_of(
    calls: ClusterCalls, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ActiveProducer]]:
    return {partition: await calls.admin.describe_producers(partition) for partition in partitions}


def _producer_row(partition: TopicPartition, producer: ActiveProducer) -> dict[str, Any]:
    def known(number: int) -> int | None:
        return number if number >= 0 else None

    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "last_sequence": known(producer.last_sequence),
        "last_timestamp": known(producer.last_timestamp),
        "coordinator_epoch": known(producer.coordinator_epoch),
        "transaction_start_offset": known(producer.transaction_start_offset),
    }


# ------------------------------------------------------------------------------ find-hanging


def _configure_find(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Find transactions that hang: open in a partition for longer than any may be, while no coordinator knows the "
        "partition as part of one. Consumers with read_committed wait there forever. Each can be ended with `abort`.",
        [
            ("transactions find-hanging", "in all topics"),
            ("transactions find-hanging -t orders:0 --max-timeout 1m", "in one partition, idle for a minute"),
        ],
    )
    parser.add_argument(
        "-t",
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:P,P]",
        help="where to look; may be given several times (default: everywhere)",
    )
    parser.add_argument(
        "--max-timeout",
        default=DEFAULT_TIMEOUT,
        metavar="DURATION",
        help="the cluster's transaction.max.timeout.ms (default %(default)s)",
    )
    add_common_options(parser)


async def _find(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.kernel.config.durations import parse_duration

    from .group_offsets import parse_partitions

    timeout_ms = parse_duration(arguments.max_timeout)
    texts = arguments.topic or sorted(calls.topics)
    partitions = dict.fromkeys(each for text in texts for each in calls.partitions(*parse_partitions(text)))
    found = await _find_hanging(calls, partitions, timeout_ms)
    now_ms = _now_ms()
    rows = [
        _producer_row(each.partition, each.producer)
        | {"transactional_id": each.transactional_id or None, "duration_ms": each.duration_ms(now_ms)}
        for each in found
    ]
    if not rows and not arguments.json:
        print(f"no transaction hangs in {plural(len(partitions), 'partition')}")
        return
    columns = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "transaction_start_offset")
    _print_rows(arguments, rows, (*columns, "transactional_id", "duration_ms"))


async def _find_hanging(
    calls: ClusterCalls, partitions: Iterable[TopicPartition], timeout_ms: int
) -> list[OpenTransaction]:
    from .hanging import hanging, open_transactions

    candidates = open_transactions(await _producers_of(calls, partitions), _now_ms(), timeout_ms)
    if not candidates:
        return []
    listed = await calls.admin.list_transactions(producer_ids={each.producer.producer_id for each in candidates})
    descriptions = {
        each.transactional_id: await calls.admin.describe_transaction(each.transactional_id) for each in listed
    }
    return hanging(candidates, {each.producer_id: each.transactional_id for each in listed}, descriptions)


# ------------------------------------------------------------------------------ abort


def _configure_abort(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "End a hanging transaction: write an abort marker into its partition. What the coordinator thinks of the "
        "transaction is not changed: one that it still knows would be torn apart. Use `terminate` for those.\n\n"
        "The transaction is named by the offset where it begins, as find-hanging shows it, or by its producer.",
        [
            ("transactions abort orders:0 --start-offset 42", "the one that begins there"),
            (
                "transactions abort orders:0 --producer-id 7 --producer-epoch 3 --coordinator-epoch 1",
                "by its producer, for brokers older than 3.0",
            ),
        ],
    )
    parser.add_argument("partition", metavar="TOPIC:P")
    parser.add_argument("--start-offset", type=natural, metavar="OFFSET", help="where the transaction begins")
    for name in ("producer-id", "producer-epoch", "coordinator-epoch"):
        parser.add_argument(f"--{name}", type=natural, metavar="N", help="instead of the offset, all three of them")
    add_common_options(parser)


async def _abort(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.kernel.errors import ConfigError

    from .group_offsets import parse_partitions

    topic, numbers = parse_partitions(arguments.partition)
    if len(numbers) != 1:
        raise ConfigError(f"{arguments.partition!r} names no one partition", hint="orders:0")
    (partition,) = calls.partitions(topic, numbers)
    named = (arguments.producer_id, arguments.producer_epoch, arguments.coordinator_epoch)
    if arguments.start_offset is not None and named == (None, None, None):
        producer_id, producer_epoch, coordinator_epoch = await _producer_at(calls, partition, arguments.start_offset)
    elif arguments.start_offset is None and None not in named:
        producer_id, producer_epoch, coordinator_epoch = named
    else:
        raise ConfigError("name the transaction by --start-offset, or by its producer's three numbers")
    await calls.admin.abort_transaction(
        partition, producer_id=producer_id, producer_epoch=producer_epoch, coordinator_epoch=coordinator_epoch
    )
    if arguments.json:
        print_json({"topic": topic, "partition": partition.partition, "producer_id": producer_id})
    else:
        print(f"aborted the transaction of producer {producer_id} in {partition}")


async def _producer_at(calls: ClusterCalls, partition: TopicPartition, start_offset: int) -> tuple[int, int, int]:
    """Return producer id, producer epoch and coordinator epoch of the transaction that begins at an offset.

    Raises:
        BrokerError: INVALID_TXN_STATE: no open transaction begins there.
    """
    from odradek.client import BrokerError
    from odradek.kernel.errors import ErrorCode

    for producer in await calls.admin.describe_producers(partition):
        if producer.transaction_start_offset == start_offset:
            return producer.producer_id, producer.producer_epoch, max(producer.coordinator_epoch, 0)
    raise BrokerError(
        ErrorCode.INVALID_TXN_STATE, f"no transaction that is open in {partition} begins at offset {start_offset}"
    )


# ------------------------------------------------------------------------------ terminate


def _configure_terminate(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Take a transactional id over: its open transaction is aborted in every partition, and its producer, if it "
        "still lives, is fenced and writes no more.",
        [("transactions terminate orders-1", "as a new producer of this id would do")],
    )
    parser.add_argument("transactional_id", metavar="TRANSACTIONAL_ID")
    add_common_options(parser)


async def _terminate(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    transactional_id = arguments.transactional_id
    before = await calls.admin.describe_transaction(transactional_id)  # an id that is not there is not made
    await calls.admin.fence_producer(transactional_id)
    if arguments.json:
        print_json({"transactional_id": transactional_id, "state": before.state})
    else:
        ended = "its open transaction is aborted, " if before.state == "Ongoing" else ""
        print(f"took over {transactional_id}: {ended}its producer is fenced")


_ACTIONS: Final = {
    "list": ("list transactional ids with their states", _configure_list, cluster_action(_list)),
    "describe": (
        "show producer, state, duration and partitions of an id",
        _configure_describe,
        cluster_action(_describe),
    ),
    "producers": ("show the producers that a partition knows", _configure_producers, cluster_action(_producers)),
    "find-hanging": ("find transactions that nobody will end", _configure_find, cluster_action(_find)),
    "abort": ("end a hanging transaction in its partition", _configure_abort, cluster_action(_abort)),
    "terminate": (
        "abort the transaction of an id, and fence its producer",
        _configure_terminate,
        cluster_action(_terminate),
    ),
}
"""Name to summary, what adds its options, and what it does; in the order of `--help`."""
