"""Pure core: DeleteTopics: by name or by id; marked here, done by each broker in the background.

*Source:* Kafka's `ControllerApis.deleteTopics`, as observed on 4.3.1; KIP-516 (ids).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..ids import ZERO_ID
from ..wire.messages.api_20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from .records import RemoveTopicRecord

if TYPE_CHECKING:
    from uuid import UUID

    from .image import MetadataImage, TopicImage
    from .records import MetadataRecord
    from .rules import ControllerRules


def delete_topics(
    image: MetadataImage, rules: ControllerRules, request: DeleteTopicsRequest
) -> CoordinatorResult[MetadataRecord, DeleteTopicsResponse]:
    """Delete topics; each is answered by itself.

    Raises:
        KafkaError: TOPIC_DELETION_DISABLED, for the request as a whole.
    """
    if not rules.config_at(image).get_bool("delete.topic.enable"):
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    wanted = [DeleteTopicState(name=name) for name in request.topic_names] + request.topics
    names = Counter(topic.name for topic in wanted if topic.name is not None)
    ids = Counter(topic.topic_id for topic in wanted if topic.topic_id != ZERO_ID)
    results: list[DeletableTopicResult] = []
    deleted: dict[UUID, RemoveTopicRecord] = {}
    refused: set[tuple[str | None, object]] = set()
    for topic in wanted:
        try:
            _check_once(names[topic.name or ""] if topic.name is not None else 0, "Duplicate topic name.")
            _check_once(ids[topic.topic_id], "Duplicate topic id.")
            found = _find(image, topic)
            times = 1 + (found.topic_id in deleted)
            _check_once(times, "The provided topic name maps to an ID that was already supplied.")
        except KafkaError as error:
            if (topic.name, topic.topic_id) not in refused:
                refused.add((topic.name, topic.topic_id))
                results.append(
                    DeletableTopicResult(
                        name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=error.detail
                    )
                )
            continue
        deleted[found.topic_id] = RemoveTopicRecord(topic_id=found.topic_id)
        results.append(DeletableTopicResult(name=found.name, topic_id=found.topic_id, error_message=None))
    return CoordinatorResult(list(deleted.values()), DeleteTopicsResponse(responses=results))


def _check_once(times: int, detail: str) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, detail)


def _find(image: MetadataImage, wanted: DeleteTopicState) -> TopicImage:
    if wanted.name is not None:
        if wanted.topic_id != ZERO_ID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        topic = image.topics_by_name.get(wanted.name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        return topic
    if wanted.topic_id == ZERO_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = image.topics_by_id.get(wanted.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return topic
