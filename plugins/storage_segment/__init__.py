"""Storage in Kafka's segment files: the default. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from odradek.kernel.api import StorageFactory


@hookimpl
def odradek_storages() -> Mapping[str, StorageFactory]:
    """Offer `odradek.storage=segment`."""
    from .engine import SegmentEngine  # not at the top: who wants the formats of the files needs no engine

    return {"segment": SegmentEngine}


@hookimpl
def odradek_cli_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `odradek log dump`."""
    from .cli import add_log_command

    add_log_command(commands)
