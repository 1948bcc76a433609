"""Shell: `odradek cluster`: which brokers a cluster has, what each does, what is wrong; its actions are modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .actions import add_actions, add_common_options, cluster_action, run_action
from .cluster_brokers import BROKERS_ACTIONS
from .cluster_doctor import DOCTOR_ACTIONS
from .cluster_drain import DRAIN_ACTIONS
from .cluster_quorum import QUORUM_ACTIONS
from .options import document
from .output import print_json, print_table

if TYPE_CHECKING:
    import argparse

    from .cluster_calls import ClusterCalls


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "See what a cluster consists of and what is wrong with it, and take brokers out of use. `odradek serve "
        "--brokers 3` starts one.",
        [
            ("cluster describe", "its id, its controller and its brokers"),
            ("cluster doctor", "what is wrong, and what to do"),
            ("cluster brokers", "what each broker leads and has"),
            ("cluster quorum", "who keeps its metadata, and how far each is"),
        ],
    )
    add_actions(parser, _ACTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    return run_action(arguments)


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show a cluster's id, the node that keeps its metadata, and its brokers by number, with the address that "
        "clients are told. A broker that is fenced is not there at the moment, and leads nothing.",
        [
            ("cluster describe", "of the cluster that a broker on 127.0.0.1:9092 belongs to"),
            ("cluster describe --json | jq '.brokers[] | select(.fenced).id'", "who is not there, for a script"),
        ],
    )
    add_common_options(parser)


async def _describe(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    found = await calls.admin.describe_cluster(with_fenced=True)
    controller = await calls.admin.find_controller()
    brokers = [
        {"id": node.node_id, "host": node.host, "port": node.port, "rack": node.rack, "fenced": node.is_fenced}
        for node in sorted(found.nodes, key=lambda node: node.node_id)
    ]
    if arguments.json:
        print_json({"cluster_id": found.cluster_id, "controller": controller, "brokers": brokers})
        return
    print(f"cluster {found.cluster_id}, controller {controller}\n")
    rows = [
        [broker["id"], broker["host"], broker["port"], broker["rack"] or "", "yes" if broker["fenced"] else ""]
        for broker in brokers
    ]
    print_table(["broker", "host", "port", "rack", "fenced"], rows)


_ACTIONS: Final = {
    "describe": ("show a cluster's id, controller and brokers", _configure_describe, cluster_action(_describe)),
    **BROKERS_ACTIONS,
    **DOCTOR_ACTIONS,
    **DRAIN_ACTIONS,
    **QUORUM_ACTIONS,
}
