"""Shell: commands that consist of actions on a cluster: `odradek topics list`, `odradek groups describe`, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .options import add_client_options, add_json_option, client_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from .cluster_calls import ClusterCalls

    Configure: TypeAlias = Callable[[argparse.ArgumentParser], None]
    Act: TypeAlias = Callable[[argparse.Namespace], int]


def add_actions(parser: argparse.ArgumentParser, actions: Mapping[str, tuple[str, Configure, Act]]) -> None:
    """Add a command's actions: name to summary, what adds its options, and what it does."""
    added = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, (summary, configure, act) in actions.items():
        action = added.add_parser(name, help=summary)
        configure(action)
        action.set_defaults(act=act)


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every action on a cluster has."""
    add_json_option(parser)
    add_client_options(parser)


def run_action(arguments: argparse.Namespace) -> int:
    """Do what was asked; return the exit status."""
    status: int = arguments.act(arguments)
    return status


def cluster_action(work: Callable[[argparse.Namespace, ClusterCalls], Any], **settings: object) -> Act:
    """Make an action of work that needs a cluster; the client is loaded only then.

    Args:
        work: What is done; the exit status is what it returns, 0 for None.
        settings: What it wants of the client, dots as underscores; what the command line says goes before.
    """

    def act(arguments: argparse.Namespace) -> int:
        from .cluster_calls import call

        status: int | None = call(client_settings(arguments, **settings), lambda calls: work(arguments, calls))
        return status or 0

    return act
