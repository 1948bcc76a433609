"""Shell: `odradek topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import topics_adopt

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    adopt = actions.add_parser("adopt", help="register partition directories that another broker wrote")
    topics_adopt.configure(adopt)
    adopt.set_defaults(act=topics_adopt.run)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    status: int = arguments.act(arguments)
    return status
