"""Where the folder of peers is: scripts that install and start other brokers; no part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE_THE_CHECKOUT = Path(__file__).parents[2] / "shared" / "peers"


def peers_folder() -> Path:
    """Return the folder of peers: `ODRADEK_PEERS`, or the one beside the checkout; it need not be there."""
    return Path(os.environ.get("ODRADEK_PEERS") or _BESIDE_THE_CHECKOUT)
