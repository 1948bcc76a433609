"""Election by the controller among in-sync replicas: the default. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import hookimpl

from .factory import IsrElectionFactory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import ElectionFactory


@hookimpl
def odradek_elections() -> Mapping[str, ElectionFactory]:
    """Offer `odradek.election=isr`."""
    return {"isr": IsrElectionFactory()}
