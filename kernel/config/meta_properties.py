"""Pure core: `meta.properties`, in which a directory says whose it is: the cluster's, the node's and its own id.

A directory that waits for its cluster to be founded has one without a cluster's id.

*Source:* Kafka 4.3: PropertiesUtils, MetaProperties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import CorruptionError
from ..types import ZERO_ID, id_text, parse_id

if TYPE_CHECKING:
    import uuid

META_PROPERTIES: Final = "meta.properties"
"""The file's name."""


class MetaProperties(NamedTuple):
    """A log directory's identity; empty texts and -1 for what the file does not say."""

    cluster_id: str
    node_id: int
    directory_id: uuid.UUID


def encode_meta_properties(meta: MetaProperties) -> bytes:
    """Return a `meta.properties` of version 1."""
    cluster = f"cluster.id={meta.cluster_id}\n" if meta.cluster_id else ""
    return f"#\nnode.id={meta.node_id}\ndirectory.id={id_text(meta.directory_id)}\nversion=1\n{cluster}".encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Read a `meta.properties`, of version 0 (`broker.id`) or 1.

    Raises:
        CorruptionError: It is no such file.
    """
    try:
        lines = [line.strip() for line in data.decode().splitlines()]
        parts = (line.partition("=") for line in lines if line and line[0] not in "#!")
        fields = {key: value for key, _, value in parts}
        version = fields.get("version")
        if version is None:
            raise CorruptionError("not a meta.properties: it has no version")
        if version not in ("0", "1"):
            raise CorruptionError(f"meta.properties version {version!r} is not known")
        directory_id = parse_id(fields["directory.id"]) if "directory.id" in fields else ZERO_ID
        node_id = int(fields.get("node.id", fields.get("broker.id", "-1")))
    except ValueError as exc:
        raise CorruptionError(f"not a meta.properties: {exc}") from exc
    return MetaProperties(fields.get("cluster.id", ""), node_id, directory_id)
