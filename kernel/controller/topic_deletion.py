"""Pure core: DeleteTopics: by name or by id; marked here, done by each broker in the background.

*Source:* Kafka's `ControllerApis.deleteTopics`, as observed on 4.3.1; KIP-516 (ids).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.records import RemoveTopicRecord
from ..types import ZERO_ID
from ..wire.messages.api_20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from uuid import UUID

    from ..metadata.image import MetadataImage, TopicImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps


def delete_topics(
    image: MetadataImage, rules: ControllerRules, request: DeleteTopicsRequest
) -> Steps[DeleteTopicsResponse]:
    """Delete topics; each is answered by itself.

    Raises:
        KafkaError: TOPIC_DELETION_DISABLED, for the request as a whole.
    """
    if not rules.config_at(image).get_bool("delete.topic.enable"):
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    everything = [DeleteTopicState(name=name) for name in request.topic_names] + request.topics
    refused = [_both_given(topic) for topic in everything if topic.name is not None and topic.topic_id != ZERO_ID]
    wanted = [topic for topic in everything if topic.name is None or topic.topic_id == ZERO_ID]
    names = Counter(topic.name for topic in wanted if topic.name is not None)
    ids = Counter(topic.topic_id for topic in wanted if topic.topic_id != ZERO_ID)
    resolved = Counter(found.topic_id for topic in wanted if (found := _look_up(image, topic)) is not None)
    results: dict[tuple[str | None, UUID], DeletableTopicResult] = {}
    records: list[MetadataRecord] = []
    for topic in wanted:
        name, topic_id = topic.name, topic.topic_id
        result = DeletableTopicResult(name=name, topic_id=topic_id, error_message=None)
        try:
            _check_once(names[name or ""] if name is not None else 0, "Duplicate topic name.")
            _check_once(ids[topic_id], "Duplicate topic id.")
            found = _find(image, topic)
            result.name, result.topic_id = found.name, found.topic_id
            _check_once(resolved[found.topic_id], "The provided topic name maps to an ID that was already supplied.")
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
        else:
            records.append(RemoveTopicRecord(topic_id=found.topic_id))
        results.setdefault((result.name, result.topic_id), result)
        yield
    return CoordinatorResult(records, DeleteTopicsResponse(responses=[*refused, *results.values()]))


def _both_given(wanted: DeleteTopicState) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=wanted.name,
        topic_id=wanted.topic_id,
        error_code=ErrorCode.INVALID_REQUEST,
        error_message="You may not specify both topic name and topic id.",
    )


def _look_up(image: MetadataImage, wanted: DeleteTopicState) -> TopicImage | None:
    """Return the topic that a name or an id means, if it means one."""
    return image.topics_by_id.get(wanted.topic_id) if wanted.name is None else image.topics_by_name.get(wanted.name)


def _check_once(times: int, detail: str) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, detail)


def _find(image: MetadataImage, wanted: DeleteTopicState) -> TopicImage:
    topic = _look_up(image, wanted)
    if topic is not None:
        return topic
    if wanted.name is not None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    if wanted.topic_id == ZERO_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
