"""Shell: creates the topics that the configuration names (`[topics.NAME]`) and that do not exist yet."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..config.start_topics import differences
from ..errors import ConfigError, ErrorCode, error_code
from ..wire.messages.api_19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

if TYPE_CHECKING:
    from ..config.sections import StartTopic
    from ..metadata.image import TopicImage
    from .metadata_parts import MetadataParts
    from .options import BrokerOptions

log = logging.getLogger(__name__)


async def create_start_topics(options: BrokerOptions, metadata: MetadataParts) -> None:
    """Create the topics of `[topics.NAME]` that do not exist yet; of others, tell what their section would change.

    Raises:
        ConfigError: One cannot be created as it is described.
    """
    topics = metadata.published.image.topics_by_name
    for topic in options.topics:
        existing = topics.get(topic.name)
        if existing is not None:
            _tell_differences(topic, existing, metadata)
            continue
        wanted = CreatableTopic(
            name=topic.name,
            num_partitions=-1 if topic.partitions is None else topic.partitions,
            replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value.text) for key, value in topic.configs.items()],
        )
        response = await metadata.calls.create_topics(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000))
        (result,) = response.topics
        if result.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:  # another broker was faster
            raise ConfigError(result.error_message or error_code(result.error_code).text, where=topic.where)


def _tell_differences(topic: StartTopic, existing: TopicImage, metadata: MetadataParts) -> None:
    kept = {"odradek.storage": existing.storage, "odradek.election": existing.election}
    found = differences(
        topic,
        metadata.published.config,
        partitions_count=len(existing.partitions),
        replication_factor=len(existing.partitions[0].replicas),
        overrides={**metadata.published.image.topic_config(topic.name), **kept},
    )
    if found:
        log.warning("%s: topic %s exists and stays as it is: %s", topic.where, topic.name, "; ".join(found))
