"""Shell: removals that the store has not done yet, in a file, so that a broker that starts again goes on with them.

Who deletes a topic while the store is away expects nothing of it to stay there; a restart in between must not forget.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.kernel.api import RemoteStoreError, TopicIdPartition, id_text, parse_id, read_file, replace_file

from .documents import decode_document, encode_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from odradek.kernel.api import Files

log = logging.getLogger(__name__)


class PendingRemovals:
    """The file. Its methods block, and are for worker threads; one at a time."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path

    def load(self) -> dict[TopicIdPartition, bool]:
        """Return the partitions of which something is to be removed, and whether their topics were only switched off.

        None where the file cannot be read, which is logged.
        """
        try:
            rows = decode_document(read_file(self._files, self._path), str(self._path)).rows("partitions")
            return {
                TopicIdPartition(
                    parse_id(row.get("topic_id", str)), row.get("topic", str), row.get("partition", int)
                ): row.get("is_switched_off", bool)
                for row in rows
            }
        except FileNotFoundError:
            return {}
        except (OSError, RemoteStoreError, ValueError) as error:
            log.warning("which partitions are still to be removed from the store is not known: %s", error)
            return {}

    def save(self, removals: Mapping[TopicIdPartition, bool]) -> None:
        """Keep what `load` is to return; durable on return, or told that it is not."""
        rows = [
            {
                "topic": each.topic,
                "topic_id": id_text(each.topic_id),
                "partition": each.partition,
                "is_switched_off": is_switched_off,
            }
            for each, is_switched_off in removals.items()
        ]
        try:
            replace_file(self._files, self._path, encode_document({"partitions": rows}), is_durable=True)
        except OSError as error:
            log.warning("a restart would forget %d partitions to be removed from the store: %s", len(rows), error)
