"""Shell: `odradek cluster quorum`, `add-controller` and `remove-controller`: who keeps the metadata, and who votes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import ZERO_ID, id_text, parse_id

from .actions import add_common_options, cluster_action
from .options import add_client_options, document, host_port, natural
from .output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.client.admin_values import QuorumDescription, QuorumReplica

    from .cluster_calls import ClusterCalls

DEFAULT_LISTENER: Final = "CONTROLLER"


def _configure_quorum(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Show who leads those who keep the metadata, who of them votes, and how far each is: its lag counts the "
        "records of the leader that it has not asked for yet. Observers follow without a vote: brokers, and "
        "controllers that may become voters.",
        [
            ("cluster quorum", "who is the active controller, and who could be"),
            ("cluster quorum --json | jq .leader", "the active controller, for a script"),
        ],
    )
    add_common_options(parser)


def _lag(quorum: QuorumDescription, replica: QuorumReplica) -> int:
    return max(quorum.log_end() - replica.log_end_offset, 0)


def _directory(replica: QuorumReplica) -> str:
    return "" if replica.directory_id == ZERO_ID else id_text(replica.directory_id)


def _as_json(quorum: QuorumDescription, replica: QuorumReplica) -> dict[str, object]:
    return {
        "id": replica.replica_id,
        "directory_id": _directory(replica) or None,
        "log_end_offset": replica.log_end_offset,
        "lag": _lag(quorum, replica),
        "last_fetch_ms": replica.fetched_ms,
        "last_caught_up_ms": replica.caught_up_ms,
        "listeners": [{"name": name, "host": host, "port": port} for name, host, port in replica.listeners],
    }


def _ago(quorum: QuorumDescription, at_ms: int) -> str:
    """Return how long ago something was by the leader's clock, which says of itself that it fetched just now."""
    now_ms = max((each.fetched_ms for each in (*quorum.voters, *quorum.observers)), default=-1)
    return "" if at_ms < 0 else f"{max(now_ms - at_ms, 0)} ms ago"


async def _quorum(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    found = await calls.admin.describe_quorum()
    if arguments.json:
        print_json(
            {
                "leader": found.leader_id,
                "epoch": found.leader_epoch,
                "high_watermark": found.high_watermark,
                "voters": [_as_json(found, each) for each in found.voters],
                "observers": [_as_json(found, each) for each in found.observers],
            }
        )
        return
    print(f"leader {found.leader_id} in epoch {found.leader_epoch}, high watermark {found.high_watermark}\n")
    rows = []
    for role, replicas in (("voter", found.voters), ("observer", found.observers)):
        for each in replicas:
            shown = "leader" if each.replica_id == found.leader_id else role
            address = next((f"{host}:{port}" for _name, host, port in each.listeners), "")
            times = [_ago(found, each.fetched_ms), _ago(found, each.caught_up_ms)]
            rows.append(
                [each.replica_id, shown, address, each.log_end_offset, _lag(found, each), *times, _directory(each)]
            )
    print_table(["node", "role", "address", "log end", "lag", "fetched", "caught up", "directory id"], rows)


def _configure_add(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Give a controller a vote. It runs already, and follows the others: `odradek cluster quorum` shows it among "
        "the observers. One more voter at a time.",
        [("cluster add-controller 4 four.example.net:9093", "node 4, whose controller listens there")],
    )
    parser.add_argument("id", type=natural, metavar="ID", help="the controller's node.id")
    parser.add_argument("address", type=host_port, metavar="HOST:PORT", help="where other controllers find it")
    _add_directory_option(parser, "observes the quorum")
    parser.add_argument("--listener", metavar="NAME", help="the name of that listener (default: as the voters have it)")
    add_client_options(parser)


def _configure_remove(parser: argparse.ArgumentParser) -> None:
    document(
        parser,
        "Take a controller's vote away: for good, or before its disk is replaced. It goes on following the others "
        "while it runs. One fewer voter at a time.",
        [("cluster remove-controller 2", "node 2 votes no more")],
    )
    parser.add_argument("id", type=natural, metavar="ID", help="the controller's node.id")
    _add_directory_option(parser, "is a voter")
    add_client_options(parser)


def _add_directory_option(parser: argparse.ArgumentParser, how: str) -> None:
    parser.add_argument(
        "--directory-id",
        type=_directory_id,
        metavar="ID",
        help=f"of the directory that has its metadata log (default: of the one that {how})",
    )


def _directory_id(text: str) -> UUID:
    try:
        return parse_id(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no directory id") from None


def _known_directory(
    arguments: argparse.Namespace, replicas: tuple[QuorumReplica, ...], what: str, remedy: str
) -> UUID:
    """Return which directory of a controller is meant: the one that is named, or the only one that is known.

    Raises:
        BrokerError: VOTER_NOT_FOUND: none is, or several are.
    """
    from odradek.client import BrokerError

    if arguments.directory_id is not None:
        named: UUID = arguments.directory_id
        return named
    found = {each.directory_id for each in replicas if each.replica_id == arguments.id} - {ZERO_ID}
    if len(found) == 1:
        return found.pop()
    many = "has several directories" if found else f"is none of the {what}"
    raise BrokerError(ErrorCode.VOTER_NOT_FOUND, f"controller {arguments.id} {many}: {remedy}")


async def _add(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    quorum = await calls.admin.describe_quorum()
    remedy = "does it run? `odradek cluster quorum` shows who observes; --directory-id names its directory"
    directory_id = _known_directory(arguments, quorum.observers, "observers", remedy)
    names = (name for voter in quorum.voters for name, _host, _port in voter.listeners)
    listener = arguments.listener or next(names, DEFAULT_LISTENER)
    await calls.admin.add_raft_voter(arguments.id, directory_id, [(listener, *arguments.address)])
    print(f"controller {arguments.id} votes, with directory {id_text(directory_id)}")


async def _remove(arguments: argparse.Namespace, calls: ClusterCalls) -> None:
    quorum = await calls.admin.describe_quorum()
    remedy = "`odradek cluster quorum` shows who votes; --directory-id names a directory"
    directory_id = _known_directory(arguments, quorum.voters, "voters that are known by their directories", remedy)
    await calls.admin.remove_raft_voter(arguments.id, directory_id)
    print(f"controller {arguments.id} votes no more")


QUORUM_ACTIONS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Any]]] = {
    "quorum": (
        "show who keeps the metadata, and how far each is",
        _configure_quorum,
        cluster_action(_quorum),
    ),
    "add-controller": ("give a controller a vote", _configure_add, cluster_action(_add)),
    "remove-controller": ("take a controller's vote away", _configure_remove, cluster_action(_remove)),
}
