"""Shell: `odradek cluster-id`: a new id for a cluster, or for a directory, as `kafka-storage random-uuid` draws one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import document

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it does."""
    document(
        parser,
        "Print a new random id of 22 characters, for `odradek format`: of a cluster, or of a controller's directory.",
        [("cluster-id", "such as 5faM_yzvRViUmk_kkir0WQ")],
    )


def run(_arguments: argparse.Namespace) -> int:
    """Print one."""
    from odradek.kernel.machine.system.machine import real_machine
    from odradek.kernel.types import id_text

    print(id_text(real_machine().ids.new_id()))
    return 0
