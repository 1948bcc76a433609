"""Shell: `odradek topics`: list, create, describe, alter, delete, adopt."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any, Final

from .actions import add_actions, add_common_options, cluster_action, run_action
from .options import document, pairs, positive
from .output import dim, plural, print_json, print_table

if TYPE_CHECKING:
    import argparse

    from odradek.client import TopicPartition
    from odradek.client.admin_values import QuorumDescription
    from odradek.client.cluster import TopicInfo

    from .cluster_calls import ClusterCalls

_ELECTION: Final = "odradek.election"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Work with topics of a running broker; `adopt` works on the files of a stopped one.",
        [
            ("topics list", "what is there"),
            ("topics create orders -p 4 -c retention.ms=3600000", "four partitions, records kept for an hour"),
            ("topics describe orders", "its partitions, offsets and settings"),
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
        "List topics, by name.",
        [
            ("topics list 'orders*'", "those whose name begins so"),
            ("topics list --json | jq -r '.[].topic'", "their names, for a script"),
        ],
    )
    parser.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="a name, or a pattern with * and ?")
    parser.add_argument("--internal", action="store_true", help="show internal topics too")
    add_common_options(parser)


async def _list(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.kernel.types import id_text

    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(partition.replicas) for partition in topic.partitions.values()), default=0),
            "topic_id": id_text(topic.topic_id),
            "internal": topic.is_internal,
        }
        for topic in calls.topics.values()
        if (arguments.internal or not topic.is_internal) and fnmatch.fnmatchcase(topic.name, arguments.pattern)
    ]
    if arguments.json:
        print_json(rows)
        return
    columns = ("topic", "partitions", "replicas", "topic_id")
    print_table([name.replace("_", " ") for name in columns], [[row[name] for name in columns] for row in rows])


# ------------------------------------------------------------------------------ create


def _configure_create(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Create a topic.",
        [
            ("topics create orders", "with the broker's num.partitions"),
            ("topics create state -p 8 -c cleanup.policy=compact", "eight partitions, the newest record of each key"),
            ("topics create orders --if-not-exists", "no error if it is there, for scripts"),
        ],
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "-p", "--partitions", type=positive, default=-1, metavar="N", help="default: the broker's choice"
    )
    parser.add_argument("-r", "--replicas", type=positive, default=-1, metavar="N", help="default: the broker's choice")
    parser.add_argument(
        "-c", "--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of the topic"
    )
    parser.add_argument("--if-not-exists", action="store_true", help="do nothing when it is there already")
    add_common_options(parser)


async def _create(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client import NewTopic
    from odradek.kernel.types import id_text

    name = arguments.topic
    if arguments.if_not_exists and name in calls.topics:
        if arguments.json:
            print_json({"topic": name, "created": False})
        else:
            print(f"topic {name} is there already")
        return
    configs = pairs(arguments.config, "--config")
    made = await calls.admin.create_topic(NewTopic(name, arguments.partitions, arguments.replicas, configs))
    if arguments.json:
        shown = {"topic": name, "created": True, "topic_id": id_text(made.topic_id)}
        print_json({**shown, "partitions": made.partitions_count, "replicas": made.replication_factor})
        return
    size = f" with {plural(made.partitions_count, 'partition')}" if made.partitions_count > 0 else ""
    print(f"created topic {name}{size}")


# ------------------------------------------------------------------------------ describe


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show a topic's partitions (leader, replicas, in-sync replicas, first and next offset) and the settings that "
        "differ from the broker's. `odradek configs describe topic TOPIC --all` shows every setting.\n\n"
        "Where replicas vote (odradek.election=quorum) the epoch is their term, isr says which of them live, and each "
        "voter stands with the offset at which its log ended when the leader heard of it last.",
        [("topics describe orders", "one topic"), ("topics describe --json", "all topics, for a script")],
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that are not internal")
    add_common_options(parser)


async def _describe(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    topics = [calls.topic(name) for name in arguments.topics] or [
        topic for topic in calls.topics.values() if not topic.is_internal
    ]
    described = [await _describe_topic(calls, topic) for topic in topics]
    if arguments.json:
        print_json(described)
        return
    for number, shown in enumerate(described):
        if number:
            print()
        print(f"{shown['topic']}  {dim(str(shown['topic_id']))}")
        for key, value in shown["configs"].items():
            print(f"  {key}={value}")
        columns = ["partition", "leader", "epoch", "replicas", "isr", "start", "end"]
        rows = [[row[name] for name in columns] for row in shown["partitions"]]
        if any("voters" in row for row in shown["partitions"]):
            columns.append("voters")
            rows = [[*cells, _voters(row)] for cells, row in zip(rows, shown["partitions"], strict=True)]
        print_table(columns, rows)


def _voters(row: dict[str, Any]) -> str:
    """Return each voter with the end of its log, `-` where no leader told."""
    return " ".join(f"{voter['id']}@{voter['end']}" for voter in row.get("voters", ())) or "-"


async def _describe_topic(calls: ClusterCalls, topic: TopicInfo) -> dict[str, Any]:
    from odradek.client import ResourceType, TopicPartition
    from odradek.client.admin_values import ConfigSource
    from odradek.kernel.types import id_text

    offsets = await calls.offsets(TopicPartition(topic.name, number) for number in topic.available)
    configs = await calls.admin.describe_configs(ResourceType.TOPIC, topic.name)
    quorums: dict[TopicPartition, QuorumDescription] = {}
    if _ELECTION in configs:  # a topic keeps the election it was made with, whatever this says; Kafka has one alone
        places = [TopicPartition(topic.name, number) for number in topic.available]
        quorums = await calls.admin.describe_partition_quorums(places)
    rows: list[dict[str, Any]] = []
    for number, partition in sorted(topic.partitions.items()):
        found = offsets.get(TopicPartition(topic.name, number))
        rows.append(
            {
                "partition": number,
                "leader": partition.leader_id,
                "epoch": partition.leader_epoch,
                "replicas": partition.replicas,
                "isr": partition.isr,
                "start": found.start if found else None,
                "end": found.end if found else None,
            }
        )
        quorum = quorums.get(TopicPartition(topic.name, number))
        if quorum is not None:
            rows[-1]["high_watermark"] = quorum.high_watermark
            rows[-1]["voters"] = [{"id": each.replica_id, "end": each.log_end_offset} for each in quorum.voters]
    own = {config.name: config.value for config in configs.values() if config.source is ConfigSource.TOPIC}
    return {"topic": topic.name, "topic_id": id_text(topic.topic_id), "configs": own, "partitions": rows}


# ------------------------------------------------------------------------------ alter


def _configure_alter(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Give a topic more partitions, or change its settings. Partitions only grow: records stay where they are, but "
        "keys may go to other partitions from then on.",
        [
            ("topics alter orders -p 8", "eight partitions in all"),
            ("topics alter orders --set retention.ms=3600000 --unset segment.bytes", "change its settings"),
        ],
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-p", "--partitions", type=positive, metavar="N", help="how many there shall be in all")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set a setting")
    parser.add_argument("--unset", action="append", default=[], metavar="KEY", help="back to the broker's value")
    add_common_options(parser)


async def _alter(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from odradek.client import ResourceType
    from odradek.kernel.errors import ConfigError

    changes = {**pairs(arguments.set, "--set"), **dict.fromkeys(arguments.unset)}
    if not changes and arguments.partitions is None:
        raise ConfigError("nothing to change", hint="give --partitions, --set or --unset")
    name = calls.topic(arguments.topic).name
    if changes:
        await calls.admin.alter_configs(ResourceType.TOPIC, name, changes)
    if arguments.partitions is not None:
        await calls.admin.create_partitions(name, arguments.partitions)
    if arguments.json:
        print_json({"topic": name, "changed": True})
    else:
        print(f"changed topic {name}")


# ------------------------------------------------------------------------------ delete


def _configure_delete(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Delete topics with all their records. There is no way back.",
        [
            ("topics delete orders", "at once"),
            ("topics delete orders --if-exists", "no error if it is not there, for scripts"),
        ],
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument("--if-exists", action="store_true", help="leave out those that are not there")
    add_common_options(parser)


async def _delete(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    names = [name for name in arguments.topics if name in calls.topics or not arguments.if_exists]
    for name in names:
        calls.topic(name)  # all of them exist, or none is deleted
    for name in names:
        await calls.admin.delete_topic(name)
    if arguments.json:
        print_json({"deleted": names})
        return
    for name in names:
        print(f"deleted topic {name}")


# ------------------------------------------------------------------------------ adopt


def _configure_adopt(parser: argparse.ArgumentParser) -> None:
    from . import topics_adopt

    topics_adopt.configure(parser)


def _adopt(arguments: argparse.Namespace) -> int:
    from . import topics_adopt

    return topics_adopt.run(arguments)


_ACTIONS: Final = {
    "list": ("list topics", _configure_list, cluster_action(_list)),
    "create": ("create a topic", _configure_create, cluster_action(_create)),
    "describe": ("show partitions, offsets and settings", _configure_describe, cluster_action(_describe)),
    "alter": ("add partitions, change settings", _configure_alter, cluster_action(_alter)),
    "delete": ("delete topics and their records", _configure_delete, cluster_action(_delete)),
    "adopt": ("register partition directories that another broker wrote", _configure_adopt, _adopt),
}
"""Name to summary, what adds its options, and what it does; in the order of `--help`."""
