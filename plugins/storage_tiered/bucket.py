"""Shell: what a bucket says of itself: whose it is, and which topics lie in it.

`odradek.json` is made by the first broker that uses the bucket, and never changes. A topic's `topic.json` is put again
whenever what it says has changed; the last one counts, and only a restore reads it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import (
    ObjectExistsError,
    ObjectMissingError,
    StoreRefusedError,
    id_text,
    parse_id,
)

from .documents import CorruptDocumentError, decode_document, encode_document
from .names import BUCKET_FILE, topic_file_name

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from odradek.kernel.api import ObjectStore


class ForeignBucketError(StoreRefusedError):
    """A bucket is another cluster's, or that of something else: nothing is written there."""


@attrs.frozen
class StoredTopic:
    """What is kept of a topic beside its records, so that it can be made again.

    Attributes:
        cluster_id: Whose.
        topic: Its name.
        topic_id: Its id.
        partitions: How many it has.
        configs: Its own configs as texts, without what it has of defaults.
    """

    cluster_id: str
    topic: str
    topic_id: uuid.UUID
    partitions: int
    configs: Mapping[str, str]


def claim(store: ObjectStore, cluster_id: str) -> None:
    """Make sure that a bucket is this cluster's: an unclaimed one is from now on.

    Raises:
        ForeignBucketError: It is another cluster's.
        RemoteStoreError: The store fails, or what says whose it is cannot be read.
    """
    owner = load_cluster_id(store)
    if owner is None:
        try:
            store.create(BUCKET_FILE, encode_document({"cluster_id": cluster_id}))
        except ObjectExistsError:
            owner = load_cluster_id(store)  # another broker was faster, or an answer was lost
        else:
            return
    if owner != cluster_id:
        raise ForeignBucketError(
            f"{store.url} holds the tiers of the cluster {owner}, and this cluster is {cluster_id}: give each cluster "
            "a bucket or a prefix of its own (odradek.tiered.store); to have that cluster's topics here, use "
            "`odradek tiered restore`, which keeps its id"
        )


def load_cluster_id(store: ObjectStore) -> str | None:
    """Return whose a bucket is, None when nobody's.

    Raises:
        RemoteStoreError: The store fails, or what says so cannot be read.
    """
    try:
        data = store.get(BUCKET_FILE)
    except ObjectMissingError:
        return None
    return decode_document(data, f"{BUCKET_FILE} in {store.url}").get("cluster_id", str)


def is_tiered(configs: Mapping[str, str]) -> bool:
    """Say whether a topic with these configs of its own is tiered."""
    return configs.get("remote.storage.enable", "").strip().lower() == "true"


def put_topic(store: ObjectStore, topic: StoredTopic) -> None:
    """Store what is known of a topic.

    Raises:
        RemoteStoreError: The store fails.
    """
    document = encode_document(
        {
            "cluster_id": topic.cluster_id,
            "topic": topic.topic,
            "topic_id": id_text(topic.topic_id),
            "partitions": topic.partitions,
            "configs": dict(sorted(topic.configs.items())),
        }
    )
    store.put(topic_file_name(topic.topic, topic.topic_id), document)


def load_topic(store: ObjectStore, topic: str, topic_id: uuid.UUID) -> StoredTopic:
    """Return what is stored of a topic.

    Raises:
        ObjectMissingError: Nothing is.
        RemoteStoreError: The store fails, or what is there cannot be read.
    """
    name = topic_file_name(topic, topic_id)
    where = f"{name} in {store.url}"
    fields = decode_document(store.get(name), where)
    try:
        found = StoredTopic(
            cluster_id=fields.get("cluster_id", str),
            topic=fields.get("topic", str),
            topic_id=parse_id(fields.get("topic_id", str)),
            partitions=fields.get("partitions", int),
            configs=fields.texts("configs"),
        )
    except ValueError as exc:
        raise CorruptDocumentError(f"{where} is damaged: {exc}") from exc
    if (found.topic, found.topic_id) != (topic, topic_id):
        raise CorruptDocumentError(f"{where} speaks of {found.topic} with the id {id_text(found.topic_id)}")
    return found
