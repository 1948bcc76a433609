"""Election by a majority of voters among themselves: KRaft's protocol. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .factory import QuorumElectionFactory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import ElectionFactory


@hookimpl
def odradek_elections() -> Mapping[str, ElectionFactory]:
    """Offer `odradek.election=quorum` and `odradek.metadata.election=quorum`."""
    return {"quorum": QuorumElectionFactory()}
