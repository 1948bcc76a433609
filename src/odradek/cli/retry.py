"""Shell: `odradek retry`: give a group the topics of its failed records, and list them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.config.delay_checks import (
    BATCH_LIMIT,
    BREAKER_SHARE,
    DEAD_LETTERS_ENABLE,
    DEAD_LETTERS_OF,
    RETRY_GROUP,
    RETRY_POLICY,
    RETRY_TOPIC,
    batch_limit_of_failed,
)

from . import say
from .actions import add_actions, add_common_options, cluster_action, run_action
from .options import document, natural
from .output import print_json, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from .cluster_calls import ClusterCalls

LEVELS_KEY: Final = "odradek.retry.levels"
ATTEMPTS_KEY: Final = "odradek.retry.attempts"
ORDER_KEY: Final = "odradek.retry.order"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Have records that a group failed given back later. What it fails it produces, as it is, to TOPIC.GROUP.retry, "
        "which it reads beside TOPIC; after the last attempt a record is in TOPIC.GROUP.dlq.",
        [
            ("retry enable orders --group billing", "sixteen attempts, from 5 seconds to 2 hours"),
            ("retry enable orders --group billing --levels 1s,1m --attempts 3", "three, the last two after a minute"),
            ("retry list", "which topics are whose"),
        ],
    )
    add_actions(parser, _ACTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    return run_action(arguments)


# ------------------------------------------------------------------------------ enable


def _configure_enable(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Make the two topics of a group's failed records, with the partitions and replicas of the topic that it reads, "
        "and room for its largest records. "
        "Where they are there already, what is given is set, and partitions added that they lack.",
        [
            ("retry enable orders --group billing --levels 5s,1m,10m --attempts 5", "five attempts"),
            ("retry enable orders --group billing --order key", "records of a key in order, where our client reads"),
        ],
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--group", required=True, metavar="GROUP", help="the consumer group")
    parser.add_argument("--levels", metavar="5s,1m,...", help=f"how long each attempt waits ({LEVELS_KEY})")
    parser.add_argument("--attempts", type=natural, metavar="N", help=f"how many there are ({ATTEMPTS_KEY})")
    parser.add_argument(
        "--order",
        choices=("none", "key"),
        help=f"whether Odradek's own consumer keeps records of a key in order, though some wait ({ORDER_KEY})",
    )
    parser.add_argument(
        "--breaker",
        metavar="SHARE",
        help=f"pause dead letters above this share of what begins to fail, 0 to 1 ({BREAKER_SHARE})",
    )
    parser.add_argument("--policy", metavar="NAME", help=f"another plugin's policy ({RETRY_POLICY})")
    add_common_options(parser)


async def _enable(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client import ClientError
    from odradek.kernel.retry.names import retry_topics

    topic = calls.topic(arguments.topic)
    replicas = max((len(partition.replicas) for partition in topic.partitions.values()), default=1)
    names = retry_topics(topic.name, arguments.group)
    asked = {
        LEVELS_KEY: arguments.levels,
        ATTEMPTS_KEY: arguments.attempts,
        ORDER_KEY: arguments.order,
        BREAKER_SHARE: arguments.breaker,
        RETRY_POLICY: arguments.policy,
    }
    changes = {key: str(value) for key, value in asked.items() if value is not None}
    owner = {RETRY_TOPIC: topic.name, RETRY_GROUP: arguments.group}
    is_new = names.retry not in calls.topics
    count = max(len(topic.partitions), 0 if is_new else len(calls.topic(names.retry).partitions))
    limit = await _batch_limit(calls, topic.name)
    dead = _Wanted(names.dead, {DEAD_LETTERS_OF: names.retry}, {DEAD_LETTERS_ENABLE: "true"}, count, replicas, limit)
    retry = _Wanted(names.retry, owner, changes, count, replicas, limit)
    for wanted in (dead, retry):
        await _have(calls, wanted, validate_only=True)
    await _have(calls, dead)  # the first one, so that nobody fails a record whose death has no place
    try:
        await _have(calls, retry)
    except ClientError:
        if names.dead not in calls.topics:
            say(f"{names.dead} was made, and stays; the same command again makes what is missing")
        raise
    if arguments.json:
        row = {"topic": topic.name, "group": arguments.group, "retry": names.retry, "dlq": names.dead}
        print_json({**row, "created": is_new})
        return
    print(f"{arguments.group} produces what it fails of {topic.name} to {names.retry}, and reads it again there")
    print(f"dead letters: {names.dead}")


async def _batch_limit(calls: ClusterCalls, topic: str) -> str | None:
    """Return the limit of batches of what is failed of a topic; None for the default."""
    from odradek.client.admin_values import ConfigSource, ResourceType

    found = await calls.admin.describe_configs(ResourceType.TOPIC, topic, keys=(BATCH_LIMIT,))
    entry = found.get(BATCH_LIMIT)
    if entry is None or entry.source is not ConfigSource.TOPIC:
        return None
    defaults = (int(value) for _, value, source in entry.synonyms if value and source is not ConfigSource.TOPIC)
    return batch_limit_of_failed(entry.value, next(defaults, 0))


@attrs.frozen
class _Wanted:
    """A topic as it is to be.

    Attributes:
        name: Its name.
        owner: What says whose it is, which nobody can alter.
        changes: What else is to be set on it.
        partitions_count: How many it has at least.
        replicas: How many of each, where it is made.
        batch_limit: Its `max.message.bytes`, at least; None for the default.
    """

    name: str
    owner: Mapping[str, str]
    changes: Mapping[str, str]
    partitions_count: int
    replicas: int
    batch_limit: str | None


async def _have(calls: ClusterCalls, wanted: _Wanted, *, validate_only: bool = False) -> None:
    """Make a topic, or see that the one that is there is meant for this, and set what is to change of it.

    Args:
        calls: The cluster.
        wanted: The topic.
        validate_only: Only see whether it could be had.

    Raises:
        BrokerError: It is another's, or the broker refuses a key.
    """
    from odradek.client import BrokerError, NewTopic
    from odradek.client.admin_values import ResourceType
    from odradek.kernel.errors import ErrorCode

    admin, name = calls.admin, wanted.name
    there = calls.topics.get(name)
    if there is None:
        limit = {} if wanted.batch_limit is None else {BATCH_LIMIT: wanted.batch_limit}
        configs = {**wanted.owner, **wanted.changes, **limit}
        topic = NewTopic(name, wanted.partitions_count, wanted.replicas, configs=configs)
        await admin.create_topic(topic, validate_only=validate_only)
        return
    found = await admin.describe_configs(ResourceType.TOPIC, name, keys=(*wanted.owner, BATCH_LIMIT))
    for key, value in wanted.owner.items():
        if key not in found or (found[key].value or "") != value:
            told = f"{name!r} is there and is another's: its {key} is {(found[key].value if key in found else '')!r}"
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, told)
    if len(there.partitions) < wanted.partitions_count:
        await admin.create_partitions(name, wanted.partitions_count, validate_only=validate_only)
    changes = dict(wanted.changes)
    if wanted.batch_limit is not None and int(found[BATCH_LIMIT].value or 0) < int(wanted.batch_limit):
        changes[BATCH_LIMIT] = wanted.batch_limit
    if changes:
        await admin.alter_configs(ResourceType.TOPIC, name, changes, validate_only=validate_only)


# ------------------------------------------------------------------------------ list


def _configure_list(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "List the groups that have failed records given back: of which topic, and what their two topics are called. "
        "Where dead letters are paused when too much would die (odradek.retry.breaker.share), it says how many records "
        "wait because of that; the topic is read for it.",
        [("retry list --json | jq -r '.[].dlq'", "where the dead letters are")],
    )
    add_common_options(parser)


async def _list(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client.admin_values import ResourceType

    keys = (RETRY_TOPIC, RETRY_GROUP, RETRY_POLICY, LEVELS_KEY, ATTEMPTS_KEY, ORDER_KEY, BREAKER_SHARE, DEAD_LETTERS_OF)
    dead: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for name, topic in sorted(calls.topics.items()):
        if topic.is_internal:
            continue
        found = await calls.admin.describe_configs(ResourceType.TOPIC, name, keys=keys)
        config = {key: entry.value or "" for key, entry in found.items()}
        if config.get(DEAD_LETTERS_OF):
            dead[config[DEAD_LETTERS_OF]] = name
        if config.get(RETRY_TOPIC):
            rows.append(
                {
                    "topic": config[RETRY_TOPIC],
                    "group": config[RETRY_GROUP],
                    "retry": name,
                    "policy": config[RETRY_POLICY],
                    "levels": config.get(LEVELS_KEY, ""),
                    "attempts": int(config[ATTEMPTS_KEY]) if ATTEMPTS_KEY in config else None,
                    "order": config.get(ORDER_KEY, ""),
                    "spared": await _spared_count(calls, name) if float(config.get(BREAKER_SHARE) or 0) else None,
                }
            )
    for row in rows:
        row["dlq"] = dead.get(row["retry"], "")
    if arguments.json:
        print_json(rows)
    elif rows:
        columns = ("topic", "group", "retry", "dlq", "attempts", "levels", "order", "spared")
        print_table(columns, [["" if row[column] is None else row[column] for column in columns] for row in rows])
    else:
        print("no group has failed records given back; `odradek retry enable TOPIC --group GROUP` begins it")


async def _spared_count(calls: ClusterCalls, topic: str) -> int:
    """Return how many records wait whose attempts are over."""
    from odradek.kernel.retry.headers import SPARED

    from .log_reads import read_log
    from .waiting_records import WaitingRecords

    count = 0
    for partition, offsets in (await calls.offsets(calls.partitions(topic))).items():
        found = WaitingRecords(offsets.start)
        await read_log(calls, partition, found, offsets.end)
        count += sum(any(name == SPARED for name, _ in each.record.headers) for each in found.waiting())
    return count


_ACTIONS: Final = {
    "enable": ("give a group the topics of its failed records", _configure_enable, cluster_action(_enable)),
    "list": ("list whose failed records are given back", _configure_list, cluster_action(_list)),
}
"""Name to summary, what adds its options, and what it does; in the order of `--help`."""
