"""Pure core: what a tiered log keeps beside its local part, so that a start needs no store.

A sidecar (kind `tier`, at offset 0): a copy of the newest manifest that this broker has seen or put, where the whole
log begins, and which local segments were uploaded in which state. It is made durable before anything is removed
because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import CorruptionError

from .documents import CorruptDocumentError, decode_document, encode_document
from .manifest import decode_manifest, encode_manifest
from .names import SNAPSHOT, TRANSACTION_INDEX
from .planning import LocalCopy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .manifest import Manifest

TIER_KIND: Final = "tier"
"""The kind of the sidecar with the state."""
COLD_TRANSACTIONS_KIND: Final = "coldtxnindex"
"""The kind of the sidecars with the transaction indexes of segments whose log is only in the store."""
DERIVED_KINDS: Final = (SNAPSHOT, TRANSACTION_INDEX, COLD_TRANSACTIONS_KIND)
"""The kinds of the sidecars that say of a log what its records do: gone with them when it is another log."""


@attrs.frozen
class LocalState:
    """What is known without the store.

    Attributes:
        manifest: The newest that this broker knows; None before the first upload.
        log_start_offset: Of the whole log; perhaps newer than the manifest's.
        copies: See `planning.TieredState`.
    """

    manifest: Manifest | None
    log_start_offset: int
    copies: Mapping[int, LocalCopy] = attrs.field(factory=dict)


def encode_state(state: LocalState) -> bytes:
    """Return the sidecar."""
    return encode_document(
        {
            "log_start_offset": state.log_start_offset,
            "manifest": "" if state.manifest is None else encode_manifest(state.manifest).decode(),
            "copies": [[base, *copy] for base, copy in sorted(state.copies.items())],
        }
    )


def decode_state(data: bytes, where: str) -> LocalState:
    """Return what a sidecar says.

    Raises:
        CorruptionError: It is damaged.
        LaterFormatError: A later version of this project wrote it.
    """
    try:
        fields = decode_document(data, where)
        manifest = fields.get("manifest", str)
        copies = {}
        for row in fields.get("copies", list):
            base_offset, *copy = row
            copies[base_offset] = LocalCopy(*copy)
        return LocalState(
            decode_manifest(manifest.encode(), where) if manifest else None,
            fields.get("log_start_offset", int),
            copies,
        )
    except (CorruptDocumentError, TypeError, ValueError) as exc:
        raise CorruptionError(f"{where}: {exc}") from exc
