"""Shell: `odradek cluster brokers` and `unregister`: what each broker has, and a broker that is gone for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ConfigError

from .actions import add_common_options, cluster_action
from .options import document, natural
from .output import print_json, print_table, size_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from odradek.client.admin_values import LogDir
    from odradek.client.cluster import Node

    from .cluster_calls import ClusterCalls


def _configure_brokers(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show what each broker has: partitions that it leads, that it is the preferred leader of, all its replicas, "
        "those that are not in sync, and how full its log directories are.",
        [
            ("cluster brokers", "who leads what, who lags, who runs full"),
            ("cluster brokers --json | jq '.[] | select(.out_of_sync > 0).id'", "who lags, for a script"),
        ],
    )
    add_common_options(parser)


async def _brokers(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from .placing.reading import read_log_dirs, read_nodes

    nodes = await read_nodes(calls)
    log_dirs = await read_log_dirs(calls, (node.node_id for node in nodes if not node.is_fenced))
    told = [_told(calls, node, log_dirs.get(node.node_id)) for node in nodes]
    if arguments.json:
        print_json(told)
        return
    names = ("id", "rack", "state", "leaders", "preferred", "replicas", "out_of_sync")
    rows = [
        [*(each[name] for name in names), *(_size(each[name]) for name in ("size_bytes", "usable_bytes"))]
        for each in told
    ]
    columns = ("broker", "rack", "state", "leaders", "preferred", "replicas", "out of sync", "size", "free")
    print_table(columns, rows)


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else size_text(size_bytes)


def _told(calls: ClusterCalls, node: Node, log_dirs: list[LogDir] | None) -> dict[str, Any]:
    infos = [info for topic in calls.topics.values() for info in topic.partitions.values()]
    mine = [info for info in infos if node.node_id in info.replicas]
    known = log_dirs or []
    usable = [each.usable_bytes for each in known if each.usable_bytes >= 0]
    return {
        "id": node.node_id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
        "state": _state(node, log_dirs),
        "leaders": sum(info.leader_id == node.node_id for info in mine),
        "preferred": sum(info.replicas[0] == node.node_id for info in mine),
        "replicas": len(mine),
        "out_of_sync": sum(node.node_id not in info.isr for info in mine),
        "size_bytes": sum(replica.size_bytes for each in known for replica in each.replicas) if known else None,
        "usable_bytes": min(usable) if usable else None,
        "log_dirs": [
            {
                "path": each.path,
                "failed": each.is_failed,
                "cordoned": each.is_cordoned,
                "usable_bytes": each.usable_bytes,
            }
            for each in known
        ],
    }


def _state(node: Node, log_dirs: list[LogDir] | None) -> str:
    """Return how a broker is, in words."""
    if node.is_fenced:
        return "away"
    if not log_dirs:
        return "does not answer"
    if any(each.is_failed for each in log_dirs):
        return "disk failed"
    return "cordoned" if all(each.is_cordoned for each in log_dirs) else "serves"


def _configure_unregister(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Have the cluster forget a broker that is stopped and does not come back. It must have no replicas: "
        "`odradek cluster drain ID --replicas` moves them away, also those of a broker that is dead.",
        [("cluster unregister 3", "broker 3 is gone, and its id is free")],
    )
    parser.add_argument("id", type=natural, metavar="ID", help="the broker's id")
    add_common_options(parser)


async def _unregister(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    from .placing.reading import read_nodes

    known = {node.node_id: node for node in await read_nodes(calls)}
    broker_id = arguments.id
    node = known.get(broker_id)
    if node is None:
        raise ConfigError(f"there is no broker {broker_id}", hint=f"there are: {', '.join(map(str, known))}")
    if not node.is_fenced:
        raise ConfigError(f"broker {broker_id} is there", hint="stop it first: it would register again")
    infos = (info for topic in calls.topics.values() for info in topic.partitions.values())
    count = sum(broker_id in info.replicas for info in infos)
    if count:
        hint = f"odradek cluster drain {broker_id} --replicas"
        raise ConfigError(f"broker {broker_id} has {count} replicas, which nobody else would get", hint=hint)
    await calls.admin.unregister_broker(broker_id)
    if arguments.json:
        print_json({"unregistered": broker_id})
    else:
        print(f"broker {broker_id} is no part of the cluster any more")


BROKERS_ACTIONS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Any]]] = {
    "brokers": ("show what each broker leads and has", _configure_brokers, cluster_action(_brokers)),
    "unregister": ("forget a broker that is gone for good", _configure_unregister, cluster_action(_unregister)),
}
