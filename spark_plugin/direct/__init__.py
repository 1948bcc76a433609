"""Shell: ranges that are read past the brokers: from segment files on a local disk, and from a tier's objects.

    options ──> settings            what a user says                                            pure
    facts ───┐
    dataDir ─┼> sources ──> planning ──> pieces    who has which offsets, cut at batch boundaries   planning is pure
    store ───┘
    pieces ──> opening ──> runs of batches, aborted records left out ──> `ColumnReader`

| module | what it holds |
| --- | --- |
| `settings` | `readFrom`, `dataDir`, `tieredStore` |
| `pieces` | what a task is sent: broker, segment and tier pieces |
| `planning`, `sparse_index`, `batches` | pure: who reads what, where it begins, what is visible |
| `local`, `tier` | what a data directory and a bucket hold of a partition |
| `sources` | the driver's side: plans ranges |
| `opening`, `gets`, `checked_object` | the task's side: opens pieces, finds what moved meanwhile, compares checksums |

Nothing is written, locked or removed: a broker goes on compacting, tiering and deleting beside it. What is right while
it does:

* a plan is made of one state of the directory, or none: names are listed twice, and have to be the same;
* aborted transactions are named by their first and last offset, so it does no harm when compaction has taken them;
* where a piece begins is checked against the batch that the index named; where it does not fit, it moved;
* a topic's id is looked at *after* its file was opened: whoever makes the topic anew makes the id first;
* what moved is looked for again, in copies that the plan would have read, and read from the broker when it is nowhere.

.. versionadded:: 0.1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .opening import open_piece
    from .pieces import BrokerPiece, DirectReadError, Piece, PieceGoneError, SegmentPiece, TierPiece
    from .planning import PartitionFacts, group_pieces
    from .settings import DirectSettings, direct_settings
    from .sources import Sources

_HOMES: Final = {
    "BrokerPiece": "pieces",
    "DirectReadError": "pieces",
    "DirectSettings": "settings",
    "PartitionFacts": "planning",
    "Piece": "pieces",
    "PieceGoneError": "pieces",
    "SegmentPiece": "pieces",
    "Sources": "sources",
    "TierPiece": "pieces",
    "direct_settings": "settings",
    "group_pieces": "planning",
    "open_piece": "opening",
}

__all__ = [
    "BrokerPiece",
    "DirectReadError",
    "DirectSettings",
    "PartitionFacts",
    "Piece",
    "PieceGoneError",
    "SegmentPiece",
    "Sources",
    "TierPiece",
    "direct_settings",
    "group_pieces",
    "open_piece",
]


def __getattr__(name: str) -> Any:
    """Import what somebody asks for: a task that reads from brokers needs the pieces alone."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
