"""Pure core: which topics are made when somebody first asks for those of a group's failed records.

    orders has odradek.retry.auto=true, somebody asks for orders.billing.retry, or orders.billing.dlq
        -> orders.billing.dlq and orders.billing.retry, for group billing, with the partitions and replicas of orders,
           and room for its largest batches

A group is read from the name, so it has to be one that a topic's name can hold as it is. Where that cannot be said, or
two topics could be meant, since a group's name may have dots, none is made.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..config.delay_checks import (
    BATCH_LIMIT,
    DEAD_LETTERS_ENABLE,
    DEAD_LETTERS_OF,
    RETRY_AUTO,
    RETRY_GROUP,
    RETRY_TOPIC,
    batch_limit_of_failed,
)
from ..errors import ErrorCode, KafkaError
from ..retry.names import DEAD_SUFFIX, ESCAPED, RETRY_SUFFIX, retry_topics
from ..wire.messages.api_19_create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .image import MetadataImage, TopicImage

HINT: Final = "odradek retry enable TOPIC --group GROUP makes it"


def owner_of(name: str, image: MetadataImage) -> tuple[TopicImage, str] | None:
    """Return the topic and the group of whose failed records a topic of this name is to be; None where nobody's.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION: it is not to be made, as that cannot be said.
    """
    suffix = next((each for each in (RETRY_SUFFIX, DEAD_SUFFIX) if name.endswith(each)), None)
    if suffix is None:
        return None
    stem = name.removesuffix(suffix)
    found = []
    for dot in (at for at, letter in enumerate(stem) if letter == "."):
        topic, group = image.topics_by_name.get(stem[:dot]), stem[dot + 1 :]
        if topic is not None and group and image.topic_config(topic.name).get(RETRY_AUTO) == "true":
            found.append((topic, group))
    if not found:
        return None
    topic, group = found[0]
    if len(found) > 1:
        told = " or of ".join(f"group {group!r} of topic {topic.name!r}" for topic, group in found)
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"it may be that of {told}: {HINT}")
    if ESCAPED.search(group) or name not in retry_topics(topic.name, group):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"its group cannot be read from its name: {HINT}")
    return topic, group


def topics_of_group(topic: TopicImage, group: str, image: MetadataImage, default_bytes: int) -> list[CreatableTopic]:
    """Return both topics of a group's failed records; the dead letters' first, so that no death is without a place.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION: one of them is there, and is another's: dead letters would have no place,
            or records would come back at once.
    """
    names = retry_topics(topic.name, group)
    owners = {names.dead: {DEAD_LETTERS_OF: names.retry}, names.retry: {RETRY_TOPIC: topic.name, RETRY_GROUP: group}}
    count = len(topic.partitions)
    for name, owner in owners.items():
        there = image.topics_by_name.get(name)
        if there is None:
            continue
        count = max(count, len(there.partitions))
        if not owner.items() <= image.topic_config(name).items():
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} is there and is not for that group's records"
            )
    more = {names.dead: {DEAD_LETTERS_ENABLE: "true"}}
    limit = batch_limit_of_failed(image.topic_config(topic.name).get(BATCH_LIMIT), default_bytes)
    both = {} if limit is None else {BATCH_LIMIT: limit}
    return [_topic(topic, name, count, {**owner, **more.get(name, {}), **both}) for name, owner in owners.items()]


def _topic(like: TopicImage, name: str, partitions_count: int, configs: Mapping[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions_count,
        replication_factor=max(len(partition.replicas) for partition in like.partitions),
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
