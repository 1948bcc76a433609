"""Shell: gets the small files of a cold segment, and holds them against the manifest. Blocks; for worker threads.

Records have a checksum of their own, an index has none: one that was damaged in the store would have readers pass over
records in silence.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crc32c import crc32c

from odradek.kernel.api import CorruptRecordsError

from .names import segment_file_name

if TYPE_CHECKING:
    from odradek.kernel.api import ObjectStore, TopicIdPartition

    from .manifest import StoredSegment


def get_small_file(store: ObjectStore, partition: TopicIdPartition, segment: StoredSegment, kind: str) -> bytes:
    """Return a file of a segment as it was put; nothing when the segment has no such file.

    Args:
        store: Where.
        partition: Whose segment.
        segment: As the manifest names it.
        kind: One of `names.FILE_KINDS`; of the records themselves use `cold_batches`.

    Raises:
        RemoteStoreError: It cannot be had.
        CorruptRecordsError: It is not what was put.
    """
    file = segment.files.get(kind)
    if file is None:
        return b""
    name = segment_file_name(partition, segment.base_offset, segment.uid, kind)
    data = store.get(name)
    if crc32c(data) != file.crc32c:
        raise CorruptRecordsError(
            f"{store.url}: {name} has the CRC-32C {crc32c(data)}, and {file.crc32c} by the manifest: it was damaged; "
            "bring it back, and see `odradek tiered verify`"
        )
    return data
